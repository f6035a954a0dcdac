"""The noon rush on a real node: 50,000 image jobs at once beside a steady stream of mail.

Prints when the pool reached its maximum, how long the drain took beside what a pool needs that has all its
workers from the start, when it was back at its minimum, and how long mail waited. Nothing else may run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from millpond import Node

sys.path[:0] = [str(Path(__file__).resolve().parent)]
sys.setswitchinterval(0.001)  # as `millpond run` does
MAIL_EVERY = 0.05  # seconds between two mails
GIVE_UP = 600.0


class Story:
    """One run, and what is seen of it."""

    def __init__(self, jobs: int, seconds: float, folder: str) -> None:
        os.environ["BENCH_SCALE_STORE"] = f"sqlite:///{folder}/jobs.db"
        import story

        self.story = story
        self.store = story.app.store
        self.store.migrate()
        self.jobs, self.seconds = jobs, seconds
        self.sizes: list[tuple[float, int, int]] = []  # seconds since the rush, workers for images, for mail
        self.began_at = 0.0

    def run(self) -> dict[str, Any]:
        """From the first mail to the quiet afterwards."""
        done = threading.Event()
        mail = threading.Thread(target=self._write_mail, args=(done,))
        self.node = Node(self.story.app)
        with self.node:
            try:
                self._until(lambda: self._workers() == (1, 1))
                mail.start()
                time.sleep(2)
                found = self._rush()
            finally:
                done.set()
            mail.join()
        return {**found, **self._mail_waits()}

    def _rush(self) -> dict[str, Any]:
        self.began_at = time.monotonic()
        self.story.resize.enqueue_many([(self.seconds,)] * self.jobs)
        stored = time.monotonic() - self.began_at
        self.began_at = time.monotonic()
        grown = self._until(lambda: self._workers()[0] >= self.story.MOST)
        drained = self._until(lambda: self._left() <= 0)
        night = self._until(lambda: self._workers() == (1, 1))
        floor = self.jobs * self.seconds / self.story.MOST
        return {
            "jobs": self.jobs,
            "seconds_each": self.seconds,
            "most": self.story.MOST,
            "seconds_to_store_them": round(stored, 2),
            "workers_at_peak": max(images for _, images, _ in self.sizes),
            "seconds_to_maximum": round(grown, 2),
            "seconds_to_drain": round(drained, 2),
            "drain_at_best": round(floor, 2),
            "seconds_back_to_minimum": round(night - drained, 2),
            "workers_at_night": sum(self._workers()),
        }

    def steady(self) -> dict[str, Any]:
        """The rate at which a pool that is never resized runs the same jobs, beside the same mail."""
        done = threading.Event()
        mail = threading.Thread(target=self._write_mail, args=(done,))
        self.node = Node(self.story.app)
        with self.node:
            try:
                self._until(lambda: self._workers()[0] >= self.story.MOST)
                mail.start()
                self.story.resize.enqueue_many([(self.seconds,)] * self.jobs)
                self.began_at, before = time.monotonic(), self._left()
                took = self._until(lambda: self._left() <= 0)
            finally:
                done.set()
            mail.join()
        return {"steady_rate": round(before / took, 1)}

    def _until(self, question: Any) -> float:
        """The seconds since the rush began at which the answer was yes."""
        end = time.monotonic() + GIVE_UP
        while not question():
            if time.monotonic() > end:
                raise SystemExit("it did not come true within ten minutes")
            time.sleep(0.05)
        return time.monotonic() - self.began_at

    def _workers(self) -> tuple[int, int]:
        """Workers that are ready, of the pool for images and of the pool for mail."""
        ready = [
            sum(worker.state in ("idle", "busy") for worker in pool.workers)
            for pool in self.node.report().pools
            if pool.name in ("images", "mail")
        ]
        self.sizes.append((time.monotonic() - self.began_at, ready[0], ready[1]))
        return ready[0], ready[1]

    def _left(self) -> int:
        return self.jobs - next(pool.done for pool in self.node.report().pools if pool.name == "images")

    def _write_mail(self, done: threading.Event) -> None:
        while not done.wait(MAIL_EVERY):
            self.story.send.enqueue(0.02)

    def _mail_waits(self) -> dict[str, Any]:
        from millpond.store.protocol import Filter

        waits, cursor = [], None
        while True:
            page = self.store.search(Filter(queue="mail"), 1000, cursor)
            waits += [
                (job.attempts[-1].started_at - job.run_at) / 1e6
                for job in page.jobs
                if job.attempts and job.attempts[-1].started_at is not None
            ]
            cursor = page.cursor
            if cursor is None:
                break
        waits.sort()
        return {
            "mails": len(waits),
            "mail_wait_p50": round(waits[len(waits) // 2], 4),
            "mail_wait_p95": round(waits[int(len(waits) * 0.95)], 4),
            "mail_wait_max": round(waits[-1], 4),
            "mail_max_wait_accepted": 2.0,
        }


def measure(jobs: int, seconds: float, *, steady: bool) -> dict[str, Any]:
    """The whole story, in numbers; what is steady is measured by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        if steady:
            return Story(jobs, seconds, folder).steady()
        return {**Story(jobs, seconds, folder).run(), **_steady(jobs, seconds)}


def _steady(jobs: int, seconds: float) -> dict[str, Any]:
    command = [sys.executable, __file__, "--steady", "--jobs", str(jobs // 2), "--seconds", str(seconds)]
    variables = {**os.environ, "BENCH_SCALE_FIXED": "1"}
    found = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(found.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=0.01, help="that each image holds a worker")
    parser.add_argument("--steady", action="store_true", help="all workers are there from the start")
    options = parser.parse_args()
    print(json.dumps(measure(options.jobs, options.seconds, steady=options.steady), indent=2))


if __name__ == "__main__":
    main()
