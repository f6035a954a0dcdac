"""Ticks of recurring tasks as a user's test sees them: time moves when the test says so."""

from __future__ import annotations

from typing import Any

import pytest

from millpond import App, OptionError, Retry, Slot
from millpond.job import MICROSECONDS
from millpond.orchestrator import planner
from millpond.orchestrator.ledger import SHARDS, Ledger
from millpond.recurring import RecurringTask, all_missed, fresh, same_tick
from millpond.testing import Testing

ran: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_ran():
    ran.clear()


@pytest.fixture
def app() -> App:
    return App("memory://")


def make(app: App, name: str, **options: Any) -> RecurringTask[..., Any]:
    """A task that notes that it ran; it fails while `failing` has its name."""

    def function() -> None:
        ran.append(name)
        if name in failing:
            raise ValueError(name)

    return app.orchestrator.register(function, name=name, **options)


failing: set[str] = set()


@pytest.fixture(autouse=True)
def _nothing_fails():
    failing.clear()


def align(jobs: Testing, seconds: int = 60) -> None:
    """Move to a second after a whole number of so many."""
    store = jobs._store
    store.clock.shift += -store.clock.now() % (seconds * MICROSECONDS) + MICROSECONDS
    for shard in range(SHARDS):
        name = Ledger(store, "app").document(shard)
        store.record(name, b"{}", store.record(name).version)
    jobs._planner = jobs._make_planner()  # which sees the tasks for the first time


def after(jobs: Testing, seconds: float) -> list[object]:
    """What ran when so much time has passed."""
    ran.clear()
    jobs.advance(seconds)
    jobs.run_due()
    return list(ran)


def outcomes(app: App, task: RecurringTask[..., Any] | str) -> list[tuple[str, str]]:
    """The history without its times, oldest first."""
    return [(line.outcome, line.reason) for line in reversed(app.orchestrator.history(task))]


# --- the first tick ----------------------------------------------------------------------------------------
def test_a_task_that_is_to_begin_at_once_does_so_when_it_is_new_and_then_keeps_its_cadence(app):
    task = make(app, "a", every=3600, first="now", jitter=600)
    with app.testing() as jobs:
        align(jobs, 3600)
        assert after(jobs, 1200) == ["a"]
        jobs._planner = jobs._make_planner()  # another node takes over
        assert after(jobs, 1) == []
        assert after(jobs, 3600 - 1202 + task.offset / MICROSECONDS) == ["a"]
        assert outcomes(app, task) == [("completed", "")] * 2


def test_a_first_tick_is_not_too_late_for_any_policy(app):
    make(app, "a", cron="0 0 1 1 *", first="now", misfire="skip", start_deadline=1)
    with app.testing() as jobs:
        assert after(jobs, 0) == ["a"]


def test_a_task_that_is_known_already_does_not_begin_again(app):
    make(app, "a", every=3600, first="now")
    with app.testing() as jobs:
        align(jobs, 3600)
        first, second = jobs._make_planner(), jobs._make_planner()  # two that both believe they lead
        for planner in (first, second):
            planner.begin(0)
        for planner in (first, second):
            planner.round(jobs._store.clock.now())
        ran.clear()
        jobs.run_due()
        assert ran == ["a"]


@pytest.mark.parametrize("options", [{"mode": "triggered"}, {"every": 60, "first": "soon"}])
def test_only_what_has_a_cadence_begins_now_or_with_its_period(app, options):
    with pytest.raises(OptionError, match="first"):
        make(app, "a", **{"first": "now", **options})


# --- cadence ---------------------------------------------------------------------------------------------
def test_a_tick_comes_at_each_instant_and_not_before(app):
    make(app, "a", every=60)
    with app.testing() as jobs:
        align(jobs)
        assert after(jobs, 58.999_999) == []
        assert after(jobs, 0.000_001) == ["a"]
        assert after(jobs, 59.999_999) == []
        assert after(jobs, 0.000_001) == ["a"]


