"""Payloads: what JSON cannot say exactly is refused with path, kind and fix; the rest comes back."""

import dataclasses
import enum
import math
import uuid
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import JobError, PayloadRefused
from millpond.payload.codec import MOST_BYTES, MOST_DEPTH, convert, decode, encode

calm = settings(deadline=None, max_examples=200)


def nested(depth, inner=1):
    value = inner
    for _ in range(depth):
        value = [value]
    return value


def doubling(depth):
    """Few objects that would be 2 ** depth values."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value, value]
    return value


def in_a_circle():
    value: list[Any] = []
    value.append(value)
    return value


class Colour(enum.Enum):
    RED = "red"
    ODD = b"odd"


@dataclasses.dataclass
class Point:
    x: int
    y: object = None


class Model(pydantic.BaseModel):
    n: float = pydantic.Field(alias="N")


class Opaque:
    pass


REFUSED = {
    "one byte too many": ("x" * (MOST_BYTES - 1), "x", ["1,048,576 bytes", "store it elsewhere"]),
    "far too large": (["y" * MOST_BYTES] * 10**6, "x", ["1,048,576 bytes"]),
    "few objects, many values": (doubling(40), "x", ["1,048,576 bytes"]),
    "65 levels": (nested(65), "x" + "[0]" * 64, ["64 levels", "flatten"]),
    "a circle": (in_a_circle(), "x" + "[0]" * 64, ["64 levels"]),
    "NaN": ({"a": [1, math.nan]}, "x.a[1]", ["float nan", "None or text"]),
    "infinity": (math.inf, "x", ["float inf", "None or text"]),
    "minus infinity": ([-math.inf], "x[0]", ["float -inf"]),
    "a lone surrogate": ("a\ud800", "x", ["text", "surrogate", "errors='replace'"]),
    "a NUL": ({"a b": "a\0"}, "x['a b']", ["text", "NUL", "remove"]),
    "a NUL in a key": ({"a\0": 1}, "x", ["key", "NUL", "remove"]),
    "5,000 digits": (10**4999, "x", ["int of about 5,000 digits", "pass it as text"]),
    "minus 5,000 digits": (-(10**4999), "x", ["int of about 5,000 digits"]),
    "2 ** 63": ({"n": 2**63}, "x.n", ["int of about 20 digits", "64 bits", "pass it as text"]),
    "-2 ** 63 - 1": (-(2**63) - 1, "x", ["64 bits"]),
    "bytes": (b"abc", "x", ["of kind bytes", "base64"]),
    "a bytearray": ([bytearray(b"abc")], "x[0]", ["of kind bytearray", "base64"]),
    "a set": ({"a": {1, 2}}, "x.a", ["of kind set", "sorted"]),
    "a frozenset": (frozenset(), "x", ["of kind frozenset", "sorted"]),
    "a datetime without zone": (datetime(2026, 1, 1), "x", ["datetime", "time zone", "datetime.now(UTC)"]),  # noqa: DTZ001
    "a key that is a number": ({"a": {1: 2}}, "x.a", ["key 1", "of kind int", "use str"]),
    "a key that is None": ({None: 2}, "x", ["key None", "of kind NoneType"]),
    "a key that is bytes": ({b"a": 2}, "x", ["key b'a'", "of kind bytes"]),
    "a function": (len, "x", ["builtin_function_or_method"]),
    "a lambda": (lambda: 1, "x", ["of kind function", "pass its name"]),
    "a class": (int, "x", ["of kind type", "pass its name"]),
    "an object": ([Opaque()], "x[0]", ["Opaque", "an id, a path"]),
    "a complex number": (1j, "x", ["of kind complex"]),
    "an exception": (ValueError("a"), "x", ["of kind ValueError"]),
    "a Decimal that is not a number": (Decimal("nan"), "x", ["Decimal NaN", "None or text"]),
    "an Enum of bytes": (Colour.ODD, "x", ["of kind bytes"]),
    "an object in a dataclass": (Point(1, Opaque()), "x", ["Opaque"]),
    "bytes in a dataclass": (Point(1, b"a"), "x.y", ["of kind bytes"]),
    "NaN in a model": ({"m": Model(N=math.nan)}, "x.m.N", ["float nan"]),
    "NaN in a dataclass": ([Point(1, math.nan)], "x[0].y", ["float nan"]),
    "a datetime beyond UTC": (
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1, seconds=1))),
        "x",
        ["datetime", "9999"],
    ),
}


@pytest.mark.parametrize(("value", "path", "said"), REFUSED.values(), ids=REFUSED)
def test_what_json_cannot_say_is_refused_with_path_kind_and_fix(value, path, said):
    with pytest.raises(PayloadRefused) as refusal:
        encode(value, "x")
    assert refusal.value.path == path
    assert isinstance(refusal.value, JobError | ValueError)
    for part in (path, *said):
        assert part in str(refusal.value)
    assert len(str(refusal.value)) < 500


ACCEPTED = {
    "the largest text": "x" * (MOST_BYTES - 2),
    "64 levels": nested(MOST_DEPTH),
    "64 levels of dicts": {"a": {"b": nested(MOST_DEPTH - 2)}},
    "the largest number": 2**63 - 1,
    "the smallest number": -(2**63),
    "a tiny number": 5e-324,
    "the largest float": 1.7976931348623157e308,
    "an emoji": "\U0001f600",
    "an empty key": {"": 1},
    "nothing": None,
}


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_just_within_the_bounds_comes_back(value):
    assert decode(encode(value, "x")) == value


class Size(enum.IntEnum):
    SMALL = 1


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "something else"


class Pair(msgspec.Struct, tag="pair", rename="camel"):
    first_one: int
    when: datetime


EXACT_FORMS = [
    (Colour.RED, "red"),
    (Size.SMALL, 1),
    (Name("ann"), "ann"),
    (date(2026, 1, 2), "2026-01-02"),
    (time(1, 2, 3), "01:02:03"),
    (timedelta(seconds=90), "PT90S"),
    (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
    (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (Decimal("1.50"), "1.50"),
    (Path("a/b"), "a/b"),
    (OrderedDict(a=Path("b")), {"a": "b"}),
    (Point(1, Path("a")), {"x": 1, "y": "a"}),
    (Point(1, Model(N=2)), {"x": 1, "y": {"N": 2}}),
    (Model(N=2), {"N": 2}),
    (Point(1, [Point(2)]), {"x": 1, "y": [{"x": 2, "y": None}]}),
    (
        Pair(1, datetime(2026, 1, 2, tzinfo=UTC)),
        {"type": "pair", "firstOne": 1, "when": "2026-01-02T00:00:00+00:00"},
    ),
    ((1, (2,)), [1, [2]]),
    (True, True),
]


@pytest.mark.parametrize(("value", "plain"), EXACT_FORMS)
def test_what_has_one_exact_form_in_json_is_stored_in_it(value, plain):
    assert decode(encode(value, "x")) == plain


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@calm
@given(json_values)
def test_plain_values_come_back_as_they_were(value):
    back = decode(encode(value, "x"))
    assert back == value
    assert repr(back) == repr(value)  # 1 is not 1.0, 0.0 is not -0.0, True is not 1


offsets = st.integers(-23 * 3600, 23 * 3600).map(lambda seconds: timezone(timedelta(seconds=seconds)))
RICH = {
    datetime: st.datetimes(datetime(1900, 1, 1), datetime(2500, 1, 1), timezones=offsets),  # noqa: DTZ001
    date: st.dates(),
    time: st.times(),
    timedelta: st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)),
    uuid.UUID: st.uuids(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
}


@pytest.mark.parametrize("kind", RICH)
def test_richer_values_come_back_through_their_annotation(kind):
    @calm
    @given(RICH[kind])
    def check(value):
        back = convert(decode(encode(value, "x")), kind)
        assert back == value
        assert type(back) is kind

    check()


@calm
@given(st.recursive(st.floats() | st.integers() | st.text() | st.binary(max_size=3), st.lists, max_leaves=10))
def test_whatever_is_given_is_stored_or_refused(value):
    try:
        data = encode(value, "x")
    except PayloadRefused:
        return
    assert decode(data) == value


def test_what_is_no_json_is_a_value_error():
    for data in (b"", b"{", b"\xff", b"nul"):
        with pytest.raises(ValueError):
            decode(data)
