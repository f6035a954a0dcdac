"""The threads in which the API asks its store."""

from __future__ import annotations

import asyncio
import threading

import pytest

from millpond.api.options import Limits
from millpond.api.problems import Problem
from millpond.api.store_threads import Threads


async def test_a_request_that_comes_while_the_server_stops_is_refused_and_not_an_error():
    threads = Threads(Limits())
    assert await threads.call(len, "abc") == 3
    threads.close()
    with pytest.raises(Problem, match="stopping"):
        await threads.call(len, "abc")


async def test_a_request_that_stands_in_line_while_the_server_stops_is_refused_and_not_an_error():
    threads, go = Threads(Limits(threads=1)), threading.Event()
    first = asyncio.create_task(threads.call(go.wait, 30))
    second = asyncio.create_task(threads.call(len, "abc"))
    await asyncio.sleep(0)  # both have been handed over
    threads.close()
    with pytest.raises(Problem, match="stopping"):
        await second
    go.set()
    assert await first


async def test_a_request_that_is_given_up_is_cancelled_as_ever():
    threads, go = Threads(Limits(threads=1)), threading.Event()
    request = asyncio.create_task(threads.call(go.wait, 30))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    go.set()
    threads.close()
