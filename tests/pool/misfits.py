"""Objects that do harm on their way: when they are pickled, rebuilt or destroyed; importable by workers."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


class HarmError(Exception):
    """What a harmful object raises."""


def raise_error() -> None:
    raise HarmError("harm was done")


def raise_exit() -> None:
    sys.exit(3)


def end_process() -> None:
    os._exit(4)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


HARMS = {"error": raise_error, "sys.exit": raise_exit, "os._exit": end_process, "crash": crash}


class WhenPickled:
    """Does its harm when it is pickled outside of the process that made it, or anywhere (`home` is 0)."""

    def __init__(self, harm: str, home: int = 0) -> None:
        self.harm = harm
        self.home = home

    def __reduce__(self) -> Any:
        if os.getpid() != self.home:
            HARMS[self.harm]()
        return WhenPickled, (self.harm, self.home)


class WhenRebuilt:
    """Pickles well, and does its harm where it is rebuilt."""

    def __init__(self, harm: str) -> None:
        self.harm = harm

    def __reduce__(self) -> Any:
        return HARMS[self.harm], ()


class WhenDestroyed:
    """Does its harm when a worker lets go of it; never in the process it was made in."""

    def __init__(self, harm: str) -> None:
        self.harm = harm
        self.home = os.getpid()

    def __del__(self) -> None:
        if os.getpid() != self.home:
            HARMS[self.harm]()


class HarmfulError(Exception):
    """An exception that carries a harmful object."""


def take(value: object) -> str:
    return type(value).__name__


def make(kind: type, harm: str) -> object:
    return kind(harm)


def raise_with(kind: type, harm: str) -> None:
    raise HarmfulError(kind(harm))


def call(function: Any, *args: Any) -> Any:
    return function(*args)


def numbers_then_error(count: int) -> Any:
    yield from range(count)
    raise HarmError("the iterable ended badly")
