# mypy: ignore-errors
"""A script that uses its globals in every way, with both pools, and prints what its tasks returned.

Each function whose name begins with `use_` is one way; it is called in a worker.
"""

from __future__ import annotations

import abc
import asyncio
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import io
import itertools
import json
import logging
import math as mathematics
import os.path
import queue
import random
import re
import socket
import sqlite3
import sys
import tempfile
import threading
import types
import typing
import weakref
import xml.etree
import xml.etree.ElementTree  # noqa: ICN001  how a script may write it
from collections import OrderedDict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

from millpond import Pool

# --- plain values and containers ------------------------------------------------------------------------
NUMBER = 7
TEXT = "text"
NOTHING = None
LISTED = [1, 2]
SHARED = {"list": LISTED}
NESTED = {"a": [1, {"b": (2, 3)}]}
DEFAULTS = collections.defaultdict(list)
ORDERED = OrderedDict(a=1)
FROZEN = frozenset({1, 2})
PATTERN = re.compile(r"\d+")
HERE = Path(__file__)
MISSING = object()
COUNTER = collections.Counter("aab")


def use_number():
    return NUMBER


def use_text():
    return TEXT.upper()


def use_none():
    return NOTHING is None


def use_alias_of_a_list():
    LISTED.append(3)
    return SHARED["list"] is LISTED


def use_nested():
    return NESTED["a"][1]["b"]


def use_defaultdict():
    DEFAULTS["x"].append(1)
    return dict(DEFAULTS)


def use_frozenset():
    return sorted(FROZEN)


def use_pattern():
    return PATTERN.findall("a1b22")


def use_file_name():
    return os.path.basename(__file__), HERE.name


def use_name_of_the_module():
    return __name__


def use_sentinel_as_default(value=MISSING):
    return value is MISSING


def use_counter():
    return COUNTER.most_common(1)


def use_ordered():
    return list(ORDERED.items())


# --- state that tasks change ----------------------------------------------------------------------------
total = 0


def use_global_statement():
    global total
    total += 1
    return total


def use_state_that_stays():
    global total
    total += 1
    return total


# --- functions ------------------------------------------------------------------------------------------
def plain_helper(x):
    return x + NUMBER


def use_helper():
    return plain_helper(1)


def is_even(n):
    return n == 0 or is_odd(n - 1)


def is_odd(n):
    return n != 0 and is_even(n - 1)


def use_mutual_recursion():
    return is_even(10)


double = lambda x: 2 * x


def use_lambda():
    return double(4)


half = functools.partial(pow, 2)


def use_partial():
    return half(3)


def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        return "traced", function(*args)

    return wrapper


@traced
def decorated(x):
    return x


def use_decorated():
    return decorated(1)


@functools.lru_cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def use_lru_cache():
    return fibonacci(30), fibonacci.cache_info().misses


@functools.cache
def cached(x):
    return x * NUMBER


def use_cache():
    return cached(2)


@functools.singledispatch
def shown(value):
    return "anything"


@shown.register
def _(value: int):
    return "a number"


@shown.register(list)
def _(value):
    return "a list"


def use_singledispatch():
    return shown(1), shown([]), shown("")


@contextlib.contextmanager
def opened(name):
    yield name


def use_contextmanager():
    with opened("door") as door:
        return door


def make_adder(n):
    def add(x):
        return x + n

    return add


add_five = make_adder(5)


def use_closure():
    return add_five(1)


def use_keyword_defaults(*, factor=NUMBER, tags=("a",)):
    return factor, tags


def function_with_state():
    function_with_state.calls += 1
    return function_with_state.calls


function_with_state.calls = 0


def use_function_attribute():
    return function_with_state()


def generate(n):
    yield from range(n)


def use_generator_function():
    return list(generate(3))


numbers = generate(4)
squares = (n * n for n in range(4))


def use_generator():
    return next(numbers), next(numbers)


def use_generator_expression():
    return list(squares)


ids = itertools.count(5)


def use_itertools_count():
    return next(ids), next(ids)


async def later(x):
    await asyncio.sleep(0)
    return x


def use_async_helper():
    return asyncio.run(later(3))