def test_intervals_never_drift_however_late_the_planner_is(app):
    task = make(app, "a", every=60)
    with app.testing() as jobs:
        align(jobs)
        for late in (61, 75, 47, 63, 59):
            after(jobs, late)
        instants = [line.at for line in app.orchestrator.history(task) if line.outcome == "completed"]
        assert all(at % (60 * MICROSECONDS) == 0 for at in instants)


def test_jitter_moves_the_run_and_not_the_name_of_the_tick(app):
    task = make(app, "a", every=60, jitter=50)
    with app.testing() as jobs:
        align(jobs)
        assert 0 < task.offset < 50 * MICROSECONDS
        assert after(jobs, 59 + task.offset / MICROSECONDS - 0.001) == []
        assert after(jobs, 0.002) == ["a"]
        assert app.orchestrator.history(task)[0].at % (60 * MICROSECONDS) == 0


def test_a_cron_task_runs_at_its_hour(app):
    make(app, "a", cron="0 3 * * *", timezone="Asia/Kathmandu")
    with app.testing() as jobs:
        align(jobs, 86_400)
        assert after(jobs, 21.25 * 3600 - 2) == []  # 21:15 UTC is 3:00 there
        assert after(jobs, 2) == ["a"]


# --- misfire ---------------------------------------------------------------------------------------------
def test_after_a_gap_the_latest_runs_and_the_others_are_recorded(app):
    task = make(app, "a", every=60)
    with app.testing() as jobs:
        align(jobs)
        assert after(jobs, 300) == ["a"]
        assert outcomes(app, task) == [("skipped", "missed")] * 4 + [("completed", "")]


def test_missed_ticks_can_be_made_up_for(app):
    make(app, "a", every=60, misfire=all_missed(3), overlap="queue")
    with app.testing() as jobs:
        align(jobs)
        assert after(jobs, 300) == ["a"] * 3


def test_a_history_is_as_long_as_asked_for(app):
    task = make(app, "a", every=60)
    with app.testing() as jobs:
        align(jobs)
        for _ in range(30):
            after(jobs, 60)
        assert len(app.orchestrator.history(task, 25)) == 25
        assert [line.outcome for line in app.orchestrator.history(task)] == ["completed"] * 30


def test_a_start_deadline_gives_up_what_is_too_late(app):
    task = make(app, "a", cron="0 * * * *", start_deadline="10m")
    with app.testing() as jobs:
        align(jobs, 3600)
        assert after(jobs, 4800) == []
        assert outcomes(app, task) == [("skipped", "late")]


def test_a_long_gap_is_folded_into_one_line(app):
    task = make(app, "a", every=1)
    with app.testing() as jobs:
        align(jobs)
        after(jobs, 10_000)
        lines = app.orchestrator.history(task, limit=1000)
        assert len(lines) <= 102
        assert sum(line.instants for line in lines) == 10_000, lines[-3:]


# --- overlap ---------------------------------------------------------------------------------------------
def held_up(app: App, jobs: Testing, name: str = "a"):
    """Let a tick become due, and have it stay in line."""
    app.store.configure(queue="default", paused=True)
    after(jobs, 60)
    assert ran == []
    return app.orchestrator.status_of(name)


@pytest.mark.parametrize(("overlap", "runs"), [("skip", 1), ("queue", 3), ("allow", 3)])
def test_a_tick_that_finds_another_is_skipped_or_queued(app, overlap, runs):
    task = make(app, "a", every=60, overlap=overlap)
    with app.testing() as jobs:
        align(jobs)
        for _ in range(3):
            assert held_up(app, jobs).state == "waiting"
        app.store.configure(queue="default", paused=False)
        assert after(jobs, 1) == ["a"] * runs
        skipped = [line for line in outcomes(app, task) if line == ("skipped", "overlap")]
        assert len(skipped) == 3 - runs


# --- dependencies ----------------------------------------------------------------------------------------
def test_a_task_runs_after_a_fresh_success_of_what_it_depends_on(app):
    fetch = make(app, "fetch", every=60)
    make(app, "process", every=60, depends_on=[fetch])
    with app.testing() as jobs:
        align(jobs)
        assert after(jobs, 60) == ["fetch", "process"]
        failing.add("fetch")
        assert after(jobs, 60) == ["fetch"]
        status = app.orchestrator.status_of("process")
        assert status.state == "waiting"
        assert "'fetch' has not succeeded since 'process' last began" in status.why
        failing.clear()
        assert after(jobs, 60) == ["fetch", "process"]


