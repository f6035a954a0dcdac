"""PostgreSQL: what a claim and a start of a job write to the server's log."""

from __future__ import annotations

import os

import psycopg
import pytest

from millpond.store.postgres.floors import ALL
from millpond.store.postgres.statements import said
from millpond.store.sql.query import Many, Query
from tests.stores.acting import Node, new_job, put
from tests.stores.places import address_and_name

NUMBER, SIZE = 20, 1500  # a payload that stays in its row


@pytest.fixture
def server(postgres_url, open_at):
    return open_at(postgres_url)


def test_a_claim_and_a_start_do_not_write_a_short_payload_again(server, postgres_url):
    Node(server, "n1")
    with psycopg.connect(address_and_name(postgres_url)[0], autocommit=True) as connection:
        rounds = [_round(server, connection, number) for number in range(1, 6)]
    for written in zip(*rounds, strict=True):
        assert min(written) < NUMBER * SIZE / 2, rounds  # a checkpoint among them adds whole pages


def _round(server, connection, number):
    """The bytes of a claim and of a start of some jobs."""
    jobs = put(server, *(new_job(fresh=True, payload=os.urandom(SIZE)) for _ in range(NUMBER)))
    now = server.clock.now()
    claim = Query("claim_at_once", ("n1", number, ["default"], [NUMBER], now, [ALL], ALL, None))
    started = Many("start", [(job, "n1", 1, now) for job in jobs])
    return [_written(server, connection, request) for request in (claim, started)]


def _written(server, connection, request):
    text, parameters = said(request, server._names)
    with psycopg.RawCursor(connection) as cursor:
        cursor.execute(b"EXPLAIN (ANALYZE, WAL, FORMAT JSON) " + text, parameters)
        ((((plan,),),),) = [cursor.fetchall()]
    return plan["Plan"]["WAL Bytes"]
