"""How long a server is waited for: the usual bounds, and shorter ones for who must hear sooner."""

from __future__ import annotations

import re

import pytest

from millpond.store.postgres.connection import PatientConnection
from millpond.store.postgres.store import PostgresStore
from millpond.store.postgres.timeouts import ANSWER, bounds
from millpond.store.redis.connection import TIMEOUT
from millpond.store.redis.store import RedisStore

SILENCE = "idle_in_transaction_session_timeout"


@pytest.mark.parametrize("patience", [0.1, 1.0, 3.3, 5.0, 20.0, 1000.0])
def test_no_bound_is_above_the_patience_nor_above_the_usual(patience):
    usual, short = bounds(), bounds(patience)
    assert short.answer == min(ANSWER, patience)
    assert short.unacknowledged <= min(usual.unacknowledged, patience * 1000)
    assert 1 <= short.connect <= max(1, min(usual.connect, patience))  # 0 would be for ever
    assert limits(short.session) == limits(short.begin)
    for name, limit in limits(short.session).items():
        if name == SILENCE:  # ours, not the server's: it does not matter how soon we hear of a dead one
            assert limit == limits(usual.session)[name]
            continue
        assert 0 < limit <= limits(usual.session)[name]
        assert limit < short.answer * 1000


def limits(text: str) -> dict[str, int]:
    """The timeouts that these statements set, in milliseconds."""
    found = {name: int(value) for name, value in re.findall(r"(\w+_timeout) = (\d+)", text)}
    assert len(found) == 3
    return found


def test_a_session_of_an_impatient_store_is_ended_by_its_server_soon(postgres_url):
    store = PostgresStore(postgres_url, patience=1.4)
    store.migrate()
    with store._connection() as connection:
        assert isinstance(connection, PatientConnection)
        assert connection.execute("SHOW statement_timeout").fetchall() == [("1200ms",)]
        assert connection.patience == 1.4
    store.close()


def test_an_impatient_store_in_redis_waits_less_and_none_waits_longer_than_usual():
    url = "redis://127.0.0.1:1/0"
    waits = [RedisStore(url, patience=patience)._server.patience for patience in (1.5, 60.0, None)]
    assert waits == [1.5, TIMEOUT, TIMEOUT]
