"""Objects to bytes and back: equal, of one type, as writable as before, with large buffers kept aside."""

import enum
import pickle
import sys
import threading
from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.pool.channel.pickling import ASIDE, Aside, Names, Packed, pack, unpack

calm = settings(deadline=None)
BIG = ASIDE + 1000


def deliver(packed: Packed):
    """Unpack as a receiver does: every buffer is memory of its own, a transient one is read-only."""
    buffers = []
    for part in packed.buffers:
        own = memoryview(bytearray(part.raw))
        buffers.append(own.toreadonly() if part.transient else own)
    return unpack(packed.data, buffers)


def there(value, *, by_value=False):
    return deliver(pack(value, by_value=by_value))


# --- arrays -------------------------------------------------------------------------------------------
def arrays():
    grid = np.arange(120_000, dtype=np.float32).reshape(300, 400)
    return {
        "small": np.arange(10),
        "large": grid,
        "F-order": np.asfortranarray(grid),
        "small F-order": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "zero-size": np.zeros((0, 3)),
        "zero-size F-order": np.zeros((3, 0), order="F"),
        "0-d": np.array(2.5),
        "every other row": grid[::2],
        "a column": grid[:, 1],
        "reversed": grid[::-1],
        "transposed": grid.T,
        "big-endian": grid.astype(">f4"),
        "structured": np.zeros(9000, dtype=[("a", "i4"), ("b", "f8")]),
        "bool": grid > 100,
        "complex": grid.astype(np.complex128),
        "dates": np.arange(20_000).astype("datetime64[s]"),
    }


@pytest.mark.parametrize("name", arrays())
def test_an_array_arrives_equal_and_writable(name):
    sent = arrays()[name]
    got = there(sent)
    assert np.array_equal(got, sent)
    assert (got.dtype, got.shape) == (sent.dtype, sent.shape)
    assert got.flags.writeable
    if sent.flags.contiguous or sent.flags.f_contiguous:
        assert got.flags.f_contiguous == sent.flags.f_contiguous
    if got.size:
        got.flat[0] = sent.flat[-1]


def test_a_large_array_is_not_copied_into_the_pickle():
    packed = pack(np.zeros(ASIDE), by_value=False)
    assert len(packed.data) < 1000
    assert [part.raw.nbytes for part in packed.buffers] == [8 * ASIDE]
    assert not packed.buffers[0].transient


def test_arrays_deep_inside_travel_aside_too():
    sent = {"a": [np.zeros(BIG), {"b": (np.ones(BIG), "text")}], "c": np.arange(3)}
    packed = pack(sent, by_value=False)
    assert len(packed.buffers) == 2
    got = deliver(packed)
    assert np.array_equal(got["a"][1]["b"][0], np.ones(BIG))
    assert got["a"][1]["b"][1] == "text"


def test_an_object_array_and_a_masked_array_arrive():
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    assert there(np.array([None, "x", [1]], dtype=object)).tolist() == [None, "x", [1]]
    assert there(masked).mask.tolist() == [False, True, False]


# --- bytes and their kin ------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [0, 1, ASIDE - 1, ASIDE, BIG])
@pytest.mark.parametrize("kind", [bytes, bytearray])
@pytest.mark.parametrize("place", ["top", "tuple", "list", "dict", "dict in a list", "arguments", "deep"])
def test_bytes_arrive_with_their_type_wherever_they_are(kind, size, place):
    value = kind(b"\x07" * size)
    sent = {
        "top": value,
        "tuple": (1, value, "x"),
        "list": [value, None],
        "dict": {"k": value, "n": 1},
        "dict in a list": [1, {"key": value}],
        "arguments": ((1, value), {"key": value}),
        "deep": [[[[{"x": ([value],)}]]]],
    }[place]
    got = there(sent)
    assert got == sent
    assert type(got) is type(sent)
    inner = {
        "top": lambda v: v,
        "tuple": lambda v: v[1],
        "list": lambda v: v[0],
        "dict": lambda v: v["k"],
        "dict in a list": lambda v: v[1]["key"],
        "arguments": lambda v: v[1]["key"],
        "deep": lambda v: v[0][0][0][0]["x"][0][0],
    }[place](got)
    assert type(inner) is kind
    if kind is bytearray:
        inner.append(1)


