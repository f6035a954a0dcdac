"""Policies by name: `wait`, `wait:5s`, `depth:20:2`, `fixed:10`, `keda:5`, `hpa:0.7` and the others."""

from __future__ import annotations

from millpond.errors import OptionError
from millpond.rules.scale import Fixed, ScaleByDepth, ScaleForWait
from millpond.simulate.records import Law
from millpond.simulate.rivals import KNOBS
from millpond.units import seconds

NAMES = "wait, wait:5s, depth:UP:DOWN, fixed:N, " + ", ".join(f"{name}:X" for name in KNOBS)


def parse(text: str, max_wait: float) -> Law:
    """A policy; `wait` alone is for the wait that is asked for."""
    name, *numbers = text.split(":")
    try:
        return _made(name, numbers, max_wait)
    except (ValueError, IndexError):
        raise OptionError(f"there is no policy {text!r:.40}: choose one of {NAMES}") from None


def _made(name: str, numbers: list[str], max_wait: float) -> Law:
    if name == "wait":
        return ScaleForWait(seconds(numbers[0], name="policy wait") if numbers else max_wait)
    if name == "depth":
        up, down = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 1
        if up < 1 or down < 0:
            raise ValueError
        return ScaleByDepth(up, down)
    if name == "fixed":
        return Fixed(int(numbers[0]))
    if name not in KNOBS:
        raise ValueError
    law = KNOBS[name][0]
    knob = float(numbers[0]) if numbers else None
    if knob is not None and not knob > 0:
        raise ValueError
    made: Law = law(knob) if knob is not None else law()  # type: ignore[call-arg]
    return made
