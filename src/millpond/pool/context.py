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


def carry(option: Any, call: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """The call to make instead, so that `call` sees the submitter's context."""
    if option is True:
        return contextvars.copy_context().run, (call, *args), kwargs
    values = [(*_place(variable), variable.get()) for variable in _set_ones(option)]
    return run_with, (values, call, args, kwargs), {}


def run_with(values: list[tuple[str, str, Any]], call: Any, args: Any, kwargs: Any) -> Any:
    """In the worker: set the variables for this call only."""

    def inside() -> Any:
        for module, name, value in values:
            getattr(importlib.import_module(module), name).set(value)
        return call(*args, **kwargs)

    return contextvars.copy_context().run(inside)


def _set_ones(variables: Iterable[contextvars.ContextVar[Any]]) -> list[contextvars.ContextVar[Any]]:
    present = contextvars.copy_context()
    return [variable for variable in variables if variable in present]


def _place(variable: Any) -> tuple[str, str]:
    """(module, attribute) under which a ContextVar can be found."""
    if not isinstance(variable, contextvars.ContextVar):
        raise OptionError(f"context lists {variable!r}, which is not a ContextVar")
    for module_name, module in list(sys.modules.items()):
        if module_name == "__main__":
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is variable:
                return module_name, name
    raise OptionError(
        f"{variable!r} is not a global of an importable module, so a worker process could not find it"
    )
