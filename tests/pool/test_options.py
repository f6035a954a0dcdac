"""Every option of a pool: what is accepted, what is refused, and what a user is told."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from millpond import OptionError, Pool, PoolDegraded, PoolError
from millpond.pool.channel.shared_page import MAX_SLOTS
from millpond.pool.options import REFUSED, PoolKeywords
from millpond.system.cores import usable_cores
from tests.pool import tasks
from tests.pool.tasks import PATIENCE

KINDS = ["process", "thread", "async"]
pytestmark = pytest.mark.timeout(40)


# --- accepted ------------------------------------------------------------------------------------------
GOOD: list[dict[str, Any]] = [
    {"on_callback_error": print},
    {"max_tasks_per_child": 5},
    {"min_workers": 0},
    {"min_workers": None},
    {"timeout": 5, "deadline": 10.5},
    {"timeout": "5m", "deadline": timedelta(hours=1)},
    {"idle_timeout": "1h30m"},
    {"idle_timeout": 0},
    {"max_queue": 1, "when_full": "raise"},
    {"when_full": "block"},
    {"max_queue_age": "30s"},
    {"queue": "fifo"},
    {"queue": "priority"},
    {"max_memory": 2 << 30},
    {"max_memory": "1.5GiB"},
    {"max_age": "1d"},
    {"start_timeout": "30s"},
    {"start_timeout": None},
    {"retries_on_crash": 3},
    {"preload": ("json",)},
    {"preload": "json"},
    {"capture_output": True},
    {"views": True},
    {"context": [tasks.request_id]},
    {"name": "thumbnails"},
]


@pytest.mark.parametrize("kind", ["process", "async"])
@pytest.mark.parametrize("options", GOOD, ids=" ".join)
def test_a_process_pool_takes_every_option_and_works(
    kind: str, options: dict[str, Any], new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(1, kind=kind, **options)
    assert pool.submit(tasks.square, 7).result(PATIENCE) == 49


@pytest.mark.parametrize(
    "options", [o for o in GOOD if not o.keys() & {*REFUSED["thread"], "context"}], ids=" ".join
)
def test_a_thread_pool_takes_every_option_that_threads_can_honour(
    options: dict[str, Any], new_pool: Callable[..., Pool]
) -> None:
    pool = new_pool(1, kind="thread", **options)
    assert pool.submit(tasks.square, 7).result(PATIENCE) == 49


def test_every_option_of_a_pool_is_tried_here() -> None:
    tried = {name for options in GOOD for name in options}
    assert tried | {"kind", "concurrency"} == set(PoolKeywords.__annotations__)


def test_the_standard_librarys_positional_arguments_keep_their_place(
    new_pool: Callable[..., Pool], journal: Path
) -> None:
    pool = new_pool(1, multiprocessing.get_context("spawn"), tasks.leave_a_line, (journal,))
    worker = pool.submit(os.getpid).result(PATIENCE)
    assert tasks.lines(journal) == [str(worker)]


def test_the_options_of_millpond_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        cast("Any", Pool)(1, None, None, (), 5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_initializer_runs_once_in_each_worker(
    kind: str, new_pool: Callable[..., Pool], journal: Path
) -> None:
    pool = new_pool(1, kind=kind, initializer=tasks.leave_a_line, initargs=(journal,))
    for _ in range(3):
        pool.submit(tasks.pid_of).result(PATIENCE)
    assert len(tasks.lines(journal)) == 1


def test_what_is_preloaded_is_there_before_the_first_task(new_pool: Callable[..., Pool]) -> None:
    pool = new_pool(1, preload=("colorsys",))
    assert pool.submit(tasks.loaded, "colorsys").result(PATIENCE)


def test_a_module_that_cannot_be_preloaded_is_named(new_pool: Callable[..., Pool]) -> None:
    pool = new_pool(1, preload=("no_such_module_at_all",))
    with pytest.raises(PoolDegraded, match="no_such_module_at_all"):
        pool.submit(tasks.square, 2).result(PATIENCE)


def test_a_pool_shows_its_name_kind_and_size() -> None:
    pool = Pool(5, min_workers=2, kind="thread", name="thumbnails")
    assert all(word in repr(pool) for word in ("thumbnails", "thread", "2", "5"))


# --- refused -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("timeout", 5),
        ("deadline", 5),
        ("max_memory", "1GB"),
        ("max_tasks_per_child", 5),
        ("max_age", "1h"),
        ("start_timeout", "30s"),
        ("retries_on_crash", 1),
        ("capture_output", True),
        ("preload", ("json",)),
        ("views", True),
    ],
)
def test_a_thread_pool_refuses_what_threads_cannot_do_and_says_why(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"^{option} cannot be had with kind='thread': .{{20,}}"):
        Pool(1, kind="thread", **{option: value})


def test_threads_are_there_on_every_system_and_processes_only_on_linux(
    new_pool: Callable[..., Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(OptionError, match="needs Linux; kind='thread' works everywhere"):
        Pool(1)
    pool = new_pool(1, kind="thread", max_queue_age=60)
    assert pool.submit(tasks.square, 7).result(PATIENCE) == 49


def test_a_thread_pool_refuses_a_start_method() -> None:
    with pytest.raises(OptionError, match="mp_context"):
        Pool(1, multiprocessing.get_context("spawn"), kind="thread")


def test_every_refusal_of_a_kind_has_its_case_above() -> None:
    assert set(REFUSED) == set(KINDS)
    assert len(REFUSED["thread"]) == 11
    assert not REFUSED["process"]
    assert not REFUSED["async"]


def test_options_that_are_off_are_not_refused(new_pool: Callable[..., Pool]) -> None:
    off = {"timeout": None, "max_memory": None, "retries_on_crash": 0, "capture_output": False}
    assert new_pool(1, kind="thread", **off).submit(tasks.square, 2).result(PATIENCE) == 4


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_concurrency_belongs_to_async_pools_only(kind: Any) -> None:
    with pytest.raises(OptionError, match="concurrency belongs to kind='async'"):
        Pool(1, kind=kind, concurrency=2)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("min_worker", "min_workers"), ("maxmemory", "max_memory"), ("time_out", "timeout"), ("prio", None)],
)
def test_an_unknown_option_is_named_with_the_nearest_valid_one(wrong: str, right: str | None) -> None:
    with pytest.raises(TypeError, match=wrong) as caught:
        Pool(1, **{wrong: 1})  # type: ignore[arg-type]
    assert (f"did you mean '{right}'" in str(caught.value)) == (right is not None)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_workers", 0),
        ("max_workers", -1),
        ("max_workers", "0"),
        ("max_workers", "many"),
        ("max_workers", "cpu-2"),
        ("min_workers", -1),
        ("kind", "fiber"),
        ("kind", None),
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", "soon"),
        ("timeout", float("nan")),
        ("timeout", float("inf")),
        ("deadline", 0),
        ("deadline", "5 parsecs"),
        ("idle_timeout", -1),
        ("idle_timeout", None),
        ("max_queue", 0),
        ("max_queue", -5),
        ("when_full", "explode"),
        ("max_queue_age", 0),
        ("max_queue_age", [5]),
        ("queue", "lifo"),
        ("queue", None),
        ("max_memory", -1),
        ("max_memory", "512M"),
        ("max_age", 0),
        ("start_timeout", 0),
        ("max_age", "old"),
        ("max_tasks_per_child", 0),
        ("retries_on_crash", -1),
        ("context", True),
        ("context", "request_id"),
        ("context", [5]),
    ],
)
def test_a_value_an_option_cannot_take_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=option):
        Pool(**{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_workers", 2.0),
        ("max_workers", True),
        ("max_workers", [2]),
        ("min_workers", "2"),
        ("max_queue", 1.5),
        ("max_tasks_per_child", "5"),
        ("max_tasks_per_child", True),
        ("retries_on_crash", 1.0),
        ("initializer", "setup"),
        ("initargs", 5),
        ("preload", 5),
        ("capture_output", "no"),
        ("views", "no"),
        ("name", 5),
        ("mp_context", "spawn"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_at_once_and_by_name(option: str, value: Any) -> None:
    with pytest.raises((TypeError, OptionError), match=option):
        Pool(**{option: value})


@pytest.mark.parametrize("number", [0, -3, MAX_SLOTS + 1])
def test_concurrency_has_bounds(number: int) -> None:
    with pytest.raises(OptionError, match="concurrency"):
        Pool(1, kind="async", concurrency=number)


@pytest.mark.parametrize("kind", KINDS)
def test_more_workers_at_least_than_at_most_is_refused(kind: Any) -> None:
    with pytest.raises(OptionError, match="min_workers=4 is more than max_workers=3"):
        Pool(3, min_workers=4, kind=kind)


def test_preload_and_a_start_method_exclude_each_other() -> None:
    with pytest.raises(OptionError, match="preload"):
        Pool(1, multiprocessing.get_context("spawn"), preload=("json",))


def test_an_initializer_that_cannot_be_pickled_is_a_clear_error_not_a_broken_pool(
    new_pool: Callable[..., Pool],
) -> None:
    with pytest.raises((PoolError, TypeError), match="initializer"):
        new_pool(1, initializer=print, initargs=(threading.Lock(),)).submit(tasks.square, 2).result(PATIENCE)


# --- named sizes ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("cores", "sizing", "workers"),
    [
        (8, "cpu", 8),
        (8, "cpu-1", 7),
        (8, "mixed", 16),
        (8, "short", 4),
        (1, "cpu", 1),
        (1, "cpu-1", 1),
        (1, "mixed", 2),
        (1, "short", 2),
        (4, "6", 6),
    ],
)
def test_a_named_size_follows_the_cores(
    kind: Any, cores: int, sizing: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millpond.pool.options.usable_cores", lambda: cores)
    assert f"{workers}..{workers} workers" in repr(Pool(sizing, kind=kind))


@pytest.mark.parametrize(("kind", "workers"), [("process", 8), ("async", 8), ("thread", 12)])
def test_without_a_size_a_pool_fits_the_machine(
    kind: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millpond.pool.options.usable_cores", lambda: 8)
    assert f"{workers}..{workers} workers" in repr(Pool(kind=kind))


# --- the cores of a container --------------------------------------------------------------------------
def grow(root: Path, files: dict[str, str]) -> Path:
    """A made-up machine: a tree of small files."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture
def sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/cpu"


@pytest.mark.usefixtures("sixteen_cores")
@pytest.mark.parametrize(
    ("files", "cores"),
    [
        pytest.param({}, 16, id="nothing mounted"),
        pytest.param({"proc/self/cgroup": "0::/\n"}, 16, id="v2, no quota file"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "200000 100000\n"}, 2, id="v2, own"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "max 100000\n"}, 16, id="v2, no limit"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "150000 100000\n"}, 2, id="rounded up"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "10000 100000\n"}, 1, id="at least 1"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "9900000 100000\n"}, 16, id="generous"),
        pytest.param(
            {
                "proc/self/cgroup": "0::/kube/pod/box\n",
                f"{V2}/kube/cpu.max": "max 100000\n",
                f"{V2}/kube/pod/cpu.max": "300000 100000\n",
                f"{V2}/kube/pod/box/cpu.max": "max 100000\n",
            },
            3,
            id="v2, an ancestor's",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/pod/box\n",
                f"{V2}/pod/cpu.max": "300000 100000\n",
                f"{V2}/pod/box/cpu.max": "500000 100000\n",
            },
            3,
            id="v2, the tightest",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n",
                f"{V1}/docker/abc/cpu.cfs_quota_us": "400000\n",
                f"{V1}/docker/abc/cpu.cfs_period_us": "100000\n",
            },
            4,
            id="v1, own",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n",
                f"{V1}/docker/cpu.cfs_quota_us": "500000\n",
                f"{V1}/docker/cpu.cfs_period_us": "100000\n",
                f"{V1}/docker/abc/cpu.cfs_quota_us": "-1\n",
                f"{V1}/docker/abc/cpu.cfs_period_us": "100000\n",
            },
            5,
            id="v1, an ancestor's",
        ),
        pytest.param(
            {
                # Seen from inside a container the path names folders that are not there: the mount is the box
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n",
                f"{V1}/cpu.cfs_quota_us": "200000\n",
                f"{V1}/cpu.cfs_period_us": "100000\n",
            },
            2,
            id="v1, inside the container",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:cpuset,cpuacct:/x\n0::/y\n",
                f"{V2}/y/cpu.max": "600000 100000\n",
            },
            6,
            id="hybrid",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "gibberish\n"}, 16, id="unreadable"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{V2}/cpu.max": "100000 0\n"}, 16, id="no period"),
        pytest.param({"proc/self/cgroup": "gibberish\n"}, 16, id="unreadable list"),
        pytest.param(
            {"proc/self/cgroup": "0::/../../other\n", f"{V2}/cpu.max": "200000 100000\n"},
            2,
            id="a path above the mount",
        ),
    ],
)
def test_the_cores_are_those_the_control_group_grants(
    files: dict[str, str], cores: int, tmp_path: Path
) -> None:
    assert usable_cores(grow(tmp_path, files)) == cores


def test_affinity_bounds_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert usable_cores(grow(tmp_path, {})) == 3


def test_where_there_is_no_affinity_the_machine_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cores(grow(tmp_path, {})) == 6
