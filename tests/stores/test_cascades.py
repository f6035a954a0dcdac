"""Jobs behind jobs that ended, on SQL: a step reaches many at once, and is bounded whatever they are."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from millpond.job import Failure, Raised
from millpond.store.postgres.statements import said
from millpond.store.protocol import Claim, Filter
from millpond.store.sql import after_end
from millpond.store.sql.query import Query
from tests.stores.acting import Node, new_job, put, put_many, state, tally

FINAL = Raised(Failure("E", "no"), final=True)


@pytest.fixture
def statements(sql_store: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what the store is asked, in order."""
    asked: list[str] = []
    real = sql_store._answer

    def noted(connection: Any, request: Any, *more: Any) -> Any:
        asked.append(getattr(request, "name", ""))
        return real(connection, request, *more)

    monkeypatch.setattr(sql_store, "_answer", noted)
    return asked


def test_children_with_one_child_each_fall_many_to_a_step(sql_store, monkeypatch):
    """Each of them is a cascade of its own, and ten to a claim took hundreds of claims."""
    monkeypatch.setattr(after_end, "REACHED", 100)
    node = Node(sql_store)
    (root,) = put(sql_store, new_job())
    children = put_many(sql_store, 150, queue="behind", depends_on=(root,))
    put(sql_store, *(new_job(queue="behind", depends_on=(child,)) for child in children))
    node.run(FINAL)
    steps = 0
    while tally(sql_store, "behind") != {"cancelled": 300}:
        steps += 1
        assert steps <= 6, tally(sql_store, "behind")
        before = tally(sql_store, "behind")["cancelled"]
        node.exchange(claims=[Claim("empty", 1)])
        assert before < tally(sql_store, "behind")["cancelled"] <= before + 100


def test_a_deep_chain_falls_in_exchanges_of_few_statements(sql_store, statements):
    """Each generation takes three. All of them in one exchange were a transaction of thousands."""
    node = Node(sql_store)
    jobs = [new_job()]
    for _ in range(350):
        jobs.append(new_job(queue="behind", depends_on=(jobs[-1].id,)))
    put(sql_store, *jobs)
    job = node.claim_one()
    settlement = node.verdict(job, FINAL)
    exchanges, more = 0, True
    while more:
        statements.clear()
        answer = node.exchange(settlements=[settlement] if not exchanges else (), claims=[Claim("empty", 1)])
        more, exchanges = answer.more, exchanges + 1
        assert len(statements) < 700  # for a hundred generations, and a hundred that the claim goes on with
    assert tally(sql_store, "behind") == {"cancelled": 350}


def test_a_deep_chain_that_is_cancelled_falls_to_the_last(sql_store):
    jobs = [new_job()]
    for _ in range(250):
        jobs.append(new_job(depends_on=(jobs[-1].id,)))
    put(sql_store, *jobs)
    assert sql_store.cancel(Filter(ids=(jobs[0].id,))) == 1
    assert tally(sql_store) == {"cancelled": 251}


# --- where others lock them --------------------------------------------------------------------------------
def test_one_parent_with_very_many_locked_dependents_holds_up_no_other(shared, other, monkeypatch):
    """A step reads only so many links: those of the first parent were all that it ever read."""
    monkeypatch.setattr(after_end, "REACHED", 10)
    node = Node(shared)
    broad, narrow = put_many(shared, 2)
    locked = put_many(shared, 20, queue="behind", depends_on=(broad,))
    (free,) = put(shared, new_job(queue="behind", depends_on=(narrow,)))
    other.execute(f"SELECT id FROM {shared.schema}.jobs WHERE state = 'blocked' FOR UPDATE".encode())
    node.settle(*node.claim())
    other.rollback()
    shared.enqueue([new_job(queue="behind", depends_on=tuple(locked))], transaction=other)
    for _ in range(100):
        node.exchange(claims=[Claim("empty", 1)])
        if state(shared, free) == "queued":
            break
    assert [state(shared, job) for job in (free, locked[0])] == ["queued", "blocked"]


def test_a_step_that_goes_on_looks_at_few_of_very_many_parents(shared, other):
    """Sorted by lot, every claim of every node read all of them."""
    other.execute(
        f"INSERT INTO {shared.schema}.cascades SELECT gen_random_uuid(), 'dead' "
        f"FROM generate_series(1, {20 * after_end.CASCADES})".encode()
    )
    other.execute(f"ANALYZE {shared.schema}.cascades".encode())
    text, parameters = said(Query("next_cascades", (after_end.CASCADES,)), shared._names)
    with psycopg.RawCursor(other) as cursor:
        for _ in range(5):
            cursor.execute(b"EXPLAIN (ANALYZE, FORMAT JSON) " + text, parameters)
            ((((plan,),),),) = [cursor.fetchall()]
            assert 0 < _scanned(plan["Plan"]) <= 2 * after_end.CASCADES


def _scanned(node: dict[str, Any]) -> int:
    """The rows that a plan has read of the cascades."""
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) if "Relation Name" in node else 0
    return int(own * node.get("Actual Loops", 1)) + sum(_scanned(child) for child in node.get("Plans", ()))
