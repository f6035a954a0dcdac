"""Rows of the statistics are locked in one order: two transactions in crossing order would deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from millpond.store.protocol import Tick
from tests.stores.acting import new_job

QUEUES = [f"q{number:02}" for number in range(30)]
MIDDLE = QUEUES[15]
WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
CALLS: dict[str, Callable[[Any, int], object]] = {
    "enqueue": lambda store, _: store.enqueue([new_job(queue=queue, fresh=True) for queue in QUEUES]),
    "plan": lambda store, at: store.plan([Tick(f"t{queue}", at, new_job(queue=queue)) for queue in QUEUES]),
}


@pytest.mark.parametrize("call", CALLS)
def test_jobs_of_many_queues_are_counted_in_the_order_of_their_names(shared, other, call):
    shared.clock.freeze()
    CALLS[call](shared, 1)
    rows = f"{shared.schema}.minutes WHERE what = 'enqueued'"
    other.execute(f"SELECT * FROM {rows} AND queue = '{MIDDLE}' FOR UPDATE".encode())
    thread = threading.Thread(target=CALLS[call], args=(shared, 2))
    thread.start()
    try:
        while other.execute(WAITS).fetchall() == [(0,)]:
            assert thread.is_alive()
        free = other.execute(f"SELECT queue FROM {rows} FOR UPDATE SKIP LOCKED".encode()).fetchall()
    finally:
        other.rollback()
        thread.join()
    assert sorted(row[0] for row in free) == QUEUES[QUEUES.index(MIDDLE) :]