def test_large_bytes_travel_aside_and_are_marked_as_copied_by_their_constructor():
    value = b"x" * BIG
    packed = pack((value, bytearray(value), {"k": b"y" * BIG}), by_value=False)
    assert [part.transient for part in packed.buffers] == [True] * 3
    assert len(packed.data) < 1000


def test_without_a_look_inside_large_bytes_travel_in_the_pickle():
    value = [b"x" * BIG, 1]
    packed = pack(value, by_value=False, scan=False)
    assert not packed.buffers
    assert unpack(packed.data) == value


def test_packing_changes_nothing_in_the_value_itself():
    value = [b"x" * BIG, {"k": bytearray(BIG)}]
    before = [value[0], value[1], value[1]["k"]]  # type: ignore[index]
    pack(value, by_value=False)
    assert all(now is then for now, then in zip([*value, value[1]["k"]], before, strict=True))  # type: ignore[index]


def test_a_subclass_of_bytes_keeps_its_class():
    got = there(Label(b"x" * BIG))
    assert (type(got), got) == (Label, b"x" * BIG)


class Label(bytes):
    pass


def test_one_bytearray_named_twice_arrives_as_one():
    big = bytearray(BIG)
    first, second = there([big, big])
    assert first is second


def test_one_list_named_twice_arrives_as_one():
    shared = [b"x" * BIG]
    first, second = there((shared, shared))
    assert first is second


@pytest.mark.parametrize("make", [lambda: [b"x" * BIG], lambda: {0: b"x" * BIG}])
def test_a_container_of_large_bytes_may_contain_itself(make):
    value = make()
    if isinstance(value, list):
        value.append(value)
    else:
        value[1] = value
    got = there(value)
    assert got[0] == b"x" * BIG
    assert got[1] is got


def view_of(whole: Any) -> memoryview:
    return memoryview(whole)


