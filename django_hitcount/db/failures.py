"""What errors of a database mean: a lock, a server that is away, or a wrong statement."""

from __future__ import annotations

from django.db import InterfaceError, InternalError, OperationalError

from django_hitcount.exceptions import BufferUnavailable

DATABASE_AWAY = (OperationalError, InterfaceError, InternalError)
"""Errors of a database that is away, locked or read-only: psycopg reports the last as internal."""

_ROLLED_BACK = frozenset(
    {
        "55P03",  # PostgreSQL: lock timeout
        "40P01",  # deadlock
        "40001",  # serialization failure
        1205,  # MariaDB, MySQL: lock wait timeout, also of tables
        1213,  # deadlock
        1020,  # another session has changed a row since this transaction read it
    }
)
"""Codes of errors after which nothing is committed, also when COMMIT returns one of them."""

_STATEMENT_TIMEOUT = 1969
"""MariaDB's max_statement_time is over. limit_waits() sets it for waits of less than a second."""

_NOWAIT = 3572
"""MySQL's error when a statement with NOWAIT finds a locked row."""

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
        # starting or stopping
        *(1047, 1053, 1077, 1078, 1079, 1080, 1927, 3032, 4031),
        *(1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184),  # the network
        *(1290, 1792, 1836),  # read-only
        *(1969, 3024),  # statement timeouts
    }
)
"""Errors of MariaDB and MySQL. Most other codes of an OperationalError mean a wrong statement."""

SQLITE_ERROR = 1
"""The error of SQLite for a wrong statement."""


def is_conflict(error: BaseException) -> bool:
    """Return whether a lock or change of another session caused the error. A retry may succeed."""
    return _code(error) in {*_ROLLED_BACK, _STATEMENT_TIMEOUT, _NOWAIT}


def has_rolled_back(error: BaseException) -> bool:
    """Return whether the transaction has certainly not committed, even if COMMIT was sent."""
    return _code(error) in _ROLLED_BACK


def _code(error: BaseException) -> str | int | None:
    """Return psycopg 3's sqlstate, psycopg2's pgcode, or mysqlclient's first argument."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if code is None and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return code


def is_server_away(error: BaseException) -> bool:
    """
    Return whether ``error`` means that the server is away, slow or read-only.

    Returns False for a wrong statement, such as one with a missing table or a value that the column
    cannot store, or after an earlier error in the transaction. What a client sends may cause these.
    Returns True for errors without a code.
    """
    if not isinstance(error, DATABASE_AWAY):
        return isinstance(error, BufferUnavailable)
    code = _code(error)
    if isinstance(code, str):
        return code.startswith(POSTGRESQL_AWAY)
    if sqlite_code := getattr(error.__cause__, "sqlite_errorcode", None):
        return bool(sqlite_code & 0xFF != SQLITE_ERROR)  # Higher bits are details.
    return not code or code in MYSQL_CLIENT_ERRORS or code in MYSQL_AWAY
