"""Verbs over any number of jobs, page by page: each page is a step of its own, and stays done.

So an error of a later page must never read as if nothing had happened: it carries the number of jobs that
were done before.
"""

from __future__ import annotations

from collections.abc import Iterable

from millpond.errors import StoreError


def total(pages: Iterable[int]) -> int:
    """The sum of all pages. An error of a later one is raised in its own class, with what was done before."""
    done = 0
    try:
        for number in pages:
            done += number
    except StoreError as error:
        if not done:
            raise
        partly = type(error)(
            f"{done} jobs were done before, and stay so; repeat the call for the rest. Then: {error}"
        )
        partly.done = done
        raise partly from error
    return done
