"""From a URL to a store. The driver of a store is imported only when that store is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from millpond.config import hide_password
from millpond.errors import OptionError, StoreRefused

if TYPE_CHECKING:
    from millpond.store.protocol import Store

EXAMPLES = "sqlite:///jobs.db, postgresql://user@host/database, redis://host:6379/0 or memory://"


def open_store(url: str, *, patience: float | None = None) -> Store:
    """The store behind a URL. Nothing is connected yet. With `patience`, no answer of a server is waited for
    longer; a file has no connection that could be dead, and its lock comes to who goes on waiting."""
    if not isinstance(url, str):
        raise OptionError(f"a store is a URL or a store object, not {type(url).__name__}: use {EXAMPLES}")
    try:
        return _opened(url, urlsplit(url).scheme, patience)
    except OptionError:
        raise
    except ValueError as error:  # a port or an address that cannot be one
        raise OptionError(f"{hide_password(url)!r} is not a store ({error}): use {EXAMPLES}") from None


def _opened(url: str, scheme: str, patience: float | None) -> Store:
    if scheme == "memory":
        return _sqlite(":memory:")
    if scheme == "sqlite":
        return _sqlite(_path(url))
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, patience)
    if scheme in ("redis", "rediss", "valkey", "valkeys", "unix"):
        return _redis(url, patience)
    raise OptionError(f"{hide_password(url)!r} is not a store: use {EXAMPLES}")


def _path(url: str) -> str:
    """sqlite:///jobs.db is relative, sqlite:////var/jobs.db absolute: as everybody else has it."""
    rest = url.removeprefix("sqlite://")
    if "?" in rest or "#" in rest:
        raise OptionError(f"{url!r}: a SQLite store takes no options; sqlite:///jobs.db is all there is")
    if "\0" in rest:
        raise OptionError(f"{url!r}: no file has NUL in its name; use sqlite:///jobs.db")
    if not rest.startswith("/") or len(rest) < 2:
        raise OptionError(f"{url!r} names no file: use sqlite:///jobs.db, or sqlite:////var/lib/jobs.db")
    return rest[1:]


def _sqlite(path: str) -> Store:
    from millpond.store.sqlite.store import SQLiteStore

    return SQLiteStore(path)


def _postgres(url: str, patience: float | None) -> Store:
    try:
        from millpond.store.postgres.store import PostgresStore
    except ImportError as error:
        raise StoreRefused(
            f'PostgreSQL needs its driver: pip install "millpond[postgres]" ({error})'
        ) from error
    return PostgresStore(url, patience=patience)


def _redis(url: str, patience: float | None) -> Store:
    try:
        from millpond.store.redis.store import RedisStore
    except ImportError as error:
        raise StoreRefused(f'Redis needs its driver: pip install "millpond[redis]" ({error})') from error
    return RedisStore(url, patience=patience)
