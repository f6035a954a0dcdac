"""What a node tells beside its lease: how busy its processors are, and how its pools find their size."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from millpond.node.lease.publish_info import ProcessorUse, policy_in_words
from millpond.pool_settings import pool_settings
from millpond.rules.scaling.policies import Fixed, ScaleForWait
from millpond.system.cores import usable_cores


def seen(*workers):
    """A report with workers of (pid, seconds of processor time)."""
    pool = SimpleNamespace(workers=[SimpleNamespace(pid=pid, cpu=cpu) for pid, cpu in workers])
    return SimpleNamespace(pools=[pool])


def test_processors_are_what_was_used_between_two_looks():
    use = ProcessorUse()
    assert use.since_last(seen((1, 5.0)), 100.0, 1.0) == {"used": None, "limit": usable_cores()}
    assert use.since_last(seen((1, 7.0), (2, 90.0)), 102.0, 2.0)["used"] == 1.5  # the new one counts later
    assert use.since_last(seen((2, 91.0)), 104.0, 2.0)["used"] == 0.5
    assert use.since_last(seen((2, 0.0)), 106.0, 2.0)["used"] == 0.0  # another process by the same number


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "ScaleForWait(max_wait=1)"),
        ({"max_wait": "3s"}, "ScaleForWait(max_wait=3)"),
        ({"policy": ScaleForWait(2.5), "shadow": True}, "ScaleForWait(max_wait=2.5), in shadow"),
        ({"policy": Fixed(4)}, "Fixed(workers=4)"),
    ],
)
def test_a_policy_is_told_as_it_is_written(options, words):
    assert policy_in_words(pool_settings("images", options)) == words