def test_waiting_for_a_dependency_has_an_end_and_a_reason(app):
    fetch = make(app, "fetch", every=3600)
    process = make(app, "process", every=60, depends_on=[fetch])
    with app.testing() as jobs:
        align(jobs, 3600)
        jobs.advance(3540)
        jobs.run_due()
        assert after(jobs, 60) == ["fetch", "process"]
        for _ in range(3):
            assert after(jobs, 60) == []
        reasons = [reason for outcome, reason in outcomes(app, process) if outcome == "skipped"]
        assert any("it waited as long as it may" in reason for reason in reasons), outcomes(app, process)


def test_a_disabled_dependency_is_a_recorded_skip_and_never_silence(app):
    fetch = make(app, "fetch", every=60)
    process = make(app, "process", every=60, depends_on=[fetch])
    with app.testing() as jobs:
        align(jobs)
        app.orchestrator.disable(fetch)
        assert after(jobs, 60) == []
        assert outcomes(app, process) == [
            ("skipped", "'fetch' is disabled, and 'fetch' has not succeeded yet")
        ]


def test_a_dependency_can_be_of_the_same_tick_or_fresh(app):
    make(app, "fetch", every=60)
    make(app, "same", every=120, depends_on=[same_tick("fetch")])
    make(app, "fresh", every=60, depends_on=[fresh("fetch", "30s")])
    with app.testing() as jobs:
        align(jobs, 120)
        assert sorted(map(str, after(jobs, 120))) == ["fetch", "fresh", "same"]


# --- exclusion -------------------------------------------------------------------------------------------
def test_tasks_that_exclude_each_other_are_let_go_one_after_the_other(app):
    make(app, "a", every=60)
    make(app, "b", every=60, blocks=["a"])
    with app.testing() as jobs:
        align(jobs)
        held_up(app, jobs)
        assert "in line" in app.orchestrator.status_of("a").why
        assert app.orchestrator.status_of("b").why == "Its tick waits: 'a' must not run beside it."
        app.store.configure(queue="default", paused=False)
        assert sorted(map(str, after(jobs, 1))) == ["a", "b"]


def test_what_a_test_reads_of_a_task_does_not_depend_on_the_pace_of_the_machine(app, monkeypatch):
    """On a busy machine writing the first task may take all the time that a round has for it."""
    monkeypatch.setattr(planner, "FLUSH", 0.0)
    names = [f"task {number}" for number in range(5)]
    for name in names:
        make(app, name, every=60, blocks=[Slot("warehouse", 1)])
    with app.testing() as jobs:
        align(jobs)
        held_up(app, jobs, names[0])
        assert {app.orchestrator.status_of(name).state for name in names} == {"waiting"}


def test_one_that_needs_two_is_not_starved_by_them(app):
    """Each of the two is always there when the other ends; yet the third gets its turn, by its age."""
    app.pool("default", workers=1)
    make(app, "left", every=60, priority=3)
    make(app, "right", every=60, priority=3)
    make(app, "both", every=60, blocks=["left", "right"], priority=0)
    with app.testing() as jobs:
        align(jobs)
        for _ in range(5):  # at most (9 - 0) minutes until nobody is ahead of it
            after(jobs, 60)
            if "both" in ran:
                break
        assert "both" in ran


def test_a_named_slot_lets_as_many_go_as_it_has_room_for(app):
    for name in ("a", "b", "c"):
        make(app, name, every=60, blocks=[Slot("warehouse", 2)])
    with app.testing() as jobs:
        align(jobs)
        held_up(app, jobs)
        whys = {name: app.orchestrator.status_of(name).why for name in ("a", "b", "c")}
        assert [name for name, why in whys.items() if "in line" in why] == ["a", "b"]
        assert whys["c"] == "Its tick waits: slot 'warehouse' has no room, 2 of 2 held by 'a', 'b'."
        app.store.configure(queue="default", paused=False)
        assert sorted(map(str, after(jobs, 1))) == ["a", "b", "c"]


