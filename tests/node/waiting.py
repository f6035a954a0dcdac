"""Waiting for what must come true, with a bound that only a failure reaches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from millpond.job import ENDS, Job

BOUND = 30.0


def until(question: Callable[[], Any], what: str = "it", bound: float = BOUND) -> Any:
    """Ask until the answer is true; returns it."""
    end = time.monotonic() + bound
    while not (answer := question()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {bound:g} s")
        time.sleep(0.005)
    return answer


def ended(handle: Any) -> Job:
    """The job, once it has ended."""
    return until(lambda: (job := handle.job()).state in ENDS and job, f"the end of {handle.id}")  # type: ignore[no-any-return]


def all_ended(handles: Iterable[Any]) -> list[Job]:
    """All of them, once they have ended."""
    return [ended(handle) for handle in handles]
