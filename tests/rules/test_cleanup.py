"""Since when something holds back a server's clean-up, and when that is worth an alert."""

from __future__ import annotations

import pytest

from millpond.rules.store.dead_rows import CURES, OLD, VERY_OLD, Holdback, level, look

TOLD = Holdback("transaction", "of process 1", "700", 20.0)
HIDDEN = Holdback("transaction", "of process 2", "701", None)


def test_the_oldest_is_found():
    seen, oldest = look({}, [TOLD._replace(age=5.0, name="of process 3"), TOLD], 100.0)
    assert oldest == TOLD
    assert len(seen) == 2


def test_what_the_server_does_not_tell_is_as_old_as_it_was_seen():
    seen, oldest = look({}, [HIDDEN], 100.0)
    assert oldest is not None
    assert oldest.age == 0.0
    seen, oldest = look(seen, [HIDDEN, TOLD], 160.0)
    assert oldest == HIDDEN._replace(age=60.0)


def test_another_transaction_of_the_same_session_is_seen_from_its_own_beginning():
    seen, _ = look({}, [HIDDEN], 100.0)
    _, oldest = look(seen, [HIDDEN._replace(mark="900")], 160.0)
    assert oldest is not None
    assert oldest.age == 0.0


def test_where_there_is_none_nothing_is_remembered():
    seen, _ = look({}, [HIDDEN], 100.0)
    assert look(seen, [], 160.0) == ({}, None)


@pytest.mark.parametrize(
    ("age", "expected"), [(None, 0), (OLD - 1, 0), (OLD, 1), (VERY_OLD - 1, 1), (VERY_OLD, 2)]
)
def test_a_level_by_its_age(age, expected):
    assert level(age) == expected


def test_each_kind_has_a_cure():
    assert set(CURES) == {"transaction", "prepared transaction", "replication slot"}
