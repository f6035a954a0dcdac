"""Calls: bound as Python binds them, checked against the annotations, the same when read back."""

import dataclasses
import enum
import inspect
import math
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import ArgumentsRefused, PayloadRefused
from millpond.payload.signature import Signature

calm = settings(deadline=None, max_examples=150)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.StrEnum):
    HIGH = "high"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Box(msgspec.Struct):
    name: str
    when: datetime | None = None


class Line(msgspec.Struct, tag="line", rename="lower"):
    Ends: list[Point]


class User(TypedDict):
    id: int
    name: str


class Pair(NamedTuple):
    left: int
    right: str


class Model(pydantic.BaseModel):
    number: int = pydantic.Field(gt=0, alias="Number")
    at: datetime | None = None


class Opaque:
    pass


NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def taking(kind):
    def task(x): ...

    task.__annotations__["x"] = kind
    return Signature(task, "task")


def travelled(signature, *args, **kwargs):
    return signature.decode(signature.encode(args, kwargs))


FITS = [
    (int, 5, 5),
    (float, 5, 5.0),
    (str, "a", "a"),
    (bool, True, True),
    (None, None, None),
    (int | None, None, None),
    (int | str, "a", "a"),
    (list[int], [1, 2], [1, 2]),
    (list[int], (1, 2), [1, 2]),
    (tuple[int, str], (1, "a"), (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (dict[str, list[int]], {"a": [1]}, {"a": [1]}),
    (Sequence[int], [1], [1]),
    (set[int], [1, 2], {1, 2}),
    (list, [1, "a"], [1, "a"]),
    (Literal["a", "b"], "a", "a"),
    (User, {"id": 1, "name": "a"}, {"id": 1, "name": "a"}),
    (Point, Point(1, 2), Point(1, 2)),
    (Point, {"x": 1}, Point(1, 0)),
    (list[Point], [Point(1)], [Point(1)]),
    (Box, Box("a", NOW), Box("a", NOW)),
    (Line, {"type": "line", "ends": [{"x": 1}]}, Line([Point(1)])),
    (dict[int, int], {"1": 2}, {1: 2}),
    (Pair, Pair(1, "a"), Pair(1, "a")),
    (Colour, Colour.RED, Colour.RED),
    (Colour, "red", Colour.RED),
    (str, Level.HIGH, "high"),
    (Any, Level.HIGH, "high"),
    (dict[str, Colour], {"a": Colour.BLUE}, {"a": Colour.BLUE}),
    (datetime, NOW, NOW),
    (date, NOW.date(), NOW.date()),
    (timedelta, timedelta(1.5), timedelta(1.5)),
    (uuid.UUID, uuid.UUID(int=1), uuid.UUID(int=1)),
    (Decimal, Decimal("1.10"), Decimal("1.10")),
    (Path, Path("a"), Path("a")),
    (Path | None, "a", Path("a")),
    (Model, Model(Number=1, at=NOW), Model(Number=1, at=NOW)),
    (list[Model], [Model(Number=1)], [Model(Number=1)]),
    (Model | None, {"Number": 2}, Model(Number=2)),
    (Annotated[int, msgspec.Meta(ge=1)], 1, 1),
    (Any, {"a": [1, None, 2.5]}, {"a": [1, None, 2.5]}),
    (Any, (1, 2), [1, 2]),
    (object, "a", "a"),
    (Path | str, "a", "a"),  # beyond checking: taken as it is
]


@pytest.mark.parametrize(("kind", "value", "back"), FITS)
def test_a_value_that_fits_its_annotation_comes_back_as_it(kind, value, back):
    args, kwargs = travelled(taking(kind), value)
    assert (args, kwargs) == ([], {"x": back})
    assert type(kwargs["x"]) is type(back)


REFUSED = [
    (int, "5", ["task: x:", "expected `int`, got `str`", "x takes int"]),
    (int, 5.0, ["got `float`"]),
    (int, True, ["got `bool`"]),
    (int, None, ["got `null`"]),
    (str, 5, ["expected `str`, got `int`"]),
    (int | None, "a", ["expected `int | null`, got `str`"]),
    (list[int], [1, "a"], ["x[1]", "expected `int`, got `str`", "list[int]"]),
    (list[int], 5, ["expected `array`, got `int`"]),
    (dict[str, int], {"a": "b"}, ["x.a: expected", "got `str`"]),
    (tuple[int, str], (1,), ["length 2"]),
    (User, {"id": 1}, ["missing required field `name`", "User"]),
    (User, {"id": "1", "name": "a"}, ["x.id", "got `str`"]),
    (Point, {"x": "a"}, ["x.x", "got `str`", "Point"]),
    (Box, {}, ["missing required field `name`"]),
    (Colour, "green", ["green", "Colour"]),
    (Literal["a", "b"], "c", ["'c'"]),
    (datetime, "yesterday", ["datetime"]),
    (uuid.UUID, "1", ["UUID"]),
    (Decimal, "one", ["decimal"]),
    (Model, {"Number": 0}, ["x.Number", "greater than 0", "Model"]),
    (list[Model], [{"Number": "a"}], ["x[0].Number", "integer"]),
    (Model, 5, ["Model"]),
    (Opaque, "a", ["expected `Opaque`, got `str`"]),
    (Annotated[int, msgspec.Meta(ge=1)], 0, [">= 1"]),
    (User, {"id": 1, "name": "a", "nmae": "b"}, ["x.nmae is no field", "would be lost"]),
    (list[Point], [{"x": 1, "z": 2}], ["x[0].z is no field", "leave it out"]),
    (Box, {"name": "a", "When": None}, ["x.When is no field"]),
    (Line, {"ends": [{"x": 1}, {"x": 1, "w": 1}]}, ["x.ends[1].w is no field"]),
    (Literal["a"], "b" * 10**6, ["invalid"]),
    # Fits JSON, but would come back as something else.
    (Any, NOW, ["x is of kind datetime and would come back as str", "annotate it as datetime"]),
    (dict, {"a": [NOW]}, ["x.a[0]", "datetime"]),
    (Any, Decimal(1), ["Decimal", "come back as str"]),
    (str, uuid.UUID(int=1), ["UUID", "come back as str"]),
    (Any, Point(1), ["Point", "come back as dict"]),
    (list, [Pair(1, "a")], ["x[0]", "Pair", "come back as list"]),
    (Any, Colour.RED, ["Colour", "come back as str"]),
    (Path | str, Path("a"), ["come back as str"]),
]


@pytest.mark.parametrize(("kind", "value", "said"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_with_path_kind_and_fix(kind, value, said):
    with pytest.raises(ArgumentsRefused) as refusal:
        taking(kind).encode((value,), {})
    for part in said:
        assert part in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_a_payload_refusal_names_the_task_and_the_argument():
    with pytest.raises(PayloadRefused, match=r"^task: x\.a\[1\] is the float nan") as refusal:
        taking(Any).encode(({"a": [0, math.nan]},), {})
    assert refusal.value.path == "x.a[1]"
    with pytest.raises(PayloadRefused, match=r"^task: the arguments would be more than 1,048,576 bytes"):
        Signature(lambda a, b: None, "task").encode(("x" * 600_000,), {"b": "é" * 300_000})


# --- binding -------------------------------------------------------------------------------------------
def plain(path: str, width: int, height: int = 7): ...
def only_positional(a: int, b: int = 2, /, c: int = 3): ...
def only_keywords(*, a: int, b: int = 2): ...
def many(a: int, *rest: int, b: int = 0, **more: str): ...
def shadowed(a, /, **more): ...
def nothing(): ...


CALLS = [
    (plain, ("a", 1), {}),
    (plain, ("a",), {"width": 1}),
    (plain, (), {"width": 1, "path": "a", "height": 3}),
    (only_positional, (1,), {}),
    (only_positional, (1, 5), {"c": 6}),
    (only_positional, (1,), {"c": 6}),
    (only_keywords, (), {"a": 1}),
    (only_keywords, (), {"b": 1, "a": 3}),
    (many, (1,), {}),
    (many, (1, 2, 3), {"b": 4, "x": "y", "rest": "z"}),
    (many, (), {"a": 1, "x": "y"}),
    (shadowed, (1,), {"a": 2, "more": 3}),
    (nothing, (), {}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_a_call_comes_back_as_a_call_that_binds_the_same(function, args, kwargs):
    signature = Signature(function, "task")
    back, named = travelled(signature, *args, **kwargs)
    bind = inspect.signature(function).bind
    assert bind(*back, **named).arguments == bind(*args, **kwargs).arguments


MISCALLED = [
    (plain, ("a",), {}, "missing a required argument: 'width'"),
    (plain, ("a", 1, 2, 3), {}, "too many positional arguments"),
    (plain, ("a",), {"widht": 1}, "missing a required argument: 'width'"),
    (plain, ("a", 1), {"hight": 1}, "unexpected keyword argument 'hight', did you mean 'height'?"),
    (plain, ("a", 1), {"path": "b"}, "multiple values for argument 'path'"),
    (only_positional, (), {"a": 1}, "'a'"),
    (only_keywords, (1,), {}, "too many positional arguments"),
    (nothing, (1,), {}, "too many positional arguments"),
    (many, (1, "a"), {}, "rest[0]: expected `int`, got `str`"),
    (many, (1,), {"x": 5}, "more.x: expected `str`, got `int`"),
]


@pytest.mark.parametrize(("function", "args", "kwargs", "said"), MISCALLED)
def test_a_call_that_python_would_refuse_is_refused(function, args, kwargs, said):
    with pytest.raises(ArgumentsRefused) as refusal:
        Signature(function, "images.resize").encode(args, kwargs)
    assert str(refusal.value).startswith("images.resize")
    assert said in str(refusal.value)


def test_the_defaults_are_those_of_the_code_that_runs():
    data = Signature(plain, "task").encode(("a", 1), {})
    assert Signature(plain, "task").decode(data) == ([], {"path": "a", "width": 1})
    assert Signature(plain, "task").bind(("a", 1), {}) == {"path": "a", "width": 1, "height": 7}


def test_an_annotation_that_cannot_be_resolved_hides_no_other():
    def task(a: "Nowhere", b: "int"): ...  # type: ignore[name-defined]  # noqa: F821

    signature = Signature(task, "task")
    assert travelled(signature, "x", 1) == ([], {"a": "x", "b": 1})
    with pytest.raises(ArgumentsRefused, match="b: expected `int`"):
        signature.encode(("x", "y"), {})


# --- reading back --------------------------------------------------------------------------------------
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"5", b"\xff\xfe", b"null"])
def test_what_is_no_call_is_refused_for_good(data):
    with pytest.raises(PayloadRefused, match="task"):
        Signature(plain, "task").decode(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"path": "a"}', "lack ['width']"),
        (b'{"path": "a", "width": 1, "depth": 2}', "have ['depth']"),
        (b'{"path": "a", "width": "wide"}', "width: expected `int`, got `str`"),
    ],
)
def test_a_call_that_fits_another_version_of_the_task_is_refused(data, said):
    with pytest.raises(ArgumentsRefused) as refusal:
        Signature(plain, "task").decode(data)
    assert said in str(refusal.value)


def rich(
    a: int,
    b: str | None,
    /,
    c: list[datetime],
    *rest: Decimal,
    d: dict[str, uuid.UUID],
    e: Point | None = None,
    **more: Any,
): ...


json_leaf = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("ab\u20ac\n")
moments = st.datetimes(timezones=st.just(UTC))
points = st.builds(Point, st.integers(-9, 9), st.integers(-9, 9))


@calm
@given(
    args=st.tuples(
        st.integers(-(2**63), 2**63 - 1), st.none() | st.text("ab"), st.lists(moments, max_size=3)
    ),
    rest=st.lists(st.decimals(allow_nan=False, allow_infinity=False), max_size=3),
    named=st.fixed_dictionaries(
        {"d": st.dictionaries(st.text("xy"), st.uuids(), max_size=3)}, optional={"e": st.none() | points}
    ),
    more=st.dictionaries(st.sampled_from(["a", "b", "z"]), st.lists(json_leaf, max_size=3), max_size=3),
)
def test_any_accepted_call_is_read_back_as_an_equal_call(args, rest, named, more):
    signature = Signature(rich, "task")
    back, kwargs = travelled(signature, *args, *rest, **named, **more)
    bind = inspect.signature(rich).bind
    assert bind(*back, **kwargs).arguments == bind(*args, *rest, **named, **more).arguments


anything = st.recursive(
    json_leaf | st.floats() | st.binary(max_size=2) | moments | st.uuids() | st.decimals() | points,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab") | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@calm
@given(anything)
def test_whatever_is_passed_to_a_bare_parameter_comes_back_equal_or_is_refused(value):
    signature = taking(Any)
    try:
        data = signature.encode((value,), {})
    except (ArgumentsRefused, PayloadRefused):
        return
    assert signature.decode(data) == ([], {"x": value})


def test_the_arguments_can_be_read_by_name():
    signature = Signature(many, "task")
    data = signature.encode((1, 2), {"x": "y"})
    assert signature.arguments(data) == {"a": 1, "rest": [2], "more": {"x": "y"}}
    assert signature.names == {"a", "rest", "b", "more"}
