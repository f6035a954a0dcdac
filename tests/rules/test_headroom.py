"""When a store's memory is enough, half used, and short."""

from __future__ import annotations

import pytest

from millpond.rules.store.headroom import Memory, level


@pytest.mark.parametrize(
    ("used", "limit", "expected"),
    [(0, 100, 0), (49, 100, 0), (50, 100, 1), (84, 100, 1), (85, 100, 2), (130, 100, 2), (10**12, 0, 0)],
)
def test_a_level_by_what_is_used(used, limit, expected):
    assert level(Memory(used, limit)) == expected