VIEWS = {
    "bytes": memoryview(b"hello"),
    "bytearray": memoryview(bytearray(b"hello")),
    "large": memoryview(bytearray(b"x" * BIG)),
    "slice": memoryview(bytearray(b"hello"))[1:3],
    "ints": memoryview(array("i", [1, 2, 3])),
    "two dimensions": view_of(np.arange(6).reshape(2, 3)),
    "large, two dimensions": view_of(np.arange(20_000).reshape(200, 100)),
    "0-d": view_of(np.array(2.5)),
    "empty": memoryview(b""),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_memoryview_arrives_equal_in_shape_format_and_access(name):
    sent = VIEWS[name]
    got = there(sent)
    assert isinstance(got, memoryview)
    assert got.tolist() == sent.tolist()
    assert (got.format, got.shape, got.readonly) == (sent.format, sent.shape, sent.readonly)


@pytest.mark.parametrize("size", [6, 60_000])
def test_a_column_major_memoryview_is_not_scrambled(size):
    sent = view_of(np.asfortranarray(np.arange(size).reshape(2, size // 2)))
    assert there(sent).tolist() == sent.tolist()


def test_a_memoryview_with_gaps_arrives_with_the_same_values():
    assert list(there(memoryview(b"abcdef")[::2])) == list(b"ace")


# --- code ----------------------------------------------------------------------------------------------
def test_lambdas_closures_and_local_classes_arrive():
    base = 40

    class Local:
        def __init__(self, value):
            self.value = value

    def closure(x):
        return Local(base + x).value

    assert there(lambda x: x + 1)(1) == 2
    assert there(closure)(2) == 42
    assert there(Local(5)).value == 5
    assert there((lambda: base, [b"x" * BIG]))[0]() == 40
    assert there((lambda: base, [b"x" * BIG]))[1] == [b"x" * BIG]


def test_a_closure_over_a_large_array_keeps_it_aside():
    weights = np.arange(float(BIG))
    packed = pack(lambda: weights.sum() + 0, by_value=True)
    assert [part.raw.nbytes for part in packed.buffers] == [weights.nbytes]
    assert deliver(packed)() == weights.sum()


class Blob:
    """An object that offers its buffer to pickle."""

    def __init__(self, data):
        self.data = data

    def __reduce_ex__(self, protocol):
        return type(self), (pickle.PickleBuffer(self.data),)


@pytest.mark.parametrize("size", [10, BIG])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_an_object_with_an_out_of_band_buffer_arrives(kind, size):
    packed = pack([Blob(kind(size))], by_value=False)
    assert len(packed.buffers) == (size >= ASIDE)
    (got,) = deliver(packed)
    assert bytes(got.data) == bytes(size)
    assert memoryview(got.data).readonly == (kind is bytes)


def test_a_buffer_with_gaps_is_an_error_and_an_array_with_gaps_is_not():
    gaps = np.arange(BIG * 2, dtype=np.uint8)[::2]
    with pytest.raises((pickle.PicklingError, BufferError)):
        pack(Blob(gaps), by_value=False)
    assert np.array_equal(there(gaps), gaps)


@pytest.mark.parametrize("value", [threading.Lock(), [1, threading.Lock()], (b"x" * BIG, threading.Lock())])
def test_what_cannot_be_pickled_raises_what_pickle_says(value):
    with pytest.raises(TypeError, match="pickle"):
        pack(value, by_value=False)


# --- __main__ -------------------------------------------------------------------------------------------
@pytest.fixture
def main(monkeypatch):
    """A function and a class that live in `__main__`, and one that only says so."""
    module = sys.modules["__main__"]
    space = {"__name__": "__main__"}
    exec("def double(x): return 2 * x\nclass Point: pass\ndef gone(): return 'gone'", space)
    for name in ("double", "Point"):
        monkeypatch.setattr(module, name, space[name], raising=False)
    return space


def test_what_lives_in_main_is_named_for_a_stranger(main):
    packed = pack((main["double"], main["Point"]()), by_value=True)
    assert packed.names == Names(frozenset({"double", "Point"}))
    assert deliver(packed)[0] is main["double"]  # by name: here it is the same


def test_what_lives_in_main_needs_nothing_for_a_relative(main):
    for value in (main["double"], [main["double"], lambda: 0]):
        packed = pack(value, by_value=False)
        assert packed.names is None
        got = unpack(packed.data)
        assert (got[0] if isinstance(got, list) else got) is main["double"]


def test_what_main_no_longer_holds_travels_by_value(main):
    packed = pack(main["gone"], by_value=True)
    assert packed.names is None
    assert unpack(packed.data)() == "gone"


def test_text_that_merely_says_main_does_no_harm():
    assert there({"note": "__main__"}, by_value=True) == {"note": "__main__"}


# --- anything -------------------------------------------------------------------------------------------
class Large(enum.Enum):
    """Stands for a large value until the test makes it: examples must stay readable."""

    BYTES = "bytes"
    BYTEARRAY = "bytearray"
    ARRAY = "array"


def grow(value):
    whole = bytes(range(256)) * (BIG // 256 + 1)
    if value is Large.BYTES:
        return whole
    if value is Large.BYTEARRAY:
        return bytearray(whole)
    if value is Large.ARRAY:
        return array("B", whole)
    if isinstance(value, list | tuple):
        return type(value)(map(grow, value))
    return {key: grow(item) for key, item in value.items()} if isinstance(value, dict) else value


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
values = st.recursive(
    leaves | st.sampled_from(Large),
    lambda inner: (
        st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


def same(one, other):
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other


@settings(calm, max_examples=80)
@given(values, st.booleans())
def test_any_nested_value_arrives_equal_with_every_type_kept(value, by_value):
    whole = grow(value)
    assert same(there(whole, by_value=by_value), whole)


def test_an_aside_says_what_it_is():
    part = Aside(memoryview(b"x"), transient=True)
    assert bytes(part.raw) == b"x"
    assert part.transient
