"""Verbs over many jobs go page by page: what a later page's failure means for those before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millpond.errors import OutcomeUnknown, StoreBusy, StoreError
from millpond.job import Failure, JobState, Raised
from millpond.store.postgres.store import PostgresStore
from millpond.store.protocol import PAGE, Filter, Retention
from millpond.store.redis.store import RedisStore
from tests.stores.acting import OK, AnyStore, Node, put_many, tally, travel

NUMBER = PAGE + 500
WRITES = ("cancel", "replay", "discard", "prune")
FAILED = Raised(Failure("E", "no"), final=True)
VERBS: dict[str, Callable[[AnyStore], int]] = {
    "cancel": lambda store: store.cancel(Filter()),
    "replay": lambda store: store.replay(Filter()),
    "discard": lambda store: store.prune(Retention(), Filter(states=(JobState.COMPLETED, JobState.DEAD))),
    "prune": lambda store: store.prune(Retention(completed=1.0, dead=1.0)),
}


def jobs_for(verb: str, store: AnyStore) -> None:
    """Jobs of more than one page that the verb applies to."""
    put_many(store, NUMBER)
    if verb != "cancel":
        node = Node(store)
        while claimed := node.claim(500):
            node.settle(*claimed, outcome=FAILED if verb == "replay" else OK)
    travel(store, 5.0)


def fail_page(monkeypatch: pytest.MonkeyPatch, store: Any, verb: str, number: int, error: StoreError) -> None:
    """Let the page of this number fail as if its store had refused it."""
    # Before it deletes page by page, PostgreSQL makes tables for the next days and drops those of old ones
    pages = -2 if isinstance(store, PostgresStore) and verb == "prune" else 0
    where, name = (store._server, "run") if isinstance(store, RedisStore) else (store, "write")
    run = getattr(where, name)

    def counted(first: Any, *words: Any, **facts: Any) -> Any:
        nonlocal pages
        pages += not isinstance(first, str) or first in WRITES
        if pages == number:
            raise error
        return run(first, *words, **facts)

    monkeypatch.setattr(where, name, counted)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("error", [StoreBusy, OutcomeUnknown])
def test_a_later_page_that_fails_counts_what_was_done_before(store, monkeypatch, verb, error):
    jobs_for(verb, store)
    with monkeypatch.context() as patch:
        fail_page(patch, store, verb, 2, error("locked for 5 s; nothing was written"))
        with pytest.raises(error, match=r"^\d+00 jobs were done before.*repeat.*locked for 5 s") as failed:
            VERBS[verb](store)
    done = failed.value.done
    assert 0 < done <= PAGE
    assert VERBS[verb](store) == NUMBER - done


@pytest.mark.parametrize("verb", VERBS)
def test_a_first_page_that_fails_is_told_as_it_is(store, monkeypatch, verb):
    jobs_for(verb, store)
    before = tally(store)
    with monkeypatch.context() as patch:
        fail_page(patch, store, verb, 1, StoreBusy("locked for 5 s; nothing was written"))
        with pytest.raises(StoreBusy, match=r"^locked for 5 s; nothing was written$") as failed:
            VERBS[verb](store)
    assert failed.value.done == 0
    assert tally(store) == before