# --- classes --------------------------------------------------------------------------------------------
class Thing:
    made = 0
    label: typing.ClassVar[str] = "thing"

    def __init__(self, size=1):
        type(self).made += 1
        self.size = size

    def grown(self):
        return Thing(self.size + NUMBER)

    @property
    def area(self):
        return self.size**2

    @classmethod
    def small(cls):
        return cls(1)

    @staticmethod
    def named():
        return "static"

    @functools.cached_property
    def slow(self):
        return self.size * 10

    class Inner:
        inside = True


class Derived(Thing):
    def __init__(self):
        super().__init__(3)

    @property
    def area(self):
        return super().area + 1


THING = Thing(2)
bound = THING.small


def use_class():
    return Thing(3).grown().size


def use_instance():
    return THING.size, THING.area


def use_isinstance():
    return isinstance(THING, Thing), type(THING) is Thing


def use_derived():
    return Derived().area


def use_super():
    return isinstance(Derived(), Thing)


def use_cached_property():
    return Thing(4).slow


def use_methods():
    return Thing.small().size, Thing.named()


def use_inner_class():
    return Thing.Inner().inside


def use_bound_method():
    return bound().size


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    tags: list = dataclasses.field(default_factory=list)


ORIGIN = Point(0)


def use_dataclass():
    return dataclasses.asdict(dataclasses.replace(ORIGIN, x=1)), [f.name for f in dataclasses.fields(Point)]


class Colour(enum.Enum):
    RED = 1
    BLUE = 2

    def shout(self):
        return self.name + "!"


FAVOURITE = Colour.BLUE


def use_enum():
    return FAVOURITE is Colour.BLUE, Colour.RED.shout(), Colour(2).name


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()


def use_flag():
    return (Flags.A | Flags.B).value


Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024


class Typed(typing.NamedTuple):
    left: int
    right: str = "r"


def use_namedtuple():
    return Pair(1, 2).right, Typed(1).right


class Shape(abc.ABC):
    @abc.abstractmethod
    def sides(self): ...


class Square(Shape):
    def sides(self):
        return 4


def use_abc():
    try:
        Shape()
    except TypeError:
        return Square().sides(), isinstance(Square(), Shape)


class Registered:
    registry: typing.ClassVar[dict] = {}

    def __init_subclass__(cls):
        Registered.registry[cls.__name__] = cls


class First(Registered):
    pass


def use_registry():
    return sorted(Registered.registry), Registered.registry["First"] is First


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


SLOTTED = Slotted(5)


def use_slots():
    return SLOTTED.x


class Meta(type):
    def __len__(cls):
        return 3


class WithMeta(metaclass=Meta):
    pass


def use_metaclass():
    return len(WithMeta)


PLUGINS = {}


class Plugin(type):
    def __new__(cls, name, bases, body):
        made = super().__new__(cls, name, bases, body)
        PLUGINS[name] = made
        return made


class Png(metaclass=Plugin):
    suffix = ".png"


def use_metaclass_that_registers():
    return {name: plugin.suffix for name, plugin in PLUGINS.items()}, PLUGINS["Png"] is Png


class Handler:
    def __init_subclass__(cls, key):
        HANDLERS[key] = cls


HANDLERS = {}


class Mail(Handler, key="mail"):
    pass


def use_registry_of_subclasses():
    return sorted(HANDLERS), HANDLERS["mail"] is Mail


class Failure(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code

    def __reduce__(self):
        return Failure, (self.code,)


def use_exception():
    try:
        raise Failure(3)
    except Failure as failure:
        return failure.code


class Token:
    def __reduce__(self):
        return "TOKEN"


TOKEN = Token()


def use_object_that_pickles_by_name():
    return isinstance(TOKEN, Token), type(TOKEN).__name__


class Singleton:
    instance = None

    def __new__(cls):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
        return cls.instance


ONLY = Singleton()


def use_singleton():
    return Singleton() is ONLY


class Memo:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args):
        return "memo", self.function(*args)


@Memo
def remembered(x):
    return x


def use_class_as_decorator():
    return remembered(3)


# --- typing ---------------------------------------------------------------------------------------------
UserId = typing.NewType("UserId", int)
T = typing.TypeVar("T")
P = typing.ParamSpec("P")