def test_who_is_passed_over_in_a_named_slot_is_next_by_its_age(app):
    """Four of a high priority want the two places every minute; the fifth gets its turn all the same."""
    for name in ("a", "b", "c", "d"):
        make(app, name, every=60, priority=3, blocks=[Slot("warehouse", 2)])
    make(app, "last", every=60, priority=0, overlap="queue", blocks=[Slot("warehouse", 2)])
    with app.testing() as jobs:
        align(jobs)
        held_up(app, jobs)
        assert "slot 'warehouse' has no room" in app.orchestrator.status_of("last").why
        jobs.advance("5m")  # (3 - 0) minutes, and those that were let go before
        app.store.configure(queue="default", paused=False)
        assert "last" in after(jobs, 1)


def test_a_tick_that_was_held_back_is_in_line_since_it_was_let_go(app):
    """No pool is late with a job that it could not have had."""
    other, task = make(app, "a", every=60), make(app, "b", every=60, blocks=["a"])
    with app.testing() as jobs:
        align(jobs)
        held_up(app, jobs)
        assert jobs.enqueued(task) == []
        jobs.advance(30)
        app.handle(jobs.enqueued(other)[0].job.id).cancel()
        jobs.run_due()
        (job,) = jobs.enqueued(task)
        assert job.job.run_at == job.job.created_at


# --- breaker ---------------------------------------------------------------------------------------------
def test_five_failed_ticks_in_a_row_disable_a_task_and_no_other(app):
    bad, good = make(app, "bad", every=60), make(app, "good", every=60)
    failing.add("bad")
    with app.testing() as jobs:
        align(jobs)
        for _ in range(7):
            after(jobs, 60)
        assert app.orchestrator.status_of(bad).breaker == "open"
        assert app.orchestrator.status_of(bad).consecutive_failures == 5
        assert app.orchestrator.status_of(bad).last_error == "ValueError: bad"
        assert [outcome for outcome, _ in outcomes(app, bad)].count("dead") == 5
        assert ("skipped", "breaker") in outcomes(app, bad)
        assert app.orchestrator.status_of(bad).next_due_at is None, "nothing is due until it is enabled"
        assert {name for _, name in app.orchestrator.upcoming("1h")} == {good.name}
        assert [outcome for outcome, _ in outcomes(app, good)] == ["completed"] * 7


def test_only_the_last_word_on_a_tick_counts(app):
    task = make(app, "a", every=3600, retry=Retry(attempts=3, first=1), max_failures=1)
    failing.add("a")
    with app.testing() as jobs:
        align(jobs, 3600)
        assert after(jobs, 3600) == ["a"]
        assert app.orchestrator.status_of(task).breaker == "closed"
        failing.clear()
        assert after(jobs, 10) == ["a"]
        assert app.orchestrator.status_of(task).consecutive_failures == 0


def test_a_cancelled_tick_counts_for_nobody(app):
    task = make(app, "a", every=60, max_failures=1)
    with app.testing() as jobs:
        align(jobs)
        held_up(app, jobs)
        (job,) = jobs.enqueued(task)
        app.handle(job.job.id).cancel()
        app.store.configure(queue="default", paused=False)
        assert after(jobs, 60) == ["a"]
        assert app.orchestrator.status_of(task).breaker == "closed"


def test_a_broken_task_is_probed_and_comes_back_by_itself(app):
    task = make(app, "a", every=60, max_failures=2, probe_after="5m")
    failing.add("a")
    with app.testing() as jobs:
        align(jobs)
        for _ in range(12):
            after(jobs, 60)
        assert len([1 for outcome, _ in outcomes(app, task) if outcome == "dead"]) == 3  # two, and a probe
        failing.clear()
        for _ in range(12):
            after(jobs, 60)
        assert app.orchestrator.status_of(task).breaker == "closed"
        assert after(jobs, 60) == ["a"]


