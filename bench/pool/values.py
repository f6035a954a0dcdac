"""What one run measures: named values, each a number or a short text saying why there is none.

Import-light, like everything a measured process loads before it opens its pool.
"""

from collections.abc import Iterable, Mapping

Value = float | str
Values = Mapping[str, Value]


def median(numbers: Iterable[float]) -> float:
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
