"""Distinguish database errors of a server that is away from those of a wrong statement."""

from __future__ import annotations

from django_hitcount.db.transactions import DATABASE_AWAY
from django_hitcount.exceptions import BufferUnavailable

POSTGRESQL_AWAY = ("08", "25006", "28", "3D", "53", "57", "58", "XX")
"""First characters of SQLSTATE: no connection, read-only, access denied, no such database, out of
resources, stopping, system error, internal error."""

MYSQL_CLIENT_ERRORS = range(2000, 3000)
"""Errors of the client library: it cannot connect, or has lost the connection."""

MYSQL_AWAY = frozenset(
    {
        *(1021, 1037, 1038, 1041, 1114),  # no memory, disk or table space left
        *(1040, 1203, 1226),  # too many connections
        *(1042, 1043, 1044, 1045, 1049, 1129, 1130, 1698),  # access denied
        *(
            1047,
            1053,
            1077,
            1078,
            1079,
            1080,
            1927,
            3032,
            4031,
        ),  # starting or stopping
        *(1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184),  # the network
        *(1290, 1792, 1836),  # read-only
        *(1969, 3024),  # statement timeouts
    }
)
"""Errors of MariaDB and MySQL. Most other codes of an OperationalError mean a wrong statement."""

SQLITE_ERROR = 1
"""The error of SQLite for a wrong statement."""


def is_server_away(error: BaseException) -> bool:
    """
    Return whether ``error`` means that the server is away, slow or read-only.

    Returns False for a wrong statement, such as one with a missing table or a value that the column
    cannot store, or after an earlier error in the transaction. What a client sends may cause these.
    Returns True for errors without a code.
    """
    if not isinstance(error, DATABASE_AWAY):
        return isinstance(error, BufferUnavailable)
    cause = error.__cause__
    if sqlstate := getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None):
        return str(sqlstate).startswith(POSTGRESQL_AWAY)
    if sqlite_code := getattr(cause, "sqlite_errorcode", None):
        return bool(sqlite_code & 0xFF != SQLITE_ERROR)  # Higher bits are details.
    number = error.args[0] if error.args else None
    if not number or not isinstance(number, int):
        return True
    return number in MYSQL_CLIENT_ERRORS or number in MYSQL_AWAY
