"""What `app.pool` may be told about sizes: policies, spares, weights, shadow; and bounds in a store."""

from __future__ import annotations

import pytest

from millpond import App, Fixed, Node, OptionError, ScaleByDepth, ScaleForWait
from millpond.errors import Conflict
from millpond.node.scaling.decision_log import words_of
from millpond.node.scaling.overrides import Bounds, changes, read_bounds, write_bounds
from millpond.pool_settings import PoolSettings
from millpond.rules.scaling.records import Decision


@pytest.fixture
def app() -> App:
    return App("memory://")


def settings(app: App, **options: object) -> PoolSettings:
    app.pool("images", **options)  # type: ignore[arg-type]
    return app.pools["images"]


def test_the_wait_that_is_accepted_may_be_in_the_policy_or_beside_it(app):
    found = settings(app, policy=ScaleForWait("5s"))  # type: ignore[arg-type]
    assert (found.policy, found.max_wait) == (ScaleForWait(5.0), 5.0)
    assert settings(App("memory://"), max_wait="5s").max_wait == 5.0


def test_but_not_both(app):
    with pytest.raises(OptionError, match="given twice"):
        settings(app, policy=ScaleForWait(5.0), max_wait=5.0)


def test_other_policies_go_with_a_wait_that_is_only_warned_about(app):
    found = settings(app, policy=ScaleByDepth(up=10), max_wait="30s")
    assert (found.policy, found.max_wait) == (ScaleByDepth(10), 30.0)


def test_nothing_said_means_none_of_it(app):
    found = settings(app)
    assert (found.policy, found.warm, found.weight, found.shadow, found.idle_timeout) == (
        None, 0, 1.0, False, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "fast"},
        {"policy": ScaleForWait},
        {"policy": 3},
        {"warm": -1},
        {"warm": 9, "workers": (1, 8)},
        {"warm": True},
        {"weight": 0},
        {"weight": -1.0},
        {"weight": float("nan")},
        {"weight": "2"},
        {"shadow": 1},
        {"policy": ScaleForWait("soon")},  # type: ignore[arg-type]
        {"policy": ScaleForWait(0.0)},
    ],
)
def test_what_cannot_be_is_refused(app, options):
    with pytest.raises(OptionError):
        settings(app, **options)


@pytest.mark.parametrize("number", [0, -1, 1.5, "4", True])
def test_a_node_has_at_least_one_worker_in_all(app, number):
    settings(app, policy=Fixed(2))
    with pytest.raises(OptionError, match="max_workers"):
        Node(app, max_workers=number)


# --- bounds in the store ---------------------------------------------------------------------------------
def test_bounds_are_kept_under_the_name_of_the_pool(app):
    assert read_bounds(app.store, "images") is None
    write_bounds(app.store, "images", Bounds(2, 8))
    assert read_bounds(app.store, "images") == Bounds(2, 8)
    assert read_bounds(app.store, "mail") is None
    write_bounds(app.store, "images", None)
    assert read_bounds(app.store, "images") is None


@pytest.mark.parametrize(
    "data", [b"[]", b"\xff", b'{"workers": "many"}', b'{"workers": [5, 2]}', b'{"workers": [1]}']
)
def test_bounds_that_make_no_sense_are_as_none(app, data):
    app.store.record("pools/images", data, 0)
    assert read_bounds(app.store, "images") is None


def test_of_two_who_set_bounds_at_once_one_is_told(app):
    version = app.store.record("pools/images").version
    write_bounds(app.store, "images", Bounds(2, 8))
    with pytest.raises(Conflict):
        app.store.record("pools/images", b"{}", version)


def test_growth_that_a_new_minimum_has_brought_is_told_from_where_to_where():
    decided = Decision(wanted=2, keep=2, idle_timeout=0.5, alive=2, binding="min")
    assert words_of("images", decided, 1, 2) == "images 1 -> 2: at its minimum"
    assert words_of("images", decided, 2, 2) == "images 2: at its minimum"


def test_whoever_sets_bounds_tells_the_nodes_to_look(app):
    before = changes(app.store)
    write_bounds(app.store, "images", Bounds(1, 4))
    between = changes(app.store)
    write_bounds(app.store, "images", None)
    assert len({before, between, changes(app.store)}) == 3
