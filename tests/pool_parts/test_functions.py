"""The table of functions: each is pickled once, the table stays small, and what has state travels fresh."""

import functools
import operator
import pickle
import sys
import threading

import numpy as np
import pytest

from millpond.pool.channel.functions import REMEMBERED, Functions, name_of
from millpond.pool.channel.pickling import Names


@pytest.fixture
def functions():
    return Functions(by_value=True)


class Greeter:
    def greet(self):
        return "hello"

    def __call__(self):
        return "called"


def new_function():
    return eval("lambda: 0")


def test_a_function_is_pickled_once_and_known_by_its_number(functions):
    first = functions.find(name_of)
    assert functions.find(name_of) is first
    assert first.number > 0
    assert pickle.loads(first.data) is name_of
    assert functions.find(len).number not in (0, first.number)
    assert functions.find(Greeter).number > 0


@pytest.mark.parametrize(
    "call",
    [Greeter().greet, Greeter(), functools.partial(len, []), operator.itemgetter(1)],
    ids=["bound method", "instance", "partial", "itemgetter"],
)
def test_a_callable_with_state_travels_with_each_call(functions, call):
    function = functions.find(call)
    assert function.number == 0
    assert function.data is None


def test_a_bound_builtin_is_seen_as_it_is_at_each_submit(functions):
    box = [1]
    first = functions.find(box.count)
    box.append(1)
    second = functions.find(box.count)
    assert first.data is None or pickle.loads(first.data)(1) == 1
    assert second.data is None or pickle.loads(second.data)(1) == 2


def test_a_closure_is_seen_as_it_is_at_each_submit(functions):
    number = 1

    def read():
        return number

    first = functions.find(read)
    number = 2
    second = functions.find(read)
    assert first.data is None or pickle.loads(first.data)() == 1
    assert second.data is None or pickle.loads(second.data)() == 2


def test_callables_of_one_kind_share_what_is_learnt(functions):
    first = functions.find(functools.partial(len, [1]))
    first.estimate = 0.5
    assert functions.find(functools.partial(len, [2])).estimate == 0.5
    assert functions.find(functools.partial(sum, [2])).estimate is None
    assert functions.find(Greeter().greet) is functions.find(Greeter().greet)


def test_a_closure_over_large_arrays_travels_with_its_buffers(functions):
    weights = np.zeros(100_000)
    assert functions.find(lambda: weights.sum() + 0).data is None


def test_functions_that_travel_with_their_buffers_keep_their_own_names(functions):
    weights = np.zeros(100_000)

    def first():
        return weights

    def second():
        return weights

    functions.find(first)
    assert functions.find(second).name.endswith("second")


def test_the_table_never_grows_beyond_its_bound(functions):
    for _ in range(3 * REMEMBERED):
        functions.find(new_function())
        functions.find(functools.partial(new_function()))
    assert len(functions._known) <= REMEMBERED
    assert len(functions._kinds) <= REMEMBERED


def test_numbers_are_never_used_twice(functions):
    numbers = [functions.find(new_function()).number for _ in range(2 * REMEMBERED)]
    assert len(set(numbers)) == len(numbers)


def test_several_threads_may_learn_at_once(functions):
    troubles = []

    def learn():
        try:
            for _ in range(600):
                functions.find(new_function())
        except Exception as trouble:
            troubles.append(trouble)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=learn) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    finally:
        sys.setswitchinterval(interval)
    assert troubles == []
    assert len(functions._known) <= REMEMBERED


@pytest.fixture
def main(monkeypatch):
    """The namespace of `__main__`, put back afterwards."""
    space = sys.modules["__main__"].__dict__
    before = dict(space)
    yield space
    space.clear()
    space.update(before)


def test_what_main_must_hold_is_pickled_once_and_anew_when_it_has_changed(functions, main):
    exec("def helper(): return 1\ndef task(): return helper()", main)
    names = Names(frozenset({"task"}))
    (first,) = functions.prepare(names)
    assert functions.prepare(names) == (first,)
    exec("def helper(): return 2", main)
    assert functions.prepare(names)[0] is first
    assert len(functions.prepare(names)) == 2


def test_a_function_gets_a_new_number_when_a_global_that_it_uses_has_changed(functions, main):
    exec("def helper(): return 1\ndef task(): return helper()", main)
    first = functions.find(main["task"])
    first.estimate = 0.25
    assert functions.find(main["task"]) is first
    exec("def helper(): return 2", main)
    second = functions.find(main["task"])
    assert second.number > first.number
    assert second.estimate == 0.25


def test_what_cannot_be_pickled_raises_and_is_not_remembered(functions):
    def broken(lock=threading.Lock()):  # noqa: B008
        return lock

    with pytest.raises(TypeError, match="pickle"):
        functions.find(broken)
    assert not functions._known


def test_a_callable_whose_kind_cannot_be_a_key_is_taken_anyway(functions):
    class Odd:
        def __init__(self):
            self.func = ["not hashable"]

        def __call__(self):
            return None

    assert functions.find(Odd()).data is None


def test_forgetting_drops_every_reference(functions):
    functions.find(name_of)
    functions.find(Greeter())
    functions.forget_all()
    assert not functions._known
    assert not functions._kinds


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (name_of, "millpond.pool.channel.functions.name_of"),
        (len, "builtins.len"),
        (Greeter().greet, f"{__name__}.Greeter.greet"),
        (Greeter(), f"{__name__}.Greeter"),
        (functools.partial(len), "functools.partial"),
        ([].append, "list.append"),
    ],
)
def test_the_name_of_a_callable_in_messages(call, name):
    assert name_of(call) == name
