"""What may be shown of a job: without its secrets, and so many characters of it in one answer.

What is beyond is left out and counted where it would stand, so that a reader knows that there is more. A
value that was hidden under its name is hidden wherever else the job shows it: in an error's message, in a
slot's name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any, Literal

import msgspec

from millpond.job import Attempt, Job
from millpond.redaction import HIDDEN, names_a_secret, without_secrets

TEXT = 64_000  # characters of one text
DEPTH = 64
KEY = 200  # characters of a key
EACH = 2  # what a value costs beside its characters
SHORTEST = 4  # characters of a hidden value that is looked for elsewhere: `1` would be found everywhere
MOST_KNOWN = 20  # of them, for one job
ENDLESS = 1 << 40


class Disclosure:
    """What is left for one answer."""

    def __init__(self, characters: int = ENDLESS, most: int = TEXT) -> None:
        self.left = characters
        self._most = most  # of one text
        self._known: list[str] = []  # values that were hidden

    def text(self, text: str, keep: Literal["start", "end"] = "start") -> str:
        """A text without its secrets, as much of it as there is room for."""
        most = max(0, min(self._most, self.left))
        self.left -= min(len(text), most)
        if len(text) <= most:
            return self.plain(text)
        more = f"… {len(text) - most:,} more characters …"
        if most == 0:
            return more
        # A piece of a secret at the cut cannot be told for one: the word that the cut is in is left out.
        if keep == "end":
            return more + _without_half_a_word(self.plain(text[-most:]), at_start=True)
        return _without_half_a_word(self.plain(text[:most]), at_start=False) + more

    def plain(self, text: str) -> str:
        """A text without its secrets, whatever its length."""
        for value in self._known:
            if value in text:
                text = text.replace(value, HIDDEN)
        return without_secrets(text)

    def stored(self, data: bytes | None, hidden: Collection[str] = ()) -> Any:
        """The value in stored JSON; what cannot be read is shown as text. `hidden` are names besides."""
        if data is None:
            return None
        try:
            found = json.loads(data, parse_constant=str, parse_float=finite)
        except (ValueError, RecursionError):
            return self.text(data[: 4 * max(0, self.left)].decode(errors="backslashreplace"))
        if isinstance(found, dict) and hidden:
            for name in found.keys() & set(hidden):
                self._hide(found[name])
                found[name] = HIDDEN
        return self.redacted(found)

    def _hide(self, value: Any) -> None:
        """Remember texts that must not be shown anywhere else."""
        items = [value]
        while items and len(self._known) < MOST_KNOWN:
            item = items.pop()
            if isinstance(item, list | dict):
                items += list(item.values() if isinstance(item, dict) else item)[:MOST_KNOWN]
            elif isinstance(item, str | int | float) and not isinstance(item, bool):
                text = str(item)
                if len(text) >= SHORTEST and text != HIDDEN:
                    self._known.append(text)

    def redacted(self, value: Any, depth: int = 0) -> Any:
        """JSON with everything hidden that is called like a secret or looks like one."""
        self.left -= EACH
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | dict) and depth >= DEPTH:
            return HIDDEN
        if isinstance(value, list):
            return self._list(value, depth)
        return self._object(value, depth) if isinstance(value, dict) else value

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        found: list[Any] = []
        for item in value:
            if self.left <= 0:
                return [*found, f"… {len(value) - len(found):,} more …"]
            found.append(self.redacted(item, depth + 1))
        return found

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        alike: dict[str, int] = {}  # keys without their secrets, and how often each was met
        for number, (key, item) in enumerate(value.items()):
            if self.left <= 0:
                return {**found, "…": f"… {len(value) - number:,} more …"}
            is_secret = names_a_secret(key) and item is not None
            if is_secret:
                self._hide(item)
            found[self._key(key, found, alike)] = self.redacted(HIDDEN if is_secret else item, depth + 1)
        return found

    def _key(self, key: str, taken: dict[str, Any], alike: dict[str, int]) -> str:
        """A key without its secrets; two that are alike then stay two.

        Counting goes on where the last of them ended: from one on, 16,000 keys that differ in a secret alone
        would take half a minute (`test_twice_the_keys_take_twice_the_steps_though_they_look_alike`).
        """
        self.left -= min(len(key), KEY)
        shown = plain = self.plain(key if len(key) <= KEY else key[:KEY] + "…")
        number = alike.get(plain, 1)
        while shown in taken:
            number += 1
            shown = f"{plain} ({number})"
        alike[plain] = number
        return shown


def _without_half_a_word(text: str, *, at_start: bool) -> str:
    """The text without the word at one end, if that is short enough to be a secret."""
    if at_start:
        head, space, rest = text.partition(" ")
        return rest if space and len(head) <= KEY else text
    rest, space, tail = text.rpartition(" ")
    return rest + space if space and len(tail) <= KEY else text


def finite(text: str) -> float | str:
    """A number of JSON, or its text where no float can hold it."""
    value = float(text)
    return value if math.isfinite(value) else text


def knowing(job: Job, characters: int = ENDLESS) -> Disclosure:
    """One that knows the values of marked parameters, which must not be shown wherever they stand."""
    may = Disclosure(characters)
    if job.options.hidden:
        may.stored(job.payload, job.options.hidden)
        may.left = characters
    return may


def disclosed(job: Job) -> Job:
    """The whole job as it may be shown, for those who show one at a time."""
    may = Disclosure(most=ENDLESS)
    payload, result = _again(may, job.payload, job.options.hidden), _again(may, job.result)
    return msgspec.structs.replace(
        job,
        payload=payload or b"",
        result=result,
        progress=_again(may, job.progress),
        reason=_text(may, job.reason),
        unique=_text(may, job.unique),
        parked=_text(may, job.parked),
        slots=tuple(msgspec.structs.replace(slot, name=may.plain(slot.name)) for slot in job.slots),
        attempts=tuple(_attempt(may, attempt) for attempt in job.attempts),
    )


def _again(may: Disclosure, data: bytes | None, hidden: Collection[str] = ()) -> bytes | None:
    """Stored JSON as it may be shown; untouched where there is nothing to hide."""
    if data is None:
        return None
    found = may.stored(data, hidden)
    try:
        if found == json.loads(data, parse_constant=str, parse_float=finite):
            return data
    except (ValueError, RecursionError):
        return str(found).encode(errors="backslashreplace")
    return json.dumps(found, separators=(",", ":")).encode()


def _attempt(may: Disclosure, attempt: Attempt) -> Attempt:
    return msgspec.structs.replace(
        attempt,
        error=_text(may, attempt.error),
        message=_text(may, attempt.message),
        traceback=_text(may, attempt.traceback),
    )


def _text(may: Disclosure, text: str | None) -> str | None:
    return None if text is None else may.plain(text)
