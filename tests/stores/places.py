"""Where the stores under test live. Adding a store means adding one entry to PLACES.

MILLPOND_STORES=valkey,redis-cluster,pgbouncer runs the whole suite over those instead of the four.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from tests.servers import pgbouncer, postgres
from tests.servers import redis as redis_servers
from tests.servers.process import Missing


@contextmanager
def _memory(_folder: Path) -> Iterator[str]:
    yield "memory://"


@contextmanager
def _sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder / 'jobs.db'}"


@contextmanager
def _postgres(_folder: Path) -> Iterator[str]:
    url, schema = postgres.shared(), _name()
    yield postgres.with_schema(url, schema)
    postgres.drop(url, schema)


@contextmanager
def _pgbouncer(_folder: Path) -> Iterator[str]:
    url, schema = pgbouncer.shared(), _name()
    direct = quote(postgres.shared(), safe="")  # a notification cannot come through a pooler
    yield f"{postgres.with_schema(url, schema)}&listen={direct}"
    postgres.drop(postgres.shared(), schema)


def _of_redis(server: Callable[[], str]) -> Callable[[Path], AbstractContextManager[str]]:
    @contextmanager
    def place(_folder: Path) -> Iterator[str]:
        url = server()
        yield f"{url}{'&' if '?' in url else '?'}namespace={_name()}"

    return place


def address_and_name(url: str) -> tuple[str, str]:
    """The server behind a store's URL, and the schema or namespace that is the test's own."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    return parts._replace(query="").geturl(), options.get("schema") or options["namespace"]


def job_key(url: str, job: str, field: str) -> str:
    """The key that has a field of a job in Redis: its bucket is the beginning of the id."""
    bucket = job[:8] if job[14] == "7" else job[:3]
    return f"{{{address_and_name(url)[1]}}}:job:{field}:{bucket}"


def _name() -> str:
    return f"t{uuid.uuid4().hex[:16]}"


PLACES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgres": _postgres,
    "redis": _of_redis(redis_servers.shared),
    "valkey": _of_redis(redis_servers.shared_valkey),
    "redis-cluster": _of_redis(redis_servers.shared_cluster),
    "pgbouncer": _pgbouncer,
}
STORES = tuple(os.environ.get("MILLPOND_STORES", "memory,sqlite,postgres,redis").split(","))
SHARED = tuple(name for name in STORES if name != "memory")  # those that two handles can open
VARIANTS = ("valkey", "redis-cluster", "pgbouncer")
OPTIONAL = frozenset(VARIANTS)


@contextmanager
def place(name: str, folder: Path) -> Iterator[str]:
    """A URL at which nothing has ever been stored. A missing PostgreSQL or Redis is a failure."""
    context = PLACES[name](folder)
    try:
        url = context.__enter__()
    except Missing as error:
        if name in OPTIONAL and name not in os.environ.get("MILLPOND_STORES", ""):
            pytest.skip(str(error))
        pytest.fail(str(error), pytrace=False)
    try:
        yield url
    finally:
        context.__exit__(None, None, None)
