"""The waiting line: priorities, bounds, age, and lines of one's own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from millpond import OptionError, Pool, PoolClosed, PoolFull, TaskExpired
from millpond.pool.admission import MANY
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, Gate, answers, holder

KINDS = ["process", "thread", "async"]
MakePool = Callable[..., Pool]
pytestmark = pytest.mark.timeout(40)


def one_at_a_time(kind: str) -> dict[str, Any]:
    """The options under which a pool runs exactly one task."""
    return {"max_workers": 1, "kind": kind, "concurrency": 1 if kind == "async" else None}


def in_background(action: Callable[[], Any]) -> Future[Any]:
    """Run something that may block in a thread of its own."""
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(action())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome


# --- order ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_higher_priorities_run_first_and_equals_in_the_order_of_their_submit(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**one_at_a_time(kind))
    first = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = [
        pool.using(priority=priority).submit(tasks.note, journal, f"{priority}.{turn}")
        for turn in range(3)
        for priority in (0, 5, -2, 9)
    ]
    gate.let_pass()
    answers([first, *waiting])
    assert tasks.lines(journal) == [f"{priority}.{turn}" for priority in (9, 5, 0, -2) for turn in range(3)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fifo_line_ignores_priorities(kind: str, new_pool: MakePool, gate: Gate, journal: Path) -> None:
    pool = new_pool(**one_at_a_time(kind), queue="fifo")
    first = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = [
        pool.using(priority=number % 3).submit(tasks.note, journal, str(number)) for number in range(9)
    ]
    gate.let_pass()
    answers([first, *waiting])
    assert tasks.lines(journal) == [str(number) for number in range(9)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_urgent_task_overtakes_a_flood_of_short_ones(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**one_at_a_time(kind))
    answers([pool.submit(tasks.note, journal, "warm") for _ in range(20)])  # short, and known to be
    first = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    flood = [pool.submit(tasks.note, journal, "flood") for _ in range(2000)]
    urgent = pool.using(priority=1).submit(tasks.note, journal, "urgent")
    gate.let_pass()
    answers([first, urgent, *flood])
    assert tasks.lines(journal).index("urgent") < 20 + 600


# --- a line of one's own -------------------------------------------------------------------------------
class LastComesFirst:
    """A queue of a user: three methods and no more."""

    def __init__(self) -> None:
        self._tasks: deque[Any] = deque()

    def put(self, task: Any) -> None:
        self._tasks.append(task)

    def take(self) -> Any:
        return self._tasks.pop()

    def __len__(self) -> int:
        return len(self._tasks)


class ShortestNameFirst(LastComesFirst):
    """Orders by what a queue may look at."""

    def take(self) -> Any:
        chosen = min(self._tasks, key=lambda task: (len(task.name), task.submitted_at))
        self._tasks.remove(chosen)
        return chosen


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_of_three_methods_decides_the_order(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**one_at_a_time(kind), queue=LastComesFirst)
    first = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = [pool.submit(tasks.note, journal, str(number)) for number in range(20)]
    gate.let_pass()
    answers([first, *waiting])
    assert tasks.lines(journal) == [str(number) for number in reversed(range(20))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_may_look_at_names_and_times(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**one_at_a_time(kind), queue=ShortestNameFirst)
    first = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    long_name = pool.submit(tasks.leave_a_line, journal)
    short_name = pool.submit(tasks.note, journal, "short")
    gate.let_pass()
    answers([first, long_name, short_name])
    assert tasks.lines(journal)[0] == "short"


def test_an_async_pool_fills_its_slots_from_any_queue(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind="async", concurrency=3, queue=LastComesFirst)
    together = [pool.submit(tasks.hold_async, gate.folder, number) for number in range(3)]
    gate.arrive(3)
    gate.open()
    assert answers(together) == [0, 1, 2]


def test_a_flood_through_a_queue_of_ones_own_loses_nothing(new_pool: MakePool) -> None:
    pool = new_pool(2, queue=LastComesFirst)
    assert answers([pool.submit(tasks.square, n) for n in range(500)]) == [n * n for n in range(500)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["put", "take", "__len__"])
def test_a_queue_that_lacks_a_method_is_refused(kind: Any, missing: str) -> None:
    methods = {name: value for name, value in vars(LastComesFirst).items() if name != missing}
    lacking = type("Lacking", (), methods)
    with pytest.raises(OptionError, match="lacks"):
        Pool(1, kind=kind, queue=lacking)


# --- bounds --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_full_line_refuses_at_once_when_told_to_raise(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=2, when_full="raise")
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = [pool.submit(tasks.square, number) for number in range(2)]
    with pytest.raises(PoolFull, match="max_queue=2"):
        pool.submit(tasks.square, 3)
    gate.let_pass()
    answers([running, *waiting])
    assert pool.submit(tasks.square, 4).result(PATIENCE) == 16


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_task_leaves_no_trace(kind: str, new_pool: MakePool, gate: Gate, journal: Path) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=1, when_full="raise")
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = pool.submit(tasks.note, journal, "accepted")
    for _ in range(3):
        with pytest.raises(PoolFull):
            pool.submit(tasks.note, journal, "refused")
    assert pool.statistics().submitted == 2
    gate.let_pass()
    answers([running, waiting])
    assert tasks.lines(journal) == ["accepted"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_blocked_submit_goes_on_when_room_appears(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=1)
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = pool.submit(tasks.square, 2)
    blocked = in_background(lambda: pool.submit(tasks.square, 3))
    with pytest.raises(TimeoutError):
        blocked.result(0.05)
    gate.let_pass()
    assert blocked.result(PATIENCE).result(PATIENCE) == 9
    assert answers([running, waiting]) == ["-", 4]


@pytest.mark.parametrize("kind", KINDS)
def test_a_blocked_submit_is_told_when_the_pool_is_shut_down(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=1)
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = pool.submit(tasks.square, 2)
    blocked = in_background(lambda: pool.submit(tasks.square, 3))
    with pytest.raises(TimeoutError):
        blocked.result(0.05)
    pool.shutdown(wait=False)
    with pytest.raises(PoolClosed):
        blocked.result(PATIENCE)
    gate.let_pass()
    assert answers([running, waiting]) == ["-", 4]


@pytest.mark.parametrize("kind", KINDS)
def test_many_blocked_submitters_all_get_through_a_narrow_line(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind, max_queue=1)
    many = [in_background(partial(pool.submit, tasks.square, n)) for n in range(40)]
    assert sorted(answers(answers(many))) == sorted(n * n for n in range(40))


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_through_a_narrow_line_is_whole(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind, max_queue=3)
    assert list(pool.map(tasks.square, range(300), timeout=PATIENCE)) == [n * n for n in range(300)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_task_gives_its_place_in_the_line_back(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=1, when_full="raise")
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    assert pool.submit(tasks.square, 2).cancel()
    gate.let_pass()
    running.result(PATIENCE)
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_is_cancelled_behind_a_long_one_leaves_its_place_and_the_count_at_once(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=4, when_full="raise")
    pool.submit(holder(kind), gate.folder)
    gate.arrive()
    for _ in range(3):
        waiting = [pool.submit(tasks.square, n) for n in range(4)]
        assert pool.statistics().queued == 4
        assert all(future.cancel() for future in waiting)
        assert pool.statistics().queued == 0


@pytest.mark.parametrize("kind", KINDS)
def test_cancelled_tasks_do_not_gather_behind_a_long_one(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=2, when_full="raise")
    held = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    wanted = pool.submit(tasks.square, 5)
    for n in range(3 * MANY):
        assert pool.submit(tasks.square, n).cancel()
    until = time.monotonic() + PATIENCE
    while len(pool._engine.queue) > MANY + 1:  # a dispatcher has them taken out soon
        assert time.monotonic() < until
    gate.let_pass()
    assert held.exception(PATIENCE) is None
    assert wanted.result(PATIENCE) == 25
    assert pool.statistics().queued == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_cannot_be_pickled_takes_no_place_in_the_line(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, max_queue=1, when_full="raise")
    pool.submit(tasks.square, 1).result(PATIENCE)
    for _ in range(5):
        pool.submit(tasks.identity, threading.Lock()).exception(PATIENCE)
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_done_callback_that_submits_to_a_full_pool_never_blocks_it(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=1)
    outcomes: list[Any] = []
    told = threading.Event()

    def follow_up(_: Future[Any]) -> None:
        try:
            outcomes.extend(pool.submit(tasks.square, number) for number in range(3))
        except PoolFull as error:
            outcomes.append(error)
        told.set()

    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    running.add_done_callback(follow_up)
    waiting = pool.submit(tasks.square, 5)
    gate.let_pass()
    assert told.wait(PATIENCE)
    assert waiting.result(PATIENCE) == 25
    assert all(isinstance(o, PoolFull) or isinstance(o.result(PATIENCE), int) for o in outcomes)


# --- age -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_waited_too_long_is_rejected_while_every_worker_is_busy(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue_age=0.1)
    running = pool.using(max_queue_age=None).submit(holder(kind), gate.folder)
    gate.arrive()
    began = time.monotonic()
    stale = [pool.submit(tasks.note, journal, "ran late") for _ in range(3)]
    for future in stale:
        with pytest.raises(TaskExpired, match=r"note waited \d+\.\d+ s and was rejected"):
            future.result(PATIENCE)
    assert 0.1 <= time.monotonic() - began < 5
    assert not running.done()
    gate.let_pass()
    assert running.result(PATIENCE) == "-"
    assert not tasks.lines(journal)
    assert pool.statistics().expired == 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_age_limit_can_be_set_and_lifted_for_some_tasks(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue_age=0.05)
    running = pool.using(max_queue_age=None).submit(holder(kind), gate.folder)
    gate.arrive()
    patient = pool.using(max_queue_age=None).submit(tasks.square, 3)
    late = pool.using(max_queue_age="100ms").submit(tasks.square, 4)
    with pytest.raises(TaskExpired):
        late.result(PATIENCE)
    assert not patient.done()
    gate.let_pass()
    assert running.result(PATIENCE) == "-"
    assert patient.result(PATIENCE) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_running_task_may_be_older_than_the_age_limit(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue_age="5s")
    running = pool.using(max_queue_age=2).submit(holder(kind), gate.folder)
    gate.arrive()
    with pytest.raises(TaskExpired):
        pool.using(max_queue_age=2.2).submit(tasks.square, 2).result(PATIENCE)
    gate.let_pass()
    assert running.result(PATIENCE) == "-"


@pytest.mark.parametrize("kind", KINDS)
def test_an_expired_task_gives_its_place_in_the_line_back(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind), max_queue=1, when_full="raise")
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    with pytest.raises(TaskExpired):
        pool.using(max_queue_age=0.05).submit(tasks.square, 2).result(PATIENCE)
    accepted = pool.submit(tasks.square, 3)
    gate.let_pass()
    assert answers([running, accepted]) == ["-", 9]


def test_the_age_limit_holds_for_tasks_sent_ahead_to_a_worker_that_got_stuck(
    new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(1)
    answers([pool.submit(tasks.note_or_hold, None, journal, "warm") for _ in range(200)])
    stuck = pool.submit(tasks.note_or_hold, gate.folder, journal, "stuck")
    behind = [
        pool.using(max_queue_age=0.2).submit(tasks.note_or_hold, None, journal, "behind") for _ in range(20)
    ]
    gate.arrive()
    for future in behind:
        with pytest.raises(TaskExpired):
            future.result(5)
    gate.let_pass()
    stuck.result(PATIENCE)
    assert "behind" not in tasks.lines(journal)
