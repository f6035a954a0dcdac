"""The verbs through which every peer is fed. Standard library only.

    setup | enqueue N | bulk N | paced N SECONDS | hold NUMBER

The last line printed is a JSON document.
"""

import asyncio
import inspect
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from marks import now

CHUNK = 1000
Call = Callable[..., Any]


class Producer(NamedTuple):
    """How a peer is fed; every call may be a coroutine function."""

    one: Call  # number, stamp
    hold: Call  # number, stamp: the job that will be killed
    bulk: Call | None = None  # pairs of number and stamp
    setup: Call | None = None
    open: Call | None = None
    close: Call | None = None


def main(producer: Producer) -> None:
    """Do what the command line says, on an event loop only if the peer needs one."""
    waits = any(inspect.iscoroutinefunction(call) for call in producer)
    work = _verb(producer, asyncio.sleep if waits else _sleep)
    if waits:
        asyncio.run(work)
        return
    try:
        work.send(None)  # nothing in it ever waits
    except StopIteration:
        return
    raise RuntimeError("a producer without coroutines waited for one")


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251 - there is no loop to hold up


async def _called(call: Call | None, *arguments: Any) -> None:
    if call is not None:
        answer = call(*arguments)
        if inspect.isawaitable(answer):
            await answer


async def _verb(producer: Producer, sleep: Call) -> None:
    verb, arguments = sys.argv[1], sys.argv[2:]
    if verb == "setup":
        await _called(producer.setup)
        return
    await _called(producer.open)
    begin, number = time.perf_counter(), int(arguments[0])
    if verb == "hold":
        await _called(producer.hold, number, now())
    elif verb == "bulk" and producer.bulk is not None:
        for start in range(0, number, CHUNK):
            await _called(producer.bulk, [(job, now()) for job in range(start, min(start + CHUNK, number))])
    else:
        pace = float(arguments[1]) if verb == "paced" else 0.0
        for job in range(number):
            if (rest := begin + job * pace - time.perf_counter()) > 0:
                await sleep(rest)
            await _called(producer.one, job, now())
    print(json.dumps({"jobs": number, "seconds": time.perf_counter() - begin}), flush=True)
    await _called(producer.close)
