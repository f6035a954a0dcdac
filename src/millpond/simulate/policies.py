"""Policies by name: `wait`, `wait:5s`, `depth:20:2`, `fixed:10`, `keda:5`, `hpa:0.7` and the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millpond.errors import OptionError
from millpond.rules.scaling.policies import Fixed, ScaleByDepth, ScaleForWait
from millpond.simulate.other_autoscalers import KNOBS
from millpond.simulate.records import Law
from millpond.units import seconds

NAMES = "wait, wait:5s, depth:UP:DOWN, fixed:N, " + ", ".join(f"{name}:X" for name in KNOBS)
LEAST, MOST = 0.01, 1e6  # of the number behind another law's name
Made = Callable[[Sequence[str]], Law]


def parse(text: str, max_wait: float) -> Law:
    """A policy; `wait` alone is for the wait that is asked for."""
    name, *numbers = text.split(":")
    known: dict[str, tuple[int, int, Made]] = {  # fewest and most numbers that it takes
        "wait": (0, 1, lambda given: ScaleForWait(_wait(given[0]) if given else max_wait)),
        "depth": (1, 2, _depth),
        "fixed": (1, 1, _fixed),
        **dict.fromkeys(KNOBS, (0, 1, lambda given: _other(name, given))),
    }
    if name not in known:
        raise OptionError(f"there is no policy {text!r:.40}: choose one of {NAMES}")
    fewest, most, made = known[name]
    try:
        if not fewest <= len(numbers) <= most:
            raise ValueError(f"it takes {f'{fewest} or {most} numbers' if fewest < most else 'one number'}")
        return made(numbers)
    except ValueError as error:
        raise OptionError(f"the policy {text!r:.40} will not do: {error}; choose one of {NAMES}") from None


def _wait(text: str) -> float:
    wait = seconds(text, name="its wait")
    if not wait > 0:
        raise ValueError("its wait must be above zero")
    return wait


def _depth(numbers: Sequence[str]) -> Law:
    up, down = _whole(numbers[0]), _whole(numbers[1]) if len(numbers) > 1 else 1
    if up < 1:
        raise ValueError("its first number must be at least 1")
    return ScaleByDepth(up, down)


def _fixed(numbers: Sequence[str]) -> Law:
    workers = _whole(numbers[0])
    if workers < 1:
        raise ValueError("a pool of no workers runs nothing")
    return Fixed(workers)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"{text!r:.20} is no whole number of zero or more")
    return int(text)


def _other(name: str, numbers: Sequence[str]) -> Law:
    law = KNOBS[name].law
    if not numbers:
        return law()
    try:
        knob = float(numbers[0])
    except ValueError:
        raise ValueError(f"{numbers[0]!r:.20} is no number") from None
    if not LEAST <= knob <= MOST:
        raise ValueError(f"its number must be from {LEAST:g} to {MOST:,.0f}")
    return law(knob)
