"""Which errors of a database say that its server is away, and which that a statement is wrong."""

from __future__ import annotations

from django_hitcount.db.transactions import DATABASE_AWAY
from django_hitcount.exceptions import BufferUnavailable

POSTGRESQL_AWAY = ("08", "25006", "28", "3D", "53", "57", "58", "XX")
"""Beginnings of SQLSTATE: connection, read-only, refused, no database, full, stopping, broken."""

MYSQL_CLIENT_ERRORS = range(2000, 3000)
"""Could not connect, or lost the connection."""

MYSQL_AWAY = frozenset(
    {
        *(1021, 1037, 1038, 1041, 1114),  # no memory, disk or table space left
        *(1040, 1203, 1226),  # too many connections
        *(1042, 1043, 1044, 1045, 1049, 1129, 1130, 1698),  # does not let us in
        *(1047, 1053, 1077, 1078, 1079, 1080, 1927, 3032, 4031),  # starting, stopping, cutting off
        *(1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184),  # the network
        *(1290, 1792, 1836),  # read-only
        *(1969, 3024),  # slow
    }
)
"""Numbers of MariaDB and MySQL; most others of OperationalError say that a statement is wrong."""

SQLITE_ERROR = 1
"""What SQLite says to a statement that is wrong."""


def is_server_away(error: BaseException) -> bool:
    """
    Whether ``error`` says: the server is away, slow or read-only.

    A statement that is wrong (a table that is missing, a value that the column cannot hold, a
    transaction that an earlier error has spoiled) says nothing of the server: a client could
    have sent it. Where no code tells, the server is taken to be away.
    """
    if not isinstance(error, DATABASE_AWAY):
        return isinstance(error, BufferUnavailable)
    cause = error.__cause__
    if sqlstate := getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None):
        return str(sqlstate).startswith(POSTGRESQL_AWAY)
    if sqlite_code := getattr(cause, "sqlite_errorcode", None):
        return bool(sqlite_code & 0xFF != SQLITE_ERROR)  # The rest of it tells more.
    number = error.args[0] if error.args else None
    if not number or not isinstance(number, int):
        return True
    return number in MYSQL_CLIENT_ERRORS or number in MYSQL_AWAY
