"""Columns of values as PostgreSQL array literals, which the server reads by the cast beside the parameter.

The driver can do this too, element by element in Python, and that was half of the cost of a batch. Text is
always quoted, so nothing in it can end its element; nothing but text, numbers, bytes and None can be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def array(values: Sequence[Any]) -> str:
    """These values as one literal."""
    kinds = set(map(type, values))
    write = _writer(kinds.pop()) if len(kinds) == 1 else _mixed
    return "{" + write(values) + "}"


def _numbers(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def _texts(values: Sequence[str]) -> str:
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join([value.replace("\\", "\\\\").replace('"', '\\"') for value in values])
    return f'"{joined}"'


def _bytes(values: Sequence[bytes]) -> str:
    return '"\\\\x' + '","\\\\x'.join([value.hex() for value in values]) + '"'


def _nothings(values: Sequence[None]) -> str:
    return ",".join(["NULL"] * len(values))


def _mixed(values: Sequence[Any]) -> str:
    return ",".join([_writer(type(value))((value,)) for value in values])


def _writer(kind: type) -> Callable[[Any], str]:
    return _WRITERS.get(kind) or next(_WRITERS[parent] for parent in kind.__mro__ if parent in _WRITERS)


_WRITERS: dict[type, Callable[[Any], str]] = {
    int: _numbers,
    float: _numbers,
    str: _texts,
    bytes: _bytes,
    type(None): _nothings,
}