def test_a_probe_may_have_to_wait_for_its_turn(app):
    make(app, "other", every="1h")
    make(app, "broken", every=60, max_failures=2, probe_after=60, blocks=["other"])
    with app.testing() as jobs:
        align(jobs)
        failing.add("broken")
        for _ in range(3):
            after(jobs, 60)
        failing.clear()
        assert "broken" in [name for _ in range(5) for name in after(jobs, 60)]
        assert app.orchestrator.status_of("broken").breaker == "closed"


def test_one_probe_at_a_time_however_many_ticks_are_made_up_for(app):
    make(app, "a", every=60, max_failures=2, probe_after=300, misfire=all_missed(5), overlap="queue")
    failing.add("a")
    with app.testing() as jobs:
        align(jobs)
        after(jobs, 60)
        after(jobs, 60)
        assert after(jobs, 600) == ["a"]


def test_triggers_of_a_broken_task_are_probes_too(app):
    task = make(app, "a", mode="triggered", max_failures=2, probe_after=60, overlap="allow")
    failing.add("a")
    with app.testing() as jobs:
        runs = 0
        for minute in range(10):
            for key in ("one", "two"):
                app.orchestrator.trigger(task, key=f"{key}{minute}")
            runs += len(after(jobs, 61))
        assert runs == 2 + 2  # until it opened; after a rest of one minute, and of two


def test_enabling_resets_the_breaker(app):
    task = make(app, "a", every=60, max_failures=1)
    failing.add("a")
    with app.testing() as jobs:
        align(jobs)
        after(jobs, 60)
        assert after(jobs, 60) == []
        failing.clear()
        app.orchestrator.enable(task)
        assert after(jobs, 60) == ["a"]


def test_what_a_person_disabled_no_machine_enables(app):
    task = make(app, "a", every=60, max_failures=1, probe_after="1m")
    failing.add("a")
    with app.testing() as jobs:
        align(jobs)
        after(jobs, 60)
        app.orchestrator.disable(task, by="anna")
        failing.clear()
        for _ in range(10):
            assert after(jobs, 60) == []
        status = app.orchestrator.status_of(task)
        assert status.state == "disabled"
        assert "disabled by anna" in status.why
        app.orchestrator.enable(task)
        assert after(jobs, 60) == ["a"]


def test_a_task_may_be_born_disabled(app):
    task = make(app, "a", every=60, enabled=False)
    with app.testing() as jobs:
        align(jobs)
        assert after(jobs, 60) == []
        app.orchestrator.enable(task)
        assert after(jobs, 60) == ["a"]


# --- triggers --------------------------------------------------------------------------------------------
def test_a_trigger_runs_a_task_beside_its_cadence(app):
    task = make(app, "a", cron="@yearly")
    with app.testing() as jobs:
        jobs.run_due()
        assert app.orchestrator.trigger(task)
        assert after(jobs, 0) == ["a"]
        assert app.orchestrator.status_of(task).last_success_at is not None


def test_a_trigger_says_no_when_the_task_runs_already(app):
    task = make(app, "a", mode="triggered")
    with app.testing() as jobs:
        assert app.orchestrator.trigger(task) is True
        assert app.orchestrator.trigger(task) is False
        assert after(jobs, 1) == ["a"]
        assert ("skipped", "overlap") in outcomes(app, task)
        assert app.orchestrator.trigger(task) is True


def test_payloads_of_a_burst_go_to_one_run(app):
    @app.recurring(mode="triggered", debounce=5, name="index")
    def index(payloads: list[int]) -> None:
        ran.append(payloads)

    with app.testing() as jobs:
        for number in (1, 2, 3):
            app.orchestrator.trigger(index, number)
            assert after(jobs, 4) == []
        assert after(jobs, 1) == [[1, 2, 3]]
        assert after(jobs, 60) == []


def test_a_trigger_needs_no_payload_to_be_gathered(app):
    task = make(app, "a", mode="triggered", debounce=5)
    with app.testing() as jobs:
        app.orchestrator.trigger(task)
        app.orchestrator.trigger(task)
        assert after(jobs, 5) == ["a"]