class Box(typing.Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item


class Caller(typing.Generic[P]):
    called = True


class Movie(typing.TypedDict):
    title: str


class Closes(typing.Protocol):
    def close(self) -> None: ...


def use_newtype() -> UserId:
    return UserId(5)


def use_generic(box: Box[int] | None = None):
    return Box[int](3).item, Caller.called


def use_typed_dict():
    return Movie(title="x")["title"]


# --- what belongs to a process --------------------------------------------------------------------------
lock = threading.Lock()
reentrant = threading.RLock()
event = threading.Event()
event.set()
line = queue.Queue()
line.put("first")
condition = threading.Condition()
semaphore = threading.Semaphore(2)
private = threading.local()
private.value = "of the main thread"
request = contextvars.ContextVar("request", default="none")
request.set("one")
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE t (x)")
database.execute("INSERT INTO t VALUES (8)")
database.commit()
logger = logging.getLogger("script")
chance = random.Random(3)
watched = weakref.WeakValueDictionary(thing=THING)
pointer = weakref.ref(THING)
stream = io.StringIO("in memory")
scratch = tempfile.NamedTemporaryFile("a", delete=True)  # noqa: SIM115


class Guarded:
    def __init__(self):
        self.lock = threading.Lock()
        self.items = []

    def add(self, item):
        with self.lock:
            self.items.append(item)
            return self.items


GUARDED = Guarded()


def use_lock():
    with lock:
        return True


def use_rlock():
    with reentrant, reentrant:
        return True


def use_event():
    return event.wait(1)


def use_queue():
    return line.get_nowait()


def use_condition():
    with condition:
        condition.notify_all()
    return True


def use_semaphore():
    return (
        semaphore.acquire(blocking=False),
        semaphore.acquire(blocking=False),
        semaphore.acquire(blocking=False),
    )


def use_thread_local():
    return private.value


def use_context_variable():
    return request.get()


def use_sqlite():
    return database.execute("SELECT x FROM t").fetchall()


def use_logger():
    return logger.name


def use_random():
    return chance.random()


def use_weak_dictionary():
    return watched["thing"].size


def use_weak_reference():
    return pointer().size


def use_stringio():
    return stream.getvalue()


def use_file_for_writing():
    scratch.write("line\n")
    scratch.flush()
    return os.path.getsize(scratch.name) > 0


def use_object_with_a_lock():
    return GUARDED.add(1)


class Service:
    def compute(self):
        return NUMBER

    def serve(self):
        return connection.fileno(), executor


connection = socket.socket()
executor = ThreadPoolExecutor(1)


def use_class_that_also_names_a_socket():
    return Service().compute()


# --- by text --------------------------------------------------------------------------------------------
HIDDEN = "found"
_PRIVATE = "private"


def use_globals():
    return globals()["HIDDEN"], globals()["_PRIVATE"]


def use_eval():
    return eval("HIDDEN + TEXT")


def use_exec():
    found = {}
    exec("found['x'] = plain_helper(2)", globals(), {"found": found})
    return found


def use_import_main():
    import __main__

    return __main__.HIDDEN


def use_from_main():
    from __main__ import HIDDEN as hidden

    return hidden


def use_sys_modules():
    return sys.modules["__main__"].HIDDEN


def name_at_run_time():
    return "HID" + TEXT[:0] + "DEN"


def use_getattr_of_main():
    return getattr(sys.modules["__main__"], name_at_run_time())


def use_class_body():
    class Local:
        value = NUMBER

    return Local.value


def use_comprehension():
    return [NUMBER + n for n in LISTED[:1]]


# --- modules --------------------------------------------------------------------------------------------
made_here = types.ModuleType("made_here")
made_here.value = 3


def use_module_alias():
    return mathematics.floor(2.5)


def use_submodule():
    return xml.etree.ElementTree.fromstring("<a/>").tag


def use_imported_name():
    return str(Decimal("1.10"))


def use_module_made_here():
    return made_here.value


def use_import_inside():
    import statistics

    return statistics.mean([1, 3])


def use_relative_import():
    if __package__:
        from . import sibling
        from .sibling import helper

        return sibling.ANSWER, helper()
    import sibling

    return sibling.ANSWER, sibling.helper()


def outcome(future):
    try:
        return repr(future.result(60))
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def main():
    makers = {"Pool": Pool, "ProcessPoolExecutor": ProcessPoolExecutor}
    ways = {name: way for name, way in globals().items() if name.startswith("use_")}
    told = {}
    for name, make in makers.items():
        with make(1) as workers:
            told[name] = {way: outcome(workers.submit(function)) for way, function in ways.items()}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
