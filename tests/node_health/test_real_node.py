"""The health port beside a real node with real workers."""

from __future__ import annotations

import pytest

from millpond import App
from millpond.node.health.routes import HealthOptions
from millpond.node.health.server import HealthServer
from millpond.node.node import Node
from tests.node.waiting import until
from tests.node_health import jobs
from tests.node_health.test_health_port import ask, body

LIMIT = 30  # seconds for what takes one


@pytest.mark.timeout(60)
def test_a_node_is_ready_while_it_runs_and_not_before_and_after():
    node = Node(jobs.app)
    server = HealthServer(node.report, HealthOptions(port=0, open_metrics=True))
    server.start()
    try:
        assert ask(server, "/readyz").status == 503
        assert ask(server, "/livez").status == 200
        with node:
            assert jobs.add.enqueue(1, 2).result(timeout=LIMIT) == 3
            assert ask(server, "/readyz").status == 200
            page = body(ask(server, "/metrics")).decode()
            assert 'millpond_pool_jobs_done_total{pool="sums"} 1.0' in page
            assert 'millpond_node_state{state="running"} 1.0' in page
            node.hold()
            assert b"held" in body(ask(server, "/readyz"))
            node.go_on()
            assert ask(server, "/readyz").status == 200
        assert b"stopped" in body(ask(server, "/readyz"))
        assert ask(server, "/livez").status == 503
    finally:
        server.stop()


def test_jobs_of_a_paused_queue_are_no_work_that_a_pool_is_behind_with():
    app = App("memory://")
    app.pool("both", queues=["held", "slow"], workers=(1, 1))
    for queue, number in (("held", 50), ("slow", 3)):
        task = app.task(name=queue, queue=queue)(abs)
        app.store.configure(queue=queue, paused=queue == "held", rate=0.001 if queue == "slow" else None)
        task.enqueue_many([(value,) for value in range(number)])
    with Node(app) as node:
        (pool,) = until(
            lambda: [pool for pool in node.report().pools if pool.rates], "the queues being counted"
        )
    assert pool.rates == {"slow": 0.001}
    assert pool.waiting <= 3
