"""Context variables that travel with a task, for those who ask.

A thread gets a copy of the submitter's whole context. A process gets the values of the variables that
were named: a ContextVar is found on the other side as the attribute of its module.
"""

from __future__ import annotations

import contextvars
import importlib
import sys
from collections.abc import Iterable
from typing import Any

from millpond.errors import OptionError


def check(option: Any, kind: str) -> None:
    """Refuse a `context` option that the kind of worker cannot honour."""
    if option is False or option is None:
        return
    if kind == "thread":
        if option is not True:
            raise OptionError("context must be True or False with kind='thread': the whole context is copied")
        return
    if option is True or not isinstance(option, (list, tuple, set, frozenset)):
        raise OptionError(
            "context must list the ContextVars to carry, such as context=[request_id]: "
            "a whole context cannot leave its process"
        )
    for variable in option:
        _place(variable)


def carry(option: Any, call: Any) -> Any:
    """The callable to run instead, so that `call` sees the submitter's context as it is now."""
    if option is True:
        return InContext(call, contextvars.copy_context())
    return WithValues(call, [(*_place(variable), variable.get()) for variable in _set_ones(option)])


class InContext:
    """A call in a copy of a whole context; for threads."""

    def __init__(self, call: Any, context: contextvars.Context) -> None:
        self.func = call
        self.context = context
        self.__module__, self.__qualname__ = getattr(call, "__module__", ""), _name(call)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.context.copy().run(self.func, *args, **kwargs)


class WithValues:
    """A call with some context variables set; travels to a worker process."""

    def __init__(self, call: Any, values: list[tuple[str, str, Any]]) -> None:
        self.func = call
        self.values = values
        self.__module__, self.__qualname__ = getattr(call, "__module__", ""), _name(call)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        import inspect  # a megabyte that pools without context need not hold

        if inspect.iscoroutinefunction(self.func):
            return self._later(args, kwargs)  # set inside, where the coroutine runs in its own context
        return contextvars.copy_context().run(self._now, args, kwargs)

    def _now(self, args: Any, kwargs: Any) -> Any:
        self._set()
        return self.func(*args, **kwargs)

    async def _later(self, args: Any, kwargs: Any) -> Any:
        self._set()
        return await self.func(*args, **kwargs)

    def _set(self) -> None:
        for module, name, value in self.values:
            getattr(importlib.import_module(module), name).set(value)


def _name(call: Any) -> str:
    return getattr(call, "__qualname__", None) or type(call).__qualname__


def _set_ones(variables: Iterable[contextvars.ContextVar[Any]]) -> list[contextvars.ContextVar[Any]]:
    present = contextvars.copy_context()
    return [variable for variable in variables if variable in present]


def _place(variable: Any) -> tuple[str, str]:
    """(module, attribute) under which a ContextVar can be found."""
    if not isinstance(variable, contextvars.ContextVar):
        raise OptionError(f"context lists {variable!r}, which is not a ContextVar")
    for module_name, module in list(sys.modules.items()):
        if module_name in ("__main__", "__mp_main__"):
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is variable:
                return module_name, name
    raise OptionError(
        f"{variable!r} is not a global of an importable module, so a worker process could not find it"
    )
