"""Everything at once, at random: every future is settled exactly once, and no task runs twice."""

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from concurrent.futures import CancelledError

import pytest

from millpond import Pool, PoolClosed, TaskKilled, TaskTimeout, WorkerDied
from tests.pool import faults

LONG = 60


class Settled:
    """Counts how often each future was settled."""

    def __init__(self):
        self.counts: Counter[int] = Counter()
        self.lock = threading.Lock()

    def watch(self, future):
        future.add_done_callback(self)
        return future

    def __call__(self, future):
        with self.lock:
            self.counts[id(future)] += 1


def disturb(pool, dice, futures):
    """One random act against the pool."""
    act = dice.choice(["kill", "stop", "cancel", "resize", "kill task", "look"])
    workers = [row.pid for row in pool.statistics().workers if row.pid]
    with contextlib.suppress(ProcessLookupError):
        if act == "kill" and workers:
            os.kill(dice.choice(workers), signal.SIGKILL)
        elif act == "stop" and workers:
            pid = dice.choice(workers)
            os.kill(pid, signal.SIGSTOP)
            threading.Timer(0.05, cont, (pid,)).start()
        elif act == "cancel":
            dice.choice(futures).cancel()
        elif act == "resize":
            pool.resize(max_workers=dice.randint(1, 4))
        elif act == "kill task":
            pool.kill(dice.choice(futures))
        else:
            assert pool.health().status in ("ok", "degraded")


def cont(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_every_future_is_settled_exactly_once(seed, tmp_path):
    dice = random.Random(seed)
    log = str(tmp_path / "log")
    settled = Settled()
    pool = Pool(3, timeout=0.3, max_tasks_per_child=dice.choice([None, 3, 40]))
    futures = []
    for number in range(600):
        how = dice.choices(["exit", "hang", "raise", None], [2, 1, 5, 92])[0]
        futures.append(settled.watch(pool.submit(faults.misbehave_now_and_then, log, number, how)))
        if dice.random() < 0.06:
            disturb(pool, dice, futures)
    pool.resize(max_workers=3)
    if seed == 2:
        pool.shutdown(wait=False, cancel_futures=True)
    allowed = (WorkerDied, TaskTimeout, TaskKilled, ValueError, CancelledError)
    for number, future in enumerate(futures):
        try:
            assert future.result(LONG) == number
        except allowed:
            pass
    pool.shutdown()
    assert [settled.counts[id(future)] for future in futures] == [1] * 600
    runs = Counter(int(line) for line in open_lines(log))
    assert max(runs.values(), default=1) == 1, "no task ran twice"
    done = [n for n, future in enumerate(futures) if not future.cancelled() and future.exception() is None]
    assert all(runs[number] == 1 for number in done)


def open_lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return file.read().split()


def test_many_threads_submit_while_workers_die():
    pool = Pool(2)
    outcomes: Counter[bool] = Counter()
    lock = threading.Lock()

    def submitter(seed):
        dice = random.Random(seed)
        bad = {n for n in range(400) if dice.random() < 0.01}
        for number in range(400):
            try:
                good = pool.submit(faults.exit_if, number, bad).result(LONG) == number
            except WorkerDied:
                good = number in bad
            with lock:
                outcomes[good] += 1

    threads = [threading.Thread(target=submitter, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    pool.shutdown()
    assert outcomes == {True: 2400}


def test_shutdown_in_the_middle_of_submitting_loses_no_accepted_task():
    pool = Pool(2)
    accepted = []
    started = threading.Event()

    def submitter():
        with contextlib.suppress(PoolClosed):
            for number in range(1_000_000):
                accepted.append(pool.submit(faults.echo, number))
                if number == 2000:
                    started.set()

    thread = threading.Thread(target=submitter)
    thread.start()
    assert started.wait(LONG)
    pool.shutdown()
    thread.join(LONG)
    assert len(accepted) < 1_000_000
    assert [future.result(LONG) for future in accepted] == list(range(len(accepted)))
