"""Durations in few numbers: two buckets to each power of two of microseconds.

Any two histograms can be added; percentiles are good to about twenty percent, which is what a decision or
a chart needs.
"""

from __future__ import annotations

from collections.abc import Mapping


def bucket(seconds: float) -> int:
    """The bucket of a duration; anything below two microseconds is in the first."""
    microseconds = int(seconds * 1_000_000)
    if microseconds < 2:
        return 0
    bits = microseconds.bit_length()
    return 2 * (bits - 1) + ((microseconds >> (bits - 2)) & 1)


def bounds(index: int) -> tuple[float, float]:
    """The durations in seconds that a bucket stands for: from, up to but without."""
    if index < 2:
        return 0.0, 2e-6
    low = (2 + (index & 1)) << (index // 2 - 1)
    return low / 1e6, (low + (1 << (index // 2 - 1))) / 1e6


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """The duration below which `share` of the counted ones lie; None if nothing was counted."""
    wanted = share * sum(histogram.values())
    if not wanted:
        return None
    seen = 0
    for index in sorted(histogram):
        number = histogram[index]
        if seen + number >= wanted:
            low, high = bounds(index)
            return low + (high - low) * (wanted - seen) / number
        seen += number
    return bounds(max(histogram))[1]
