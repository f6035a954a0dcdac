"""The CPython cases that cannot apply to ``Pool``, each with its reason and what replaces it.

Everything not listed here must pass. ``instead`` names tests of ``test_opposites``; ``since`` is
the first Python whose tests hold the case. A listed case that no longer exists fails the run, and
so does an ``instead`` that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

PROCESS_KINDS = frozenset({"process", "fork", "forkserver", "spawn", "async"})
THREAD_KINDS = frozenset({"thread"})
ALL_KINDS = PROCESS_KINDS | THREAD_KINDS

BREAKS_ON_CRASH = "demands that one crash breaks the pool; ours must stay whole"
BREAKS_ON_INITIALIZER = "demands that a failing initializer breaks the pool for good (_broken)"

INNER_CASE = "runs FailingInitializerTest inside; its failure there keeps the queue it looks for alive"


@dataclass(frozen=True)
class NotApplicable:
    """One case that is not run on ``kinds``."""

    case: str
    reason: str
    instead: tuple[str, ...]
    kinds: frozenset[str] = ALL_KINDS
    since: tuple[int, int] = (3, 11)


def _private(case: str, names: str, *instead: str, since: tuple[int, int] = (3, 11)) -> NotApplicable:
    reason = f"reads the standard library's private {names}"
    return NotApplicable(case, reason, instead, since=since)


NEEDS_NEWER_PYTHON = frozenset(
    {
        "FailingInitializerResourcesTest.test_forkserver",  # ResourceTracker._exitcode
        "FailingInitializerResourcesTest.test_spawn",
        "ProcessPoolExecutorTest.test_python_finalization_error",  # threading._start_joinable_thread
        "ThreadPoolExecutorTest.test_default_workers",  # os.process_cpu_count
    }
)
"""Cases of Python 3.13 that an older interpreter, borrowing them, cannot run with any pool."""

TABLE = (
    # One crash, or one failing initializer, breaks the standard library's pool.
    NotApplicable(
        "ProcessPoolExecutorTest.test_killed_child",
        f"{BREAKS_ON_CRASH} (and reads _processes)",
        ("test_a_worker_killed_from_outside_fails_its_own_task_and_nothing_else",),
    ),
    NotApplicable(
        "FailingInitializerTest.test_initializer",
        BREAKS_ON_INITIALIZER,
        ("test_a_failing_initializer_is_named_and_the_pool_recovers_when_it_succeeds",),
    ),
    NotApplicable(
        "ThreadPoolFailingInitializerTest.test_initializer",
        BREAKS_ON_INITIALIZER,
        ("test_a_failing_initializer_is_named_and_the_pool_recovers_when_it_succeeds",),
    ),
    NotApplicable(
        "FailingInitializerResourcesTest.test_forkserver",
        INNER_CASE,
        ("test_a_pool_that_was_shut_down_lets_go_of_its_initializer_and_arguments",),
        since=(3, 13),
    ),
    NotApplicable(
        "FailingInitializerResourcesTest.test_spawn",
        INNER_CASE,
        ("test_a_pool_that_was_shut_down_lets_go_of_its_initializer_and_arguments",),
        since=(3, 13),
    ),
    # Private attributes of ProcessPoolExecutor.
    _private(
        "ProcessPoolShutdownTest.test_processes_terminate",
        "_processes",
        "test_leaving_the_with_block_ends_every_worker",
    ),
    _private(
        "ProcessPoolShutdownTest.test_context_manager_shutdown",
        "_processes",
        "test_leaving_the_with_block_ends_every_worker",
    ),
    _private(
        "ProcessPoolShutdownTest.test_del_shutdown",
        "_executor_manager_thread, _processes and _call_queue",
        "test_a_forgotten_pool_finishes_its_work_and_ends_its_workers",
    ),
    _private(
        "ProcessPoolShutdownTest.test_shutdown_no_wait",
        "_executor_manager_thread, _processes and _call_queue",
        "test_shutdown_without_waiting_finishes_the_work_and_ends_the_workers",
    ),
    _private(
        "ProcessPoolExecutorTest.test_saturation",
        "_max_workers and _processes",
        "test_a_flooded_pool_has_exactly_its_size_in_workers",
    ),
    _private(
        "ProcessPoolExecutorTest.test_idle_process_reuse_one",
        "_max_workers and _processes",
        "test_tasks_one_after_another_reuse_one_worker",
    ),
    _private(
        "ProcessPoolExecutorTest.test_idle_process_reuse_multiple",
        "_max_workers and _processes",
        "test_tasks_one_after_another_reuse_one_worker",
    ),
    _private(
        "ProcessPoolExecutorTest.test_max_tasks_per_child",
        "_processes (and refuses the option under fork, where ours works)",
        "test_a_worker_is_replaced_after_its_budget_of_tasks",
    ),
    _private(
        "ProcessPoolExecutorTest.test_max_tasks_per_child_defaults_to_spawn_context",
        "_mp_context (and ties the option to the spawn start method)",
        "test_a_worker_is_replaced_after_its_budget_of_tasks",
    ),
    _private(
        "ProcessPoolExecutorTest.test_traceback",
        "type _RemoteTraceback",
        "test_an_error_shows_the_line_that_raised_it_in_the_worker",
    ),
    _private(
        "ExecutorDeadlockTest.test_shutdown_deadlock_pickle",
        "_executor_manager_thread",
        "test_an_argument_that_cannot_be_pickled_before_shutdown_fails_only_its_future",
    ),
    NotApplicable(
        "ProcessPoolExecutorTest.test_python_finalization_error",
        "lets exactly one of the standard library's two threads start, by mocking threading",
        ("test_a_pool_that_cannot_start_a_thread_says_so_instead_of_hanging",),
        since=(3, 12),
    ),
    # Private attributes of ThreadPoolExecutor.
    _private(
        "ThreadPoolShutdownTest.test_threads_terminate",
        "_threads",
        "test_leaving_the_with_block_ends_every_thread",
    ),
    _private(
        "ThreadPoolShutdownTest.test_context_manager_shutdown",
        "_threads",
        "test_leaving_the_with_block_ends_every_thread",
    ),
    _private(
        "ThreadPoolShutdownTest.test_del_shutdown",
        "_threads",
        "test_a_forgotten_thread_pool_finishes_its_work_and_ends_its_threads",
    ),
    _private(
        "ThreadPoolShutdownTest.test_shutdown_no_wait",
        "_threads",
        "test_shutdown_of_threads_without_waiting_finishes_the_work",
    ),
    _private(
        "ThreadPoolShutdownTest.test_thread_names_assigned",
        "_threads (and uses thread_name_prefix; ours is name)",
        "test_threads_carry_the_name_of_their_pool",
    ),
    _private(
        "ThreadPoolShutdownTest.test_thread_names_default",
        "_threads and class name",
        "test_threads_carry_the_name_of_their_pool",
    ),
    _private(
        "ThreadPoolExecutorTest.test_default_workers",
        "_max_workers",
        "test_a_pool_without_a_size_still_works",
    ),
    _private(
        "ThreadPoolExecutorTest.test_saturation",
        "_max_workers and _threads",
        "test_a_flooded_thread_pool_has_exactly_its_size_in_threads",
    ),
    _private(
        "ThreadPoolExecutorTest.test_idle_thread_reuse",
        "_threads",
        "test_tasks_one_after_another_reuse_one_worker",
    ),
)


def not_applicable(case: str, kind: str) -> NotApplicable | None:
    """The table's entry for a case on a kind, if it has one."""
    for entry in TABLE:
        if entry.case == case and kind in entry.kinds:
            return entry
    return None
