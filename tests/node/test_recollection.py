"""What is known about tasks outlives a node; without it, what the store counted is a first guess."""

import time

import pytest

from millpond import App
from millpond.node.scaling.saved_estimates import NEEDS, guess, keep, keep_needs, recall, recall_needs
from millpond.rules.histogram import bucket
from millpond.rules.resources.learned_needs import Learned
from millpond.rules.scaling.estimates import Estimates
from millpond.store.protocol import Minute


def minute(queue: str, **runs: float) -> Minute:
    return Minute(queue, 1, {}, {}, {bucket(seconds): 10 for seconds in runs.values()})


def service(estimates: Estimates) -> float:
    """What a job of a task that nobody has seen would be thought to take."""
    return {load.task: load.service for load in estimates.loads({"new": 1}).tasks}["new"]


def test_what_is_kept_is_known_again():
    store = App("memory://").store
    known = Estimates().after(0.0, {}, [("resize", 0.2)] * 40)
    keep(store, "images", known)
    keep(store, "images", known)
    assert recall(store, "images", ["images"]).tasks["resize"].mean == pytest.approx(0.2)
    assert recall(store, "mail", ["mail"]).tasks == {}


def test_what_cannot_be_read_is_learned_anew():
    store = App("memory://").store
    store.record("estimates/images", b"\xff", 0)
    assert recall(store, "images", ["images"]).tasks == {}


def test_without_it_the_run_times_of_the_queue_are_a_guess():
    found = guess([minute("images", first=0.1), minute("mail", first=60.0), minute("images")], ["images"])
    assert service(found) == pytest.approx(0.1, rel=0.3)
    assert guess([minute("mail", first=60.0)], ["images"]).tasks == {}


def test_what_tasks_need_is_known_again_beside_what_other_nodes_have_learned():
    store, now = App("memory://").store, time.monotonic()
    keep_needs(store, {"resize": Learned().after(now, memory=200_000_000, cpu=None)})
    keep_needs(store, {"train": Learned().after(now, memory=900_000_000, cpu=2.0)})
    known = recall_needs(store)
    assert set(known) == {"resize", "train"}
    assert known["resize"].memory_request(time.monotonic()) > 200_000_000
    assert known["train"].cpu_request() >= 2.0


def test_needs_that_cannot_be_read_are_learned_anew():
    store = App("memory://").store
    store.record(NEEDS, b"[1]", 0)
    assert recall_needs(store) == {}
    keep_needs(store, {"resize": Learned().after(0.0, memory=200_000_000, cpu=None)})
    assert set(recall_needs(store)) == {"resize"}
