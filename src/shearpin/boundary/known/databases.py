"""Databases: SQLite, PostgreSQL drivers, SQLAlchemy, Redis.

Contract: SQL is the model's own text more often than not, so that what a database says against it
is an answer to react to. A lock, a deadlock and a serialization failure were rolled back: safe.

*Source*: PostgreSQL's appendix A, classes of SQLSTATE; SQLite's result codes.
"""

from __future__ import annotations

from shearpin.boundary.known.kinds import Family, Kind, Weight, degradable, fatal, retryable

__all__ = ["FAMILIES", "SQLITE_CODES", "SQL_CLASSES", "SQL_STATES"]

SQL_STATES: dict[str, Kind] = {
    "40001": retryable("conflict", safe=True),
    "40P01": retryable("conflict", safe=True),
    "55P03": retryable("conflict", safe=True),
    "57014": retryable("timeout"),
    "57P01": retryable("network"),
    "57P02": retryable("network"),
    "57P03": retryable("overloaded", safe=True),
    "42501": fatal("permission"),
}
SQL_CLASSES: dict[str, Kind] = {
    "08": retryable("network"),
    "53": retryable("overloaded"),
    "28": fatal("authentication"),
    "22": degradable("invalid_arguments"),
    "23": degradable("conflict"),
    "42": degradable("invalid_arguments"),
}

SQLITE_CODES: dict[int, Kind] = {
    5: retryable("conflict", safe=True),
    6: retryable("conflict", safe=True),
    19: degradable("conflict"),
    1: degradable("invalid_arguments"),
}
"""By primary result code: busy, locked, constraint, error in the SQL."""

_DRIVER: dict[str, Kind] = {
    "IntegrityError": degradable("conflict"),
    "DataError": degradable("invalid_arguments"),
    "ProgrammingError": degradable("invalid_arguments"),
    "PoolTimeout": retryable("timeout", safe=True),
    "TimeoutError": retryable("timeout", weight=Weight.BROAD),
    "OperationalError": degradable("unavailable", weight=Weight.BROAD),
    "InterfaceError": degradable("unavailable", weight=Weight.BROAD),
    "NoResultFound": degradable("not_found"),
    "MultipleResultsFound": degradable("invalid_arguments"),
    "ArgumentError": fatal("programming"),
    "InvalidRequestError": fatal("programming"),
    "DBAPIError": degradable("tool_error", weight=Weight.BROAD),
    "PostgresError": degradable("tool_error", weight=Weight.BROAD),
    "Error": degradable("tool_error", weight=Weight.BROAD),
}

# Without a state, it is the connection that failed and not the server that said so.
_POSTGRESQL: dict[str, Kind] = {
    **_DRIVER,
    "OperationalError": retryable("network", weight=Weight.BROAD),
    "InterfaceError": retryable("network", weight=Weight.BROAD),
}

_REDIS: dict[str, Kind] = {
    "AuthenticationError": fatal("authentication"),
    "AuthenticationWrongNumberOfArgsError": fatal("authentication"),
    "AuthorizationError": fatal("permission"),
    "NoPermissionError": fatal("permission"),
    "BusyLoadingError": retryable("overloaded", safe=True),
    "MaxConnectionsError": retryable("overloaded", safe=True),
    "TryAgainError": retryable("overloaded", safe=True),
    "ClusterDownError": retryable("overloaded", safe=True),
    "TimeoutError": retryable("timeout"),
    "ConnectionError": retryable("network", weight=Weight.BROAD),
    "WatchError": retryable("conflict", safe=True),
    "LockError": degradable("conflict"),
    "DataError": degradable("invalid_arguments"),
    "ResponseError": degradable("invalid_arguments"),
    "RedisError": degradable("tool_error", weight=Weight.BROAD),
}

FAMILIES = (
    Family(("psycopg", "psycopg_pool", "psycopg2", "asyncpg"), _POSTGRESQL),
    Family(("sqlite3", "aiosqlite", "sqlalchemy", "pymysql", "MySQLdb", "duckdb"), _DRIVER),
    Family(("redis",), _REDIS),
)
