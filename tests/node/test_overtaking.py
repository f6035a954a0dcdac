"""What a node has claimed and not begun is still in order: whoever is more urgent goes first."""

from __future__ import annotations

import os
import time

from millpond.job import Priority
from tests.node.waiting import all_ended, until

RUN = 0.006  # seconds: short enough to be claimed ahead, too long to be sent to a worker that is busy


def test_a_critical_job_overtakes_what_was_claimed_before_it_and_has_not_begun(app, start, tmp_path):
    marks, go = tmp_path / "marks", tmp_path / "go"
    app.pool("default", workers=1)

    @app.task(name="mark")
    def mark(path: str, name: str, wait_for: str = "") -> None:
        with open(path, "a") as file:
            file.write(f"{name}\n")
        time.sleep(RUN)
        while wait_for and not os.path.exists(wait_for):
            time.sleep(0.005)

    node = start(app)
    pool = node._state.pools["default"]
    all_ended(mark.enqueue_many([(str(tmp_path / "before"), "short")] * 10))  # now some are claimed ahead
    first = mark.enqueue(str(marks), "first", str(go))
    until(marks.exists, "the only worker is busy")
    usual = mark.enqueue_many([(str(marks), f"usual {number}") for number in range(2)])
    until(lambda: len(pool.held) == 3, "the usual ones are claimed")
    urgent = mark.using(priority=Priority.CRITICAL).enqueue(str(marks), "urgent")
    until(lambda: urgent.id in pool.held or len(pool.held) == 1, "it is claimed, or the others went back")
    go.touch()
    all_ended([first, *usual, urgent])
    names = marks.read_text().splitlines()
    assert names == ["first", "urgent", "usual 0", "usual 1"]
