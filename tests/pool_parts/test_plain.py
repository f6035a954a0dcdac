"""The types that are marshalled instead of pickled: each value comes back exactly, bit for bit."""

import enum
import marshal
import math
import struct
from array import array
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.pool.channel.pickling import PLAIN

calm = settings(deadline=None)


class Colour(enum.IntEnum):
    RED = 1


class Name(str):
    __slots__ = ()


NOT_PLAIN = [
    Colour.RED,
    Name("x"),
    b"x",
    bytearray(b"x"),
    memoryview(b"x"),
    array("i", [1]),
    1j,
    (1,),
    [1],
    {1: 1},
    {1},
    np.int64(1),
    np.float64(1.0),
    np.bool_(True),
    Decimal(1),
    Ellipsis,
    StopIteration,
]


@pytest.mark.parametrize("value", NOT_PLAIN, ids=lambda value: type(value).__name__)
def test_anything_but_the_exact_plain_types_is_left_to_pickle(value):
    assert type(value) not in PLAIN


def exact(one, other):
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return one == other


quiet_nans = st.integers(1, 2**51 - 1).map(
    lambda bits: struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48 | bits))[0]
)
characters = st.characters(codec=None, exclude_categories=())  # surrogates too
plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**5000), 2**5000),
    st.floats(),
    quiet_nans,
    st.text(characters),
)


@calm
@given(st.lists(plain).map(tuple))
def test_a_tuple_of_plain_values_comes_back_bit_for_bit(values):
    assert all(type(value) in PLAIN for value in values)
    got = marshal.loads(marshal.dumps(values))
    assert len(got) == len(values)
    assert all(map(exact, got, values))


EDGES = [
    True,
    False,
    0,
    1,
    -1,
    2**31,
    -(2**31) - 1,
    2**63,
    2**64,
    -(2**100_000),
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    1.7976931348623157e308,
    "",
    "\0",
    "\ud800",
    "\udfff\ud800",
    "\U0010ffff",
    "é" * 300,
    None,
]


@pytest.mark.parametrize("index", range(len(EDGES)))
def test_an_edge_value_comes_back_bit_for_bit(index):
    value = EDGES[index]
    assert exact(marshal.loads(marshal.dumps(value)), value)
    assert exact(marshal.loads(bytearray(marshal.dumps((value,))))[0], value)
