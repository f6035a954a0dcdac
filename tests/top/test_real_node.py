"""The screen beside a real node: workers, what they do, and words that the node obeys."""

from __future__ import annotations

import time

from millpond.node.node import Node


async def test_workers_are_seen_and_recycled_and_a_node_is_drained(app, screen):
    @app.task(queue="images", name="sleep")
    def sleep() -> None:
        while True:
            time.sleep(0.05)

    node = Node(app, queues=["images"], grace=0.0)
    node.start()
    try:
        sleep.enqueue()
        async with screen(app, size=(150, 30)) as driver:
            await driver.shows("images", "1 node")
            await driver.press("3")
            await driver.until(lambda: "sleep" in driver.column("task"), "a busy worker")
            await driver.until(
                lambda: any("%" in share for share in driver.column("cpu")), "its use of a core"
            )
            await driver.press("2")
            await driver.shows("process", "ok")
            before = {worker.pid for pool in node.report().pools for worker in pool.workers}
            await driver.press("3", "c")
            await driver.shows("Replace worker")
            await driver.press("y")
            await driver.shows("was told to replace")
            await driver.until(lambda: _states(node) & {"draining"} or _pids(node) != before, "a new worker")
            await driver.press("4")
            await driver.shows(node.report().id)
            await driver.press("d")
            await driver.shows("Drain node")
            await driver.press("y")
            await driver.until(lambda: node.report().state in ("draining", "stopped"), "the node to drain")
    finally:
        node.stop(0.0)


def _pids(node: Node) -> set[int]:
    return {worker.pid for pool in node.report().pools for worker in pool.workers}


def _states(node: Node) -> set[str]:
    return {worker.state for pool in node.report().pools for worker in pool.workers}
