"""`Pool.from_env()`: every variable works, and what cannot be read is a clear error."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from millpond import OptionError, Pool
from millpond.pool.options import PREFIX, VARIABLES, PoolKeywords, PoolOptions
from tests.pool import tasks
from tests.pool.tasks import PATIENCE

pytestmark = pytest.mark.timeout(40)
SetVariables = Callable[[dict[str, str]], None]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in list(os.environ):
        if variable.startswith(PREFIX):
            monkeypatch.delenv(variable)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> SetVariables:
    def set_all(values: dict[str, str]) -> None:
        for name, text in values.items():
            monkeypatch.setenv(PREFIX + name, text)

    return set_all


def option_of(pool: Pool, name: str) -> Any:
    """What the pool took, wherever it is kept."""
    options: PoolOptions = pool._options
    return getattr(options, name) if hasattr(options, name) else getattr(options.task, name)


EXAMPLES = [
    ("MAX_WORKERS", "3", "max_workers", 3),
    ("MIN_WORKERS", "0", "min_workers", 0),
    ("KIND", "thread", "kind", "thread"),
    ("TIMEOUT", "5m", "timeout", 300.0),
    ("TIMEOUT", "2.5", "timeout", 2.5),
    ("TIMEOUT", "none", "timeout", None),
    ("START_TIMEOUT", "90s", "start_timeout", 90.0),
    ("DEADLINE", "1h30m", "deadline", 5400.0),
    ("IDLE_TIMEOUT", "10s", "idle_timeout", 10.0),
    ("MAX_QUEUE", "1000", "max_queue", 1000),
    ("MAX_QUEUE", "", "max_queue", None),
    ("WHEN_FULL", "raise", "when_full", "raise"),
    ("MAX_QUEUE_AGE", "500ms", "max_queue_age", 0.5),
    ("QUEUE", "fifo", "queue", "fifo"),
    ("MAX_MEMORY", "512MB", "max_memory", 512_000_000),
    ("MAX_MEMORY", "1048576", "max_memory", 1_048_576),
    ("MAX_AGE", "1d", "max_age", 86_400.0),
    ("MAX_TASKS_PER_CHILD", "10000", "max_tasks_per_child", 10_000),
    ("RETRIES_ON_CRASH", "2", "retries_on_crash", 2),
    ("PRELOAD", "json, decimal", "preload", ("json", "decimal")),
    ("CAPTURE_OUTPUT", "yes", "capture_output", True),
    ("CAPTURE_OUTPUT", "0", "capture_output", False),
    ("VIEWS", "true", "views", True),
    ("NAME", "thumbnails", "name", "thumbnails"),
]


@pytest.mark.parametrize(("variable", "text", "option", "value"), EXAMPLES)
def test_each_variable_sets_its_option(
    variable: str, text: str, option: str, value: Any, variables: SetVariables
) -> None:
    variables({variable: text})
    assert option_of(Pool.from_env(), option) == value


def test_concurrency_is_set_together_with_its_kind(variables: SetVariables) -> None:
    variables({"KIND": "async", "CONCURRENCY": "7"})
    assert option_of(Pool.from_env(), "concurrency") == 7


def test_every_variable_has_its_example() -> None:
    assert {example[0] for example in EXAMPLES} | {"CONCURRENCY"} == set(VARIABLES)


def test_every_option_that_can_be_text_has_a_variable() -> None:
    options = {option for option, _ in VARIABLES.values()}
    assert options == {"max_workers", *PoolKeywords.__annotations__} - {"context", "on_callback_error"}


def test_named_sizes_work_from_the_environment(variables: SetVariables) -> None:
    variables({"MAX_WORKERS": "mixed"})
    assert option_of(Pool.from_env(), "max_workers") == option_of(Pool("mixed"), "max_workers")


def test_what_is_passed_wins_over_the_environment(variables: SetVariables) -> None:
    variables({"MAX_WORKERS": "3", "TIMEOUT": "5m", "NAME": "other"})
    pool = Pool.from_env(max_workers=2, timeout=None)
    assert (option_of(pool, "max_workers"), option_of(pool, "timeout")) == (2, None)
    assert option_of(pool, "name") == "other"


def test_without_variables_the_defaults_hold() -> None:
    assert Pool.from_env()._options == Pool()._options


def test_a_pool_from_the_environment_works(variables: SetVariables) -> None:
    variables(
        {"MAX_WORKERS": "1", "MIN_WORKERS": "0", "MAX_TASKS_PER_CHILD": "1", "TIMEOUT": "1m", "QUEUE": "fifo",
         "PRELOAD": "colorsys"}
    )  # fmt: skip
    with Pool.from_env() as pool:
        assert len({pool.submit(tasks.pid_of).result(PATIENCE) for _ in range(3)}) == 3
        assert pool.submit(tasks.loaded, "colorsys").result(PATIENCE)


def test_an_initializer_can_be_passed_beside_the_variables(variables: SetVariables) -> None:
    variables({"MAX_WORKERS": "1"})
    with Pool.from_env(initializer=tasks.identity, initargs=(1,)) as pool:
        assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("MAX_WORKERS", "many"),
        ("MAX_WORKERS", "0"),
        ("MAX_WORKERS", "-1"),
        ("MAX_WORKERS", "²"),
        ("MAX_WORKERS", ""),
        ("MIN_WORKERS", "few"),
        ("MIN_WORKERS", "-1"),
        ("KIND", "fiber"),
        ("CONCURRENCY", "lots"),
        ("CONCURRENCY", "5"),
        ("TIMEOUT", "soon"),
        ("TIMEOUT", "0"),
        ("DEADLINE", "-5"),
        ("IDLE_TIMEOUT", "a while"),
        ("MAX_QUEUE", "long"),
        ("MAX_QUEUE", "0"),
        ("WHEN_FULL", "explode"),
        ("MAX_QUEUE_AGE", "old"),
        ("QUEUE", "lifo"),
        ("MAX_MEMORY", "512M"),
        ("MAX_AGE", "old"),
        ("MAX_TASKS_PER_CHILD", "1.5"),
        ("MAX_TASKS_PER_CHILD", "0"),
        ("RETRIES_ON_CRASH", "often"),
        ("CAPTURE_OUTPUT", "maybe"),
        ("VIEWS", "perhaps"),
    ],
)
def test_a_variable_that_cannot_be_read_is_a_clear_error(
    variable: str, text: str, variables: SetVariables
) -> None:
    variables({variable: text})
    with pytest.raises(OptionError) as caught:
        Pool.from_env()
    assert variable in str(caught.value).upper()


@pytest.mark.parametrize(
    ("variable", "nearest"), [("MAX_WORKER", "MAX_WORKERS"), ("TIME_OUT", "TIMEOUT"), ("XYZZY", None)]
)
def test_an_unknown_variable_is_named_with_the_nearest_valid_one(
    variable: str, nearest: str | None, variables: SetVariables
) -> None:
    variables({variable: "1"})
    with pytest.raises(OptionError, match=PREFIX + variable) as caught:
        Pool.from_env()
    assert (f"{PREFIX}{nearest}" in str(caught.value)) == (nearest is not None)


def test_what_a_kind_cannot_do_is_refused_from_the_environment_too(variables: SetVariables) -> None:
    variables({"KIND": "thread", "MAX_MEMORY": "1GB"})
    with pytest.raises(OptionError, match="max_memory cannot be had with kind='thread'"):
        Pool.from_env()


def test_variables_of_others_are_none_of_our_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_STORE", "memory://")
    monkeypatch.setenv("POOL_MAX_WORKERS", "zero")
    Pool.from_env()