def test_triggers_are_gathered_by_key(app):
    @app.recurring(mode="triggered", debounce=5, name="index", overlap="queue")
    def index(payloads: list[int]) -> None:
        ran.append(payloads)

    with app.testing() as jobs:
        for key, number in (("a", 1), ("b", 2), ("a", 3)):
            app.orchestrator.trigger(index, number, key=key)
        assert sorted(map(str, after(jobs, 5))) == ["[1, 3]", "[2]"]


def test_more_payloads_than_a_job_can_carry_do_not_stop_the_planner(app):
    @app.recurring(mode="triggered", debounce=5, name="index")
    def index(payloads: list[str]) -> None:
        ran.append(len(payloads))

    make(app, "clock", every=60)
    with app.testing() as jobs:
        align(jobs)
        for _ in range(100):
            app.orchestrator.trigger(index, "x" * 20_000)
        *numbers, clock = sorted(after(jobs, 60), key=str)
        assert clock == "clock"
        assert sorted(map(int, map(str, numbers))) == [12, 44, 44], (
            "as many as a job can carry, and none is lost"
        )


def test_a_payload_that_the_task_does_not_take_is_refused_at_once(app):
    @app.recurring(mode="triggered", debounce=5, name="index")
    def index(payloads: list[int]) -> None: ...

    with app.testing(), pytest.raises(OptionError, match="payloads"):
        app.orchestrator.trigger(index, "x")


def test_a_payload_for_a_task_that_takes_none_is_refused(app):
    task = make(app, "a", every=60)
    with app.testing(), pytest.raises(OptionError, match="takes no payload"):
        app.orchestrator.trigger(task, 5)


# --- continuous ------------------------------------------------------------------------------------------
def test_a_continuous_task_is_started_again_with_growing_pauses(app):
    make(app, "a", mode="continuous")
    failing.add("a")
    with app.testing() as jobs:
        assert after(jobs, 0) == ["a"]
        assert after(jobs, 0.9) == []
        assert after(jobs, 0.3) == ["a"]
        assert after(jobs, 1.2) == []
        assert after(jobs, 1.2) == ["a"]


def test_a_continuous_task_has_a_start_limit(app):
    make(app, "a", mode="continuous")
    with app.testing() as jobs:
        total = len([1 for _ in range(60) for _ in after(jobs, 10)])
        assert total <= 10


# --- what is remembered ----------------------------------------------------------------------------------
def test_a_task_that_left_the_code_is_retired_until_it_is_forgotten(app):
    make(app, "a", every=60)
    make(app, "b", every=60)
    with app.testing() as jobs:
        align(jobs)
        after(jobs, 60)
        del app.tasks["b"]
        status = app.orchestrator.status().tasks["b"]
        assert (status.state, status.mode) == ("retired", "")
        assert outcomes(app, "b") == [("completed", "")]
        with pytest.raises(OptionError, match="is in the code"):
            app.orchestrator.forget("a")
        app.orchestrator.forget("b")
        assert set(app.orchestrator.status().tasks) == {"a"}


def test_the_next_planner_goes_on_where_the_last_one_was(app):
    task = make(app, "a", every=60, max_failures=3)
    failing.add("a")
    with app.testing() as jobs:
        align(jobs)
        after(jobs, 60)
        after(jobs, 60)
        jobs._planner = jobs._make_planner()
        after(jobs, 60)
        assert app.orchestrator.status_of(task).breaker == "open"


def test_status_tells_when_and_why(app):
    task = make(app, "a", every=60)
    with app.testing() as jobs:
        align(jobs)
        after(jobs, 60)
        status = app.orchestrator.status_of(task)
        assert status.next_due_at == jobs._store.clock.now() + 59 * MICROSECONDS
        assert status.why == "It is due in 59.0 s."


def test_a_tick_not_begun_in_time_expires(app):
    task = make(app, "a", cron="0 * * * *", start_deadline=30)
    with app.testing() as jobs:
        align(jobs, 3600)
        app.store.configure(queue="default", paused=True)
        after(jobs, 3600)
        app.store.configure(queue="default", paused=False)
        assert after(jobs, 40) == []
        assert outcomes(app, task) == [("cancelled", "expired")]
        assert app.orchestrator.status_of(task).breaker == "closed"
