"""Durations and sizes at the edges: what people write, turned into seconds and bytes.

Every option that takes a duration or a size goes through these two functions, so that "5m" means the same
everywhere. Pure: values in, values out. Never guesses: what could be read in two ways is refused.
"""

from __future__ import annotations

import math
import re
from numbers import Integral, Real
from typing import TYPE_CHECKING

from millpond.errors import OptionError

if TYPE_CHECKING:
    from datetime import timedelta

# Bounded digits keep every conversion cheap and finite, whatever text arrives.
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"

# Largest unit first and each at most once: "1h30m" reads one way only, "30m1h" and "1h1h" are typing errors.
_MILLISECONDS_IN = {
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
_DURATION = re.compile(
    r"\s*".join(rf"(?:(?P<{unit}>{_NUMBER})\s*{unit}(?![a-z]))?" for unit in _MILLISECONDS_IN), re.ASCII
)

_BYTES_IN = {"b": 1}
_BYTES_IN |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtp", start=1)}
_BYTES_IN |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtp", start=1)}
_SIZE = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[a-z]+)", re.ASCII | re.IGNORECASE)


def shown(value: object, most: int = 80) -> str:
    """A value in an error message: short, and never an error of its own (a huge int refuses its repr)."""
    try:
        return repr(value)[:most]
    except Exception:  # the message is about something else
        return f"a value of type {type(value).__name__}"


def shown_size(size: int) -> str:
    """A size for people, in the units that sizes are given in: 1.5 GB, 200 MB."""
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if abs(size) >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def seconds(value: float | timedelta | str, *, name: str) -> float:
    """Return a duration in seconds; `name` is the option it was given for, used in the error.

    Takes a number of seconds, a timedelta, or text such as "1.5s", "500ms", "5m", "2h", "1d" or "1h30m".
    Text without a unit is a number of seconds, since environment variables can be nothing but text.
    """
    result = _seconds_or_none(value)
    if result is None or not math.isfinite(result) or result < 0:
        raise OptionError(
            f"{name} must be a duration of zero or more, such as 30 (seconds), '500ms', '5m' or '1h30m', "
            f"not {shown(value)}"
        )
    return result


def size_in_bytes(value: int | str, *, name: str) -> int:
    """Return a size in bytes; `name` is the option it was given for, used in the error.

    Takes a whole number of bytes, or text such as "100kB", "512MB" (10**6 each) or "1.5GiB" (2**30 each), in
    any case. A fraction of a byte is dropped. "512M" is refused: half the world reads it as 2**20.
    """
    result = _bytes_or_none(value)
    if result is None or result < 0:
        raise OptionError(
            f"{name} must be a size of zero or more, such as 1048576 (bytes), '512MB' or '1.5GiB', "
            f"not {shown(value)}"
        )
    return result


def _seconds_or_none(value: object) -> float | None:
    if hasattr(value, "total_seconds"):  # a timedelta; importing its module would cost a pool memory
        return float(value.total_seconds())
    if isinstance(value, str):
        return _seconds_in_text(value.strip())
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:  # an int beyond the range of float
            return None
    return None


def _seconds_in_text(text: str) -> float | None:
    if re.fullmatch(_NUMBER, text):
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        return None
    # Exact until the last step, so that "0.1s" is 0.1 and "1h30m" is 5400.0.
    total = sum(_quintillionths(n) * _MILLISECONDS_IN[unit] for unit, n in match.groupdict().items() if n)
    return total / (1000 * 10**18)


def _bytes_or_none(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, str):
        return _bytes_in_text(value.strip())
    return None


def _bytes_in_text(text: str) -> int | None:
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    match = _SIZE.fullmatch(text)
    factor = _BYTES_IN.get(match["unit"].lower()) if match else None
    if match is None or factor is None:
        return None
    return _quintillionths(match["number"]) * factor // 10**18


def _quintillionths(number: str) -> int:
    """A decimal number times 10**18, exactly: it has at most 18 digits behind the point."""
    whole, _, part = number.partition(".")
    return int(whole + part.ljust(18, "0"))
