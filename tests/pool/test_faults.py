"""Whatever a task or the world does to a worker, exactly the task concerned pays and the pool lives on."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from pathlib import Path

import pytest

from millpond import (
    MemoryExceeded,
    PayloadError,
    Pool,
    PoolDegraded,
    TaskTimeout,
    WorkerDied,
)
from millpond.events import WorkerStarted
from tests.pool import faults

LONG = 60


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_dead(pids, limit):
    """True when all are gone; waits on their pidfds."""
    end = time.monotonic() + limit
    import select

    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(max(0.0, end - time.monotonic()) * 1000)
        os.close(descriptor)
    return not any(alive(pid) for pid in pids)


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return str(path)


@pytest.mark.parametrize(
    ("task", "signal_", "code"),
    [
        (faults.exit_if, None, 3),
        (faults.segfault_if, signal.SIGSEGV, None),
        (faults.kill_self_if, signal.SIGKILL, None),
    ],
)
def test_of_a_thousand_tasks_exactly_the_twenty_that_kill_their_worker_fail(task, signal_, code):
    bad = set(range(25, 1000, 50))
    with Pool(2) as pool:
        submitted = [pool.submit(task, number, bad) for number in range(1000)]
        for number, future in enumerate(submitted):
            if number in bad:
                error = future.exception(LONG)
                assert isinstance(error, WorkerDied)
                assert (error.signal, error.exitcode) == (signal_, code)
                assert error.suspects == 1
            else:
                assert future.result(LONG) == number
        assert len({pool.submit(faults.pid_of).result(LONG) for _ in range(2)}) >= 1
        statistics = pool.statistics()
        assert statistics.crashed == 20
        assert statistics.size + statistics.starting >= 2


def test_a_worker_killed_from_outside_fails_its_running_task_and_no_other(fifo):
    with Pool(2) as pool:
        victim = pool.submit(faults.say_pid, fifo)
        with open(fifo) as file:
            pid = int(file.readline())
        others = [pool.submit(faults.echo, number) for number in range(200)]
        os.kill(pid, signal.SIGKILL)
        error = victim.exception(LONG)
        assert isinstance(error, WorkerDied)
        assert error.signal == signal.SIGKILL
        assert error.pid == pid
        assert "SIGKILL" in str(error)
        assert [future.result(LONG) for future in others] == list(range(200))


def test_a_segfault_leaves_its_python_stack_on_the_error():
    with Pool(1) as pool:
        error = pool.submit(faults.segfault_if, 1, {1}).exception(LONG)
    assert isinstance(error, WorkerDied)
    assert "segfault_if" in error.stack
    assert "segfault_if" in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("how", ["sleep", "gil", "signals", "spin"])
def test_ten_hanging_tasks_fail_soon_after_their_timeout_and_leave_no_process(how):
    with Pool(2, timeout=0.2) as pool:
        pool.submit(faults.echo, 0).result(LONG)
        submitted = [pool.submit(faults.hang_or_echo, n, how if n % 4 == 1 else None) for n in range(40)]
        outcomes = [future.exception(LONG) for future in submitted]
        pids = [row.pid for row in pool.statistics().workers if row.pid]
    for number, outcome in enumerate(outcomes):
        if number % 4 == 1:
            assert isinstance(outcome, TaskTimeout)
            assert isinstance(outcome, TimeoutError)
            assert outcome.timeout == 0.2
        else:
            assert outcome is None
    if how in ("sleep", "spin", "gil"):
        assert isinstance(outcomes[1], TaskTimeout)
        assert "in hang_or_echo" in outcomes[1].stack
    assert wait_until_dead(pids, 5)


def test_a_timeout_is_noticed_within_half_a_second():
    with Pool(1, timeout=0.3) as pool:
        pool.submit(faults.echo, 1).result(LONG)
        begin = time.monotonic()
        with pytest.raises(TaskTimeout):
            pool.submit(faults.sleep_for_ever, 1).result(LONG)
        assert 0.3 <= time.monotonic() - begin < 0.8


SCRIPT = """
    import os, pathlib, sys, time
    from millpond import Pool
    from tests.pool import faults
    pool = Pool(3, {context})
    busy = [pool.submit(faults.sleep_for_ever, n) for n in range(2)]
    pool.submit(faults.echo, 1).result(30)
    while pool.statistics().busy != 2: time.sleep(0.01)
    pids = [row.pid for row in pool.statistics().workers if row.pid]
    children = pathlib.Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()
    print(*pids, *children, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "context", ["", "mp_context='fork'", "mp_context='spawn'", "mp_context='forkserver'"]
)
def test_no_child_outlives_a_parent_killed_with_sigkill(context):
    script = textwrap.dedent(SCRIPT).format(
        context=context.replace("=", "=__import__('multiprocessing').get_context(") + ")" if context else ""
    )
    before = set(os.listdir("/dev/shm"))
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    try:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) >= 3
        os.kill(parent.pid, signal.SIGKILL)
        assert wait_until_dead(pids, 1.0)
    finally:
        parent.kill()
        parent.communicate()
        parent.stdout.close()
    assert not {name for name in set(os.listdir("/dev/shm")) - before if "millpond" in name}


