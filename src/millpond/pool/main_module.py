"""The worker's `__main__`: empty at first, filled with what the parent sends of its own.

Functions that arrive by value share this one namespace, as they did at home: what an initializer sets
with `global` is there for the tasks. A name that is set here already is never overwritten by a copy.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

BY_VALUE = b"cloudpickle"  # in every pickle that carries a function by value


def fresh_main() -> None:
    """Give this process an empty `__main__`."""
    main_module = ModuleType("__main__")
    main_module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main_module


def load(data: Any, buffers: Sequence[Any] = ()) -> Any:
    """Unpickle; functions of the parent's `__main__` come to live in ours."""
    if BY_VALUE not in bytes(data[:100_000]):
        return pickle.loads(data, buffers=buffers)
    return _AtHome(io.BytesIO(data), buffers=buffers).load()


class _AtHome(pickle.Unpickler):
    """Builds functions on the namespace of `__main__` instead of one of their own each."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if module.startswith("cloudpickle"):
            if name == "_make_function":
                return make_function
            if name == "_function_setstate":
                return _Restore(found)
        return found


def make_function(
    code: Any, namespace: dict[str, Any], name: str, defaults: Any, closure: Any
) -> FunctionType:
    """What cloudpickle does, but with our `__main__` for functions that come from theirs."""
    if namespace.get("__name__") == "__main__":
        namespace = sys.modules["__main__"].__dict__
    namespace.setdefault("__builtins__", __builtins__)
    return FunctionType(code, namespace, name, defaults, closure)


class _Restore:
    """Fills in a function's state; the globals it brings along are only defaults here."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __call__(self, function: FunctionType, state: Any) -> None:
        slots = state[1]
        namespace = function.__globals__
        if namespace is sys.modules["__main__"].__dict__:
            for name, value in slots["__globals__"].items():
                namespace.setdefault(name, value)
            slots = {**slots, "__globals__": {}}
        self._original(function, (state[0], slots))
