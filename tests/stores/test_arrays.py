"""Array literals: whatever is sent to PostgreSQL as a column of values arrives as it was."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.store.postgres.arrays import array
from tests.servers import postgres

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.one_of(
    st.tuples(st.just("text"), st.lists(st.none() | TEXT)),
    st.tuples(st.just("bytea"), st.lists(st.none() | st.binary())),
    st.tuples(st.just("bigint"), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just("boolean"), st.lists(st.none() | st.booleans())),
    st.tuples(st.just("double precision"), st.lists(st.none() | st.floats(allow_nan=False))),
)
calm = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def connection() -> Any:
    with psycopg.connect(postgres.shared(), autocommit=True) as found:
        yield found


def _back(connection: Any, kind: str, values: list[Any]) -> Any:
    cursor = psycopg.RawCursor(connection)
    return cursor.execute(f"SELECT $1::{kind}[]".encode(), (array(values),)).fetchall()[0][0]


@calm
@given(VALUES)
def test_every_value_comes_back_as_it_was_sent(connection: Any, column: tuple[str, list[Any]]) -> None:
    kind, values = column
    assert _back(connection, kind, values) == values


def test_text_that_looks_like_a_literal_is_text(connection: Any) -> None:
    values = ["NULL", "", "{}", '","', "\\", '\\"', "a,b", "{a,b}", " ", '"', "\n"]
    assert _back(connection, "text", values) == values


def test_an_enumeration_is_sent_as_its_number(connection: Any) -> None:
    class Level(IntEnum):
        HIGH = 2

    assert _back(connection, "integer", [Level.HIGH, 1]) == [2, 1]
