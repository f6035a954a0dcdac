"""Whatever an object does when it is pickled, rebuilt or destroyed, its own task pays and the pool goes on.

These are promises that users of other executors rely on: each object, harm and place has its case.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from millpond import PayloadError, Pool, PoolError, WorkerDied
from tests.pool import misfits
from tests.pool.misfits import HARMS, HarmError, WhenDestroyed, WhenPickled, WhenRebuilt

LONG = 60
CONTEXTS = (None, "fork", "spawn", "forkserver")


@pytest.fixture(params=CONTEXTS, ids=str, scope="module")
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    context = multiprocessing.get_context(request.param) if request.param else None
    with Pool(2, mp_context=context) as made:
        yield made


def outcome_of(pool: Pool, function: Callable[..., Any], *args: Any) -> BaseException | Any:
    """The outcome of one task among neighbours, all of which must have their results."""
    before = [pool.submit(misfits.call, pow, 2, n) for n in range(5)]
    middle = pool.submit(function, *args)
    after = [pool.submit(misfits.call, pow, 3, n) for n in range(5)]
    assert [future.result(LONG) for future in before] == [2**n for n in range(5)]
    assert [future.result(LONG) for future in after] == [3**n for n in range(5)]
    return middle.exception(LONG) or middle.result()


def assert_ends_named(outcome: object, harm: str) -> None:
    """An error that cannot travel is named by one that can; a worker that it ended is a worker that died."""
    if harm in ("error", "sys.exit"):
        assert isinstance(outcome, RuntimeError), outcome
        assert "HarmfulError, which cannot be sent back" in str(outcome)
    else:
        assert isinstance(outcome, WorkerDied), outcome


@pytest.mark.parametrize("harm", HARMS)
def test_an_argument_that_does_harm_where_it_is_rebuilt(pool: Pool, harm: str) -> None:
    outcome = outcome_of(pool, misfits.take, WhenRebuilt(harm))
    expected = PayloadError if harm in ("error", "sys.exit") else WorkerDied
    assert isinstance(outcome, expected), outcome


@pytest.mark.parametrize("harm", HARMS)
def test_a_result_that_does_harm_when_it_is_pickled(pool: Pool, harm: str) -> None:
    outcome = outcome_of(pool, misfits.make, WhenPickled, harm)
    # As in a ProcessPoolExecutor: what pickling raises is the outcome
    expected = {"error": HarmError, "sys.exit": SystemExit}.get(harm, WorkerDied)
    assert isinstance(outcome, expected), outcome


@pytest.mark.parametrize("harm", ["error", "sys.exit"])
def test_a_result_that_does_harm_where_it_is_rebuilt(pool: Pool, harm: str) -> None:
    outcome = outcome_of(pool, misfits.make, WhenRebuilt, harm)
    assert isinstance(outcome, PayloadError), outcome


@pytest.mark.parametrize("harm", HARMS)
def test_an_error_that_does_harm_when_it_is_pickled(pool: Pool, harm: str) -> None:
    outcome = outcome_of(pool, misfits.raise_with, WhenPickled, harm)
    assert_ends_named(outcome, harm)


@pytest.mark.parametrize("harm", ["error", "sys.exit"])
def test_an_error_that_does_harm_where_it_is_rebuilt(pool: Pool, harm: str) -> None:
    outcome = outcome_of(pool, misfits.raise_with, WhenRebuilt, harm)
    assert_ends_named(outcome, harm)


@pytest.mark.parametrize("harm", HARMS)
def test_an_argument_that_does_harm_when_it_is_destroyed(pool: Pool, harm: str) -> None:
    outcome = outcome_of(pool, misfits.take, WhenDestroyed(harm))
    assert outcome == "WhenDestroyed" or isinstance(outcome, WorkerDied), outcome


@pytest.mark.parametrize(("kind", "harm"), [(WhenPickled, "error"), *((WhenRebuilt, harm) for harm in HARMS)])
def test_a_callback_may_submit_what_does_harm(pool: Pool, kind: type, harm: str) -> None:
    inner: Future[Future[Any]] = Future()

    def submit_more(_done: Future[Any]) -> None:
        inner.set_result(pool.submit(misfits.take, kind(harm)))

    pool.submit(misfits.call, int).add_done_callback(submit_more)
    assert isinstance(inner.result(LONG).exception(LONG), PoolError | HarmError)
    assert pool.submit(misfits.call, int).result(LONG) == 0


def test_an_iterable_that_raises_fails_the_map_and_not_the_pool(pool: Pool) -> None:
    with pytest.raises(HarmError):
        list(pool.map(misfits.call, [int] * 3, misfits.numbers_then_error(2)))
    assert list(pool.map(misfits.call, [int] * 3)) == [0, 0, 0]
