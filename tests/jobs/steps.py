"""Counts the steps of a backtracking search: how often a pattern looks at a character or an alternative.

The pattern is parsed by the standard library and matched as its engine does it, one step after the other,
without the engine's short cuts. The count depends on pattern and text alone, and on no clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

SPACE = frozenset(" \t\n\r\f\v")
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
SINGLE = (c.LITERAL, c.NOT_LITERAL, c.IN, c.ANY)


class Counter:
    """One pattern. `steps` is what its searches have taken."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.steps = 0
        self._folded = bool(pattern.flags & re.IGNORECASE)
        self._dot_all = bool(pattern.flags & re.DOTALL)
        self._nodes = list(_parser.parse(pattern.pattern, pattern.flags))
        self._text = ""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Every match, as `finditer` finds them."""
        self._text, at = text, 0
        found: list[tuple[int, int]] = []
        while at <= len(text):
            self.steps += 1
            end = next(self._match(self._nodes, 0, at), None)
            if end is not None and (end > at or not found or found[-1][1] < at):
                found.append((at, end))
            at = end if end is not None and end > at else at + 1
        return found

    def _match(self, nodes: Any, index: int, at: int) -> Iterator[int]:
        if index == len(nodes):
            yield at
            return
        for end in self._one(nodes[index], at):
            yield from self._match(nodes, index + 1, end)

    def _one(self, node: Any, at: int) -> Iterator[int]:  # noqa: C901 - one case for each sort of part
        """Every place where one part of a pattern can end, in the engine's order."""
        kind, said = node
        self.steps += 1
        if kind in SINGLE:
            if at < len(self._text) and self._takes(kind, said, self._text[at]):
                yield at + 1
        elif kind in REPEATS:
            yield from self._repeat(kind, said, at)
        elif kind is c.BRANCH:
            for branch in said[1]:
                yield from self._match(list(branch), 0, at)
        elif kind is c.SUBPATTERN:
            yield from self._match(list(said[3]), 0, at)
        elif kind in (c.ASSERT, c.ASSERT_NOT):
            if self._looks(said, at) is (kind is c.ASSERT):
                yield at
        elif kind is c.AT:
            if self._is_at(said, at):
                yield at
        else:
            raise NotImplementedError(f"{kind} in a pattern: teach this counter what it does")

    def _repeat(self, kind: Any, said: Any, at: int) -> Iterator[int]:
        least, most, inner = said
        items = list(inner)
        assert kind is not c.MIN_REPEAT, "no pattern here is lazy"
        ends = [at]
        single = len(items) == 1 and items[0][0] in SINGLE
        while len(ends) <= most:
            end = next(self._match(items, 0, ends[-1]), None)
            if end is None or end == ends[-1]:
                break
            ends.append(end)
        # Of what is longer than a character only the first way of matching is followed: exact if possessive.
        assert single or kind is c.POSSESSIVE_REPEAT or most == 1 or len(ends) < 3
        if len(ends) <= least:
            return
        if kind is c.POSSESSIVE_REPEAT:
            yield ends[-1]
            return
        for end in reversed(ends[least:]):
            self.steps += 1
            yield end

    def _looks(self, said: Any, at: int) -> bool:
        direction, inner = said
        if direction > 0:
            return next(self._match(list(inner), 0, at), None) is not None
        width = inner.getwidth()[0]
        return at >= width and next(self._match(list(inner), 0, at - width), None) is not None

    def _is_at(self, said: Any, at: int) -> bool:
        if said is c.AT_BOUNDARY:
            return self._is_word(at - 1) is not self._is_word(at)
        raise NotImplementedError(str(said))

    def _is_word(self, at: int) -> bool:
        return 0 <= at < len(self._text) and _in_category(c.CATEGORY_WORD, self._text[at])

    def _takes(self, kind: Any, said: Any, char: str) -> bool:
        chars = {char, char.lower(), char.upper()} if self._folded else {char}
        if kind is c.ANY:
            return self._dot_all or char != "\n"
        if kind is c.LITERAL:
            return chr(said) in chars
        if kind is c.NOT_LITERAL:
            return chr(said) not in chars
        negated = said[0][0] is c.NEGATE
        return bool(negated) is not any(_in_set(item, one) for item in said[negated:] for one in chars)


def _in_set(item: Any, char: str) -> bool:
    kind, said = item
    if kind is c.LITERAL:
        return chr(said) == char
    if kind is c.RANGE:
        return bool(said[0] <= ord(char) <= said[1])
    return _in_category(said, char)


def _in_category(category: Any, char: str) -> bool:
    tests: dict[Any, Callable[[], object]] = {
        c.CATEGORY_WORD: lambda: char.isalnum() or char == "_",
        c.CATEGORY_SPACE: char.isspace,
        c.CATEGORY_NOT_SPACE: lambda: not char.isspace(),
        c.CATEGORY_DIGIT: char.isdecimal,
    }
    return bool(tests[category]())


def unbounded_repeats(pattern: re.Pattern[str]) -> list[Any]:
    """The repeats of a pattern that have no upper bound and give back what they took."""
    found: list[Any] = []

    def walk(node: Any) -> None:
        is_repeat = isinstance(node, tuple) and len(node) == 2 and node[0] in REPEATS[:2]
        if is_repeat and node[1][1] is c.MAXREPEAT:
            found.append(node)
        if isinstance(node, tuple | list | _parser.SubPattern):
            for part in node:
                walk(part)

    walk(_parser.parse(pattern.pattern, pattern.flags))
    return found