def test_if_the_template_dies_its_workers_go_with_it_and_the_tasks_run_again(fifo):
    with Pool(2) as pool:
        pool.submit(faults.echo, 0).result(LONG)
        pid = pool.submit(faults.pid_of).result(LONG)
        status = Path(f"/proc/{pid}/status").read_text()
        [template] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:")]
        assert template != os.getpid()
        os.kill(template, signal.SIGKILL)
        submitted = [pool.submit(faults.echo, number) for number in range(100)]
        assert [future.result(LONG) for future in submitted] == list(range(100))


def test_tasks_sent_to_a_stopped_worker_and_not_begun_run_elsewhere(tmp_path):
    log = tmp_path / "log"
    with Pool(2) as pool:
        assert sum(1 for _ in pool.map(faults.note, [str(log)] * 500, range(500), chunksize=1)) == 500
        workers = [row.pid for row in pool.statistics().workers if row.pid]  # 0: not forked yet
        os.kill(workers[0], signal.SIGSTOP)
        try:
            submitted = [pool.submit(faults.note, str(log), number) for number in range(1000, 2000)]
            finished = threading.Event()
            count = [0]
            lock = threading.Lock()

            def one_more(_):
                with lock:
                    count[0] += 1
                    if count[0] >= 999:
                        finished.set()

            for future in submitted:
                future.add_done_callback(one_more)
            assert finished.wait(LONG)  # at most the one it had begun is held up
        finally:
            os.kill(workers[0], signal.SIGCONT)
        assert [future.result(LONG) for future in submitted] == list(range(1000, 2000))
    ran = [int(line) for line in log.read_text().split()]
    assert sorted(ran) == sorted(set(ran)), "no task ran twice"


def test_a_large_argument_to_a_stopped_worker_does_not_stall_the_others():
    with Pool(2) as pool:
        pids: set[int] = set()
        while len(pids) < 2:
            pids |= {future.result(LONG) for future in [pool.submit(faults.pid_of) for _ in range(4)]}
        stopped = pids.pop()
        os.kill(stopped, signal.SIGSTOP)
        try:
            big = [pool.submit(faults.pickle_of, bytearray(10_000_000)) for _ in range(2)]
            big += [pool.submit(faults.pickle_of, ["x" * 10_000_000]) for _ in range(2)]
            small = [pool.submit(faults.echo, number) for number in range(100)]
            for future in small:
                assert future.result(LONG) is not None
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert all(future.result(LONG) > 9_000_000 for future in big)


@pytest.mark.parametrize("kind", ["process", "async"])
@pytest.mark.parametrize(
    ("call", "args", "error"),
    [
        (faults.return_lock, (), TypeError),
        (faults.return_wont_arrive, (), PayloadError),
        (faults.echo, (faults.WontArrive(),), PayloadError),
        (faults.raise_it, (faults.Unpicklable, 1, 2), RuntimeError),
        (faults.raise_it, (faults.HalfPicklable, 1, 2), RuntimeError),
        (faults.raise_it, (faults.BadText,), faults.BadText),
        (faults.leave_with, (SystemExit,), SystemExit),
        (faults.leave_with, (KeyboardInterrupt,), KeyboardInterrupt),
        (faults.leave_with, (BaseException,), BaseException),
        (faults.leave_with, (GeneratorExit,), GeneratorExit),
    ],
)
def test_trouble_with_one_call_lands_on_its_own_future(kind, call, args, error):
    with Pool(1, kind=kind) as pool:
        before = pool.submit(faults.pid_of).result(LONG)
        neighbours = [pool.submit(faults.echo, number) for number in range(20)]
        trouble = pool.submit(call, *args)
        neighbours += [pool.submit(faults.echo, number) for number in range(20, 40)]
        assert isinstance(trouble.exception(LONG), error)
        assert [future.result(LONG) for future in neighbours] == list(range(40))
        assert pool.submit(faults.pid_of).result(LONG) == before, "the worker goes on"


def test_an_argument_that_cannot_be_pickled_fails_its_own_future():
    with Pool(1) as pool:
        trouble = pool.submit(faults.echo, threading.Lock())
        assert isinstance(trouble.exception(LONG), TypeError)
        assert pool.submit(faults.echo, 1).result(LONG) == 1


def test_a_remote_error_shows_where_it_was_raised():
    with Pool(1) as pool:
        error = pool.submit(faults.explode).exception(LONG)
    assert error is not None
    assert "in explode" in str(error.__cause__)


def test_a_result_of_500_megabytes_arrives():
    with Pool(1) as pool:
        value = pool.submit(faults.large, 500_000_000).result(LONG)
        assert len(value) == 500_000_000
        assert type(value) is bytes
        assert pool.submit(faults.echo, 1).result(LONG) == 1


