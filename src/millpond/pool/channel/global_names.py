"""Which globals a function may use, read from its code.

Only reads code objects. A name that is found may not exist, and code that puts a name together at run time
uses globals that nothing here can find: such code is marked as dynamic.
"""

from __future__ import annotations

import dis
import re
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
# What looks globals up by text. `sys.modules["__main__"]` is found by its text, `__main__`.
LOOKUPS = frozenset({"globals", "eval", "exec", "vars", "__import__"})
MAIN = "__main__"
IDENTIFIER = re.compile(r"[^\W\d]\w*")
LONGEST_TEXT = 10_000  # characters of a constant that are searched for names


class GlobalNames(NamedTuple):
    """What one function and the functions inside it may look up in their module."""

    names: frozenset[str]
    hints: frozenset[str] = frozenset()  # names in attributes and texts, if the code is dynamic
    dynamic: bool = False  # it may use any global


@lru_cache(maxsize=4096)
def global_names(code: CodeType) -> GlobalNames:
    """The globals that this code names, and those that it may find by text."""
    names: set[str] = set()
    hints: set[str] = set()
    dynamic = False
    todo = [code]
    while todo:
        part = todo.pop()
        for instruction in dis.get_instructions(part):
            if instruction.opname in READS:
                names.add(instruction.argval)
            elif instruction.opname == "IMPORT_NAME" and instruction.argval == MAIN:
                dynamic = True
        hints.update(part.co_names)
        for constant in part.co_consts:
            if isinstance(constant, CodeType):
                todo.append(constant)
            else:
                hints.update(_words(constant))
    dynamic = dynamic or MAIN in hints or not LOOKUPS.isdisjoint(names)
    return GlobalNames(frozenset(names), frozenset(hints - names) if dynamic else frozenset(), dynamic)


def _words(constant: object) -> list[str]:
    if isinstance(constant, str):
        return IDENTIFIER.findall(constant[:LONGEST_TEXT])
    if isinstance(constant, (tuple, frozenset)):
        return [word for part in constant for word in _words(part)]
    return []
