"""A pool that fails by itself: its jobs pay nothing for it, and its node does not call it healthy."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from millpond import App, Node, Retry
from millpond.rules.node.health import is_ready
from tests.node.waiting import until


def fail() -> None:
    raise ZeroDivisionError("on purpose")


def test_jobs_of_a_pool_that_fails_pay_no_attempt_and_the_node_says_what_happened(
    local: App, start: Callable[..., Node], tmp_path: Path
):
    local.pool("default", workers=1)

    @local.task(retry=Retry(attempts=1))
    def stay(mark: str) -> None:
        Path(mark).touch()
        time.sleep(600)

    handles = [stay.enqueue(str(tmp_path / name)) for name in ("begun", "waiting")]
    node = start(local)
    until((tmp_path / "begun").exists, "it runs")
    pool = node._state.pools["default"]
    assert [one.status for one in node.report().pools] == ["ok"]
    [engine] = pool.engines()
    engine.call_soon(fail)
    assert engine.finished.wait(30.0)
    [told] = node.report().pools
    reason = "the pool's dispatcher failed: ZeroDivisionError: on purpose"
    assert (told.status, told.reasons) == ("failed", (reason,))
    assert not is_ready(node.report()).ok
    node.stop(2.0)
    begun, waiting = (handle.job() for handle in handles)
    assert (begun.errors, begun.crashes, begun.lost) == (0, 0, 1)
    assert (waiting.errors, waiting.crashes, waiting.lost) == (0, 0, 0)
    assert begun.attempts[0].ended == "lost"
    assert not (tmp_path / "waiting").exists()


def test_a_node_that_stops_does_not_call_its_pools_failed(local: App, start: Callable[..., Node]):
    local.pool("default", workers=1)
    node = start(local)
    until(lambda: [row.state for row in node.report().pools[0].workers] == ["idle"], "its worker is up")
    node.stop(2.0)
    assert [one.status for one in node.report().pools] == ["ok"]
