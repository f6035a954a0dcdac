"""What `@app.recurring(...)` accepts, and what it says about the rest."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import assert_type

import pytest

from millpond import App, JobHandle, OptionError, Priority, Retry, Slot, UnknownTask
from millpond.recurring import AsyncRecurringTask, RecurringTask, fresh, never_run, not_running, same_tick
from millpond.rules.recurring.cadence import Every


@pytest.fixture
def app() -> App:
    return App("memory://")


def nothing() -> None:
    """A function to be registered."""


def test_a_recurring_task_is_still_the_function(app: App) -> None:
    @app.recurring(every="60s")
    def fetch() -> int:
        return 42

    assert_type(fetch(), int)
    assert_type(fetch.enqueue, Callable[[], JobHandle[int]])
    assert fetch() == 42
    assert isinstance(fetch, RecurringTask)
    assert fetch.cadence == Every(60.0)
    assert app.tasks[fetch.name] is fetch


async def test_an_async_function_stays_async(app):
    @app.recurring(every="60s")
    async def fetch() -> int:
        await asyncio.sleep(0)
        return 42

    assert isinstance(fetch, AsyncRecurringTask)
    assert await fetch() == 42


def test_a_function_can_be_registered_by_a_call(app):
    task = app.orchestrator.register(nothing, cron="@daily", timezone="Europe/Paris", queue="nightly")
    assert app.orchestrator.tasks == {task.name: task}
    assert task.queue == "nightly"


def test_a_tick_is_tried_once_unless_asked_otherwise(app):
    assert app.orchestrator.register(nothing, every=60).retry.attempts == 1
    again = app.orchestrator.register(nothing, every=60, name="again", retry=Retry(attempts=3))
    assert again.retry.attempts == 3


@pytest.mark.parametrize("who", ["endless", "other"])
def test_what_never_ends_excludes_nothing(app, who):
    """The other would never run."""
    blocks = {"endless": {"endless": ["other"]}, "other": {"other": ["endless"]}}[who]
    for name, options in (("endless", {"mode": "continuous"}), ("other", {"every": 60})):
        app.orchestrator.register(nothing, name=name, blocks=blocks.get(name, ()), **options)
    with pytest.raises(OptionError, match="'endless' is continuous and excludes 'other'"):
        app.orchestrator.check()


def test_a_continuous_task_is_watched_for_life(app):
    assert app.orchestrator.register(nothing, mode="continuous").timeout is None


def test_a_recurring_task_can_be_pickled(app):
    task = app.orchestrator.register(nothing, every=60, blocks=["other"], priority=Priority.HIGH)
    copy = pickle.loads(pickle.dumps(task))
    assert copy.name == task.name


NONSENSE = [
    ({}, "needs one of every="),
    ({"every": 60, "cron": "@daily"}, "given: every and cron"),
    ({"mode": "sometimes"}, "'triggered' or 'continuous'"),
    ({"every": 60, "timezone": "Europe/Paris"}, "timezone is for cron"),
    ({"every": 60, "debounce": 1}, "debounce is for mode='triggered'"),
    ({"mode": "triggered", "jitter": 5}, "jitter needs every"),
    ({"mode": "triggered", "misfire": "skip"}, "misfire needs every"),
    ({"mode": "continuous", "depends_on": ["a"]}, "depends_on needs every"),
    ({"mode": "continuous", "timeout": 5}, "has no timeout"),
    ({"mode": "continuous", "overlap": "allow"}, "overlap is not for mode='continuous'"),
    ({"every": 60, "jitter": 61}, "not be longer than the period"),
    ({"every": 60, "probe_after": 5, "max_failures": None}, "give both or neither"),
    ({"every": 60, "max_failures": 0}, "max_failures"),
    ({"every": 60, "overlap": "allow", "blocks": ["a"]}, "contradict each other"),
    ({"every": 60, "overlap": "sometimes"}, "'skip', 'queue', 'allow'"),
    ({"every": 60, "misfire": "never"}, "'skip', 'latest', 'all'"),
    ({"every": 60, "depends_on": ["a"], "on_missing": "hope"}, "on_missing must be"),
    ({"every": 60, "wait_for": "5m"}, "wait_for is for a task with depends_on"),
    ({"every": 60, "on_missing": "skip", "depends_on": []}, "on_missing is for a task with depends_on"),
    ({"every": 60, "depends_on": [nothing]}, "is not a recurring task: give what @app.recurring"),
    ({"every": 60, "blocks": [5]}, "5 is not a recurring task"),
    ({"every": 60, "depends_on": "fetch"}, "must be a list"),
    ({"every": 60, "blocks": "fetch"}, "must be a list"),
    ({"every": 60, "blocks": Slot("dock", 2)}, "must be a list"),
    ({"every": 60, "blocks": [Slot("dock", 0)]}, "the capacity of slot 'dock'"),
    ({"every": 60, "blocks": [Slot("", 2)]}, "the name of a slot"),
    ({"every": 60, "blocks": [Slot("dock", 2), Slot("dock", 2)]}, "slot 'dock' twice"),
    ({"every": 60, "enabled": "yes"}, "enabled must be True or False"),
    ({"every": 0}, "every"),
    ({"cron": "every noon"}, "cron"),
    ({"cron": "0 3 * * *", "timezone": "Europe/Pairs"}, "Europe/Paris"),
]


@pytest.mark.parametrize(("options", "said"), NONSENSE, ids=[said for _, said in NONSENSE])
def test_nonsense_is_refused_with_what_to_change(app, options, said):
    with pytest.raises(OptionError) as refused:
        app.recurring(**options)(nothing)
    assert said in str(refused.value)
    assert not app.tasks


def test_an_unknown_option_names_the_nearest(app):
    with pytest.raises(TypeError, match="did you mean 'timezone'"):
        app.recurring(cron="@daily", timezon="UTC")(nothing)


def test_a_function_that_needs_arguments_is_refused(app):
    with pytest.raises(OptionError, match="called without arguments"):

        @app.recurring(every=60)
        def greet(name: str) -> None: ...


def test_a_triggered_function_takes_one_list_at_most(app):
    with pytest.raises(OptionError, match="one list of payloads"):

        @app.recurring(mode="triggered")
        def greet(name: str, age: int) -> None: ...


# --- what tasks say about each other ---------------------------------------------------------------------
def test_names_may_be_registered_later(app):
    app.orchestrator.register(nothing, every=60, name="b", depends_on=["a"], blocks=["c"])
    with pytest.raises(OptionError, match="'a', which is not a recurring task"):
        app.orchestrator.check()
    app.orchestrator.register(nothing, every=60, name="a")
    app.orchestrator.register(nothing, every=60, name="c")
    app.orchestrator.check()


def test_a_circle_is_named(app):
    for name, other in ("ab", "bc", "ca"):
        app.orchestrator.register(nothing, every=60, name=name, depends_on=[other])
    with pytest.raises(OptionError, match="'a' -> 'b' -> 'c' -> 'a'"):
        app.orchestrator.check()


def test_dependencies_are_tasks_or_names_in_four_modes(app):
    fetch = app.orchestrator.register(nothing, every=60, name="fetch")
    task = app.orchestrator.register(
        nothing,
        every=60,
        name="all",
        depends_on=[fetch, fresh("fetch", "5m"), same_tick(fetch), not_running(fetch, on_missing="skip")],
    )
    modes = [dependency.mode for dependency in task.dependencies]
    assert modes == ["success_since", "fresh", "same_tick", "not_running"]
    assert task.dependencies[1].fresh_for == 300


def test_blocking_is_mutual_and_held_by_jobs_of_any_origin(app):
    fetch = app.orchestrator.register(nothing, every=60, name="fetch")
    compact = app.orchestrator.register(nothing, every=60, name="compact", blocks=[fetch])
    shared = {slot.name for slot in fetch.exclusion} & {slot.name for slot in compact.exclusion}
    assert shared == {"blocks:compact|fetch"}
    assert shared <= {slot.name for slot in fetch.new_job(((), {}), {}).slots}


def test_a_named_slot_is_held_by_every_run_and_may_be_shared_by_runs_of_one_task(app):
    dock = Slot("dock", 2)
    many = app.orchestrator.register(nothing, every=60, name="many", overlap="allow", blocks=[dock])
    one = app.orchestrator.register(nothing, every=60, name="one", blocks=[many.name + "y", dock])
    app.orchestrator.register(nothing, every=60, name="manyy")
    assert many.exclusion == (Slot("slot:dock", 2),)
    assert Slot("slot:dock", 2) in one.new_job(((), {}), {}).slots
    assert pickle.loads(pickle.dumps(one)).name == "one"


def test_two_capacities_of_one_slot_are_refused_at_once_and_both_tasks_named(app):
    app.orchestrator.register(nothing, every=60, name="a", blocks=[Slot("dock", 2)])
    with pytest.raises(OptionError, match=r"slot 'dock' has a capacity of 2 in 'a' and of 3 in 'b'"):
        app.orchestrator.register(nothing, every=60, name="b", blocks=[Slot("dock", 3)])
    assert list(app.tasks) == ["a"]


def test_what_others_block_may_not_overlap_itself(app):
    app.orchestrator.register(nothing, every=60, name="many", overlap="allow")
    app.orchestrator.register(nothing, every=60, name="one", blocks=["many"])
    with pytest.raises(OptionError, match="many has overlap='allow'"):
        app.orchestrator.check()


def test_all_ticks_share_a_slot_when_their_number_is_limited(app):
    task = app.orchestrator.register(nothing, every=60, overlap="allow")
    assert not task.exclusion
    app.orchestrator.max_concurrent = 3
    assert [(slot.name, slot.capacity) for slot in task.exclusion] == [("recurring:*", 3)]
    with pytest.raises(OptionError, match="max_concurrent"):
        app.orchestrator.max_concurrent = 0


def test_an_unknown_name_is_an_error_with_a_hint(app):
    app.orchestrator.register(nothing, every=60, name="shop.fetch")
    with pytest.raises(UnknownTask, match=r"did you mean 'shop\.fetch'"):
        app.orchestrator.trigger("shop.fetsh")
    assert app.orchestrator.trigger("fetch")  # the function's own name will do where it is clear


@pytest.mark.parametrize(
    ("mine", "others", "never"),
    [
        ({"every": 60}, {"every": 60}, True),
        ({"every": 120}, {"every": 60}, True),
        ({"every": 60}, {"every": 120}, False),
        ({"cron": "0 3 * * *"}, {"cron": "0 3 * * *"}, True),
        ({"cron": "5 3 * * *"}, {"cron": "0 3 * * *"}, False),
        ({"every": 60, "on_missing": "wait"}, {"every": 60}, False),
        ({"every": 60}, {"mode": "triggered"}, False),
    ],
)
def test_a_task_that_looks_once_while_the_other_is_due_never_runs_and_that_is_said(app, mine, others, never):
    app.orchestrator.register(nothing, name="other", **others)
    app.orchestrator.register(nothing, name="mine", depends_on=["other"], **{"on_missing": "skip", **mine})
    found = list(never_run(app.orchestrator.tasks))
    assert bool(found) is never
    assert all("'mine' never runs" in said and "on_missing='wait'" in said for said in found)


def test_a_continuous_task_starts_once_in_a_tick(app):
    task = app.orchestrator.register(nothing, mode="continuous", name="plain")
    assert (task.retry.attempts, task.retry.max_crashes, task.restart_rule.at_once) == (1, 1, 1)
    own = app.orchestrator.register(nothing, mode="continuous", name="own", retry=Retry(attempts=2))
    assert own.restart_rule.at_once == 4, "one more after an error, and two more after crashes"


def test_an_interval_in_cron_is_told_how_to_be_written(app):
    with pytest.raises(OptionError, match=r"write every='5m'$"):
        app.orchestrator.register(nothing, cron="@every 5m")
    with pytest.raises(OptionError) as found:
        app.orchestrator.register(nothing, cron="@sometimes")
    assert str(found.value).count("@hourly") == 1