def test_a_callback_that_raises_disturbs_nothing(caplog):
    with Pool(1) as pool:
        future = pool.submit(faults.echo, 1)
        future.add_done_callback(lambda _: 1 / 0)
        assert future.result(LONG) == 1
        assert pool.submit(faults.echo, 2).result(LONG) == 2


def test_a_task_that_forks_answers_once_and_its_child_never_serves():
    with Pool(1) as pool:
        assert pool.submit(faults.fork_and_return).result(LONG) == "worker"
        assert [pool.submit(faults.echo, n).result(LONG) for n in range(50)] == list(range(50))


def test_what_a_task_left_running_dies_with_its_worker(fifo):
    with Pool(1) as pool:
        future = pool.submit(faults.fork_a_sleeper, fifo)
        with open(fifo) as file:
            orphan = int(file.readline())
        worker = future.result(LONG)
        os.kill(worker, signal.SIGKILL)
        assert wait_until_dead([orphan], 5)


def test_a_task_that_closes_every_descriptor_gets_its_result_and_a_new_worker_follows():
    with Pool(1) as pool:
        assert pool.submit(faults.close_everything).result(LONG) == "closed"
        assert [pool.submit(faults.echo, n).result(LONG) for n in range(50)] == list(range(50))


def test_a_task_that_prints_a_hundred_megabytes_is_only_slow():
    with Pool(2, capture_output=True) as pool:
        noisy = pool.submit(faults.print_much, 100)
        assert [pool.submit(faults.echo, n).result(LONG) for n in range(50)] == list(range(50))
        assert noisy.result(LONG) == 100


def test_a_worker_that_answers_for_a_task_it_was_not_given_is_retired():
    gone = threading.Event()
    with Pool(1) as pool:
        pool.subscribe(lambda event: gone.set() if "stray" in repr(event) else None)
        pid = pool.submit(faults.corrupt_ring).result(LONG)
        assert gone.wait(LONG)
        assert pool.submit(faults.pid_of).result(LONG) != pid


@pytest.mark.parametrize("kind", ["process", "thread", "async"])
def test_an_initializer_that_raises_gives_a_clear_error_and_the_pool_recovers(kind, tmp_path):
    flag = tmp_path / "flag"
    with Pool(1, initializer=faults.needs, initargs=(str(flag),), kind=kind) as pool:
        error = pool.submit(faults.echo, 1).exception(LONG)
        assert isinstance(error, PoolDegraded)
        assert "no flag yet" in str(error)
        assert pool.health().status == "degraded"
        recovered = threading.Event()
        pool.subscribe(lambda event: recovered.set() if isinstance(event, WorkerStarted) else None)
        flag.touch()
        assert recovered.wait(LONG)
        assert pool.submit(faults.echo, 2).result(LONG) == 2
        assert pool.health().status == "ok"


def test_one_task_in_each_child_over_many_tasks_neither_hangs_nor_loses():
    with Pool(2, max_tasks_per_child=1) as pool:
        pids = [future.result(LONG) for future in [pool.submit(faults.pid_of) for _ in range(300)]]
    assert len(set(pids)) == 300


def test_every_budget_at_once_under_load_loses_nothing():
    with Pool(2, max_tasks_per_child=7, max_memory="2GB", max_age=0.2, timeout=30) as pool:
        submitted = [pool.submit(faults.echo, number) for number in range(1000)]
        assert [future.result(LONG) for future in submitted] == list(range(1000))
        assert pool.statistics().recycled > 100


def test_a_task_that_outgrows_its_memory_is_stopped_with_the_figures():
    with Pool(1, max_memory="200MB") as pool:
        error = pool.submit(faults.grow).exception(LONG)
        assert isinstance(error, MemoryExceeded)
        assert "200,000,000" in str(error)
        assert pool.submit(faults.echo, 1).result(LONG) == 1


CTRL_C = """
    import signal, time
    from millpond import Pool
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Pool(2) as pool:
        futures = [pool.submit(time.sleep, 1000) for _ in range(4)]
        while pool.statistics().busy < 2: time.sleep(0.01)
        print(*[row.pid for row in pool.statistics().workers], flush=True)
        futures[0].result()
"""


def test_ctrl_c_in_a_with_block_ends_the_program_and_its_workers():
    script = textwrap.dedent(CTRL_C)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        pids = [int(pid) for pid in program.stdout.readline().split()]
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=LONG)
    assert "KeyboardInterrupt" in errors
    assert wait_until_dead(pids, 5)


def test_shutdown_with_a_timeout_ends_even_if_the_template_is_stopped():
    pool = Pool(1)
    worker = pool.submit(faults.pid_of).result(LONG)
    status = Path(f"/proc/{worker}/status").read_text()
    [template] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:")]
    os.kill(template, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    waiting = pool.submit(faults.echo, 1)
    pool.shutdown(timeout=0.5)
    assert waiting.done()
    assert wait_until_dead([template], 5)
