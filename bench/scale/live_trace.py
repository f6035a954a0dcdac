"""A compressed day on a real node beside the simulator's prediction for the very same jobs.

A few minutes of arrivals with the shape of an office day, exponential run times, one pool. Prints
worker-hours and the 95th-percentile wait, measured and predicted, and how far they are apart.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from pathlib import Path
from typing import Any

from millpond import Node
from millpond.rules.scaling.policies import ScaleForWait
from millpond.rules.scaling.records import Limits
from millpond.simulate.records import Run, Setting, Workload
from millpond.simulate.simulation import simulate

sys.path[:0] = [str(Path(__file__).resolve().parent)]
sys.setswitchinterval(0.001)
MOST, MAX_WAIT = 32, 2.0
LOOK = 0.05
SEEDS = (1, 2, 3)
LAST = 60.0  # seconds after the last arrival in which all must be done


def day(seconds: float, peak: float, service: float, seed: int) -> Workload:
    """Arrivals that rise to a peak and fall twice, as before and after lunch; each job takes its time."""
    chance = random.Random(seed)  # the same jobs each time
    arrivals, services, at = array("d"), array("d"), 0.0
    while True:
        at += chance.expovariate(peak)
        if at >= seconds:
            break
        shape = (
            (1 - math.cos(4 * math.pi * at / seconds)) / 2 * (0.6 + 0.4 * math.sin(math.pi * at / seconds))
        )
        if chance.random() < 0.05 + 0.95 * shape:
            arrivals.append(at)
            services.append(chance.expovariate(1 / service))
    return Workload("compressed day", arrivals, services)


class Live:
    """The same jobs on a node."""

    def __init__(self, workload: Workload, folder: str) -> None:
        os.environ["BENCH_SCALE_STORE"] = f"sqlite:///{folder}/jobs.db"
        os.environ["BENCH_SCALE_TRACED"] = str(MOST)
        import story

        self.story = story
        story.app.store.migrate()
        self.workload = workload
        self.worker_seconds = 0.0
        self.most = 0
        self.start_cost = 0.0

    def run(self) -> None:
        """Play the trace and watch the pool until all is done."""
        with Node(self.story.app, queues=["traced"]) as node:
            self.story.work.enqueue(0.01).result(timeout=30)  # the template is up
            self.story.work.enqueue_many([(0.2,)] * 8)  # and what a start costs is known
            time.sleep(6)
            done = threading.Event()
            watching = threading.Thread(target=self._watch, args=(node, done))
            watching.start()
            handles = self._play()
            for handle in handles:
                handle.result(timeout=LAST)
            done.set()
            watching.join()
            self.start_cost = node._state.pools["traced"].start_cost or 0.0
        self.ids = [handle.id for handle in handles]

    def _play(self) -> list[Any]:
        handles, began = [], time.monotonic()
        for at, seconds in zip(self.workload.arrivals, self.workload.services, strict=True):
            time.sleep(max(0.0, began + at - time.monotonic()))
            handles.append(self.story.work.enqueue(seconds))
        return handles

    def _watch(self, node: Node, done: threading.Event) -> None:
        pool, last = node._state.pools["traced"], time.monotonic()
        while not done.wait(LOOK):
            now = time.monotonic()
            size = sum(pool.crew())
            self.worker_seconds += size * (now - last)
            self.most, last = max(self.most, size), now

    def waits(self) -> list[float]:
        """How long each job waited, by the store's record."""
        found = []
        for start in range(0, len(self.ids), 500):
            for job in self.story.app.store.get(self.ids[start : start + 500]):
                began = None if job is None else job.attempts[-1].started_at
                if job is not None and began is not None:
                    found.append((began - job.run_at) / 1e6)
        return sorted(found)


def compared(workload: Workload, live: Live, predicted: Run, seed: int) -> dict[str, Any]:
    """Both, and how far they are apart."""
    waits, said = live.waits(), sorted(predicted.waits)
    p95, said_p95 = waits[int(0.95 * len(waits))], said[int(0.95 * len(said))]
    return {
        "seed": seed,
        "jobs": len(workload.arrivals),
        "work_hours": round(workload.work / 3600, 4),
        "start_cost": round(live.start_cost, 4),
        "worker_hours": round(live.worker_seconds / 3600, 4),
        "worker_hours_predicted": round(predicted.worker_seconds / 3600, 4),
        "worker_hours_off_by": round(live.worker_seconds / predicted.worker_seconds - 1, 4),
        "p95_wait": round(p95, 3),
        "p95_wait_predicted": round(said_p95, 3),
        "p95_wait_off_by": round(p95 / said_p95 - 1, 4),
        "most_workers": live.most,
        "most_workers_predicted": predicted.most_workers,
    }


def measured(minutes: float, peak: float, service: float, seed: int) -> dict[str, Any]:
    """The same jobs, really run and simulated."""
    workload = day(minutes * 60, peak, service, seed)
    with tempfile.TemporaryDirectory() as folder:
        live = Live(workload, folder)
        live.run()
        limits = Limits(least=0, most=MOST, start_cost=live.start_cost)
        predicted = simulate(workload, ScaleForWait(MAX_WAIT), Setting(limits, max_wait=MAX_WAIT))
        return compared(workload, live, predicted, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--peak", type=float, default=30.0, help="arrivals a second at noon")
    parser.add_argument("--service", type=float, default=0.5, help="mean seconds of a job")
    parser.add_argument("--seed", type=int, help="only this one, in this process")
    options = vars(parser.parse_args())
    found = measured(**options) if options["seed"] is not None else _all(options)
    print(json.dumps(found, indent=2))


def _all(options: dict[str, Any]) -> dict[str, Any]:
    """Each seed in a process of its own, since an app has one store."""
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    runs = []
    for seed in SEEDS:
        command = [sys.executable, __file__, *given, f"--seed={seed}"]
        runs.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    return {"minutes": options["minutes"], "runs": runs}


if __name__ == "__main__":
    main()
