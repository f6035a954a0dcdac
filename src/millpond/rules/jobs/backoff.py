"""How long to wait before a store that failed is asked again."""

from __future__ import annotations

FIRST = 0.05
LONGEST = 1.0  # work goes on within two seconds of the store's return
FIRST_RETRY = 0.004
LONGEST_RETRY = 0.25


def pause(failures: int, spread: float) -> float:
    """Seconds before the next try; `spread`, from 0 to 1, keeps many nodes from coming back at once."""
    longest: float = min(LONGEST, FIRST * 2.0 ** min(failures - 1, 10))
    return longest * (0.5 + 0.5 * spread)


def retry_pause(attempt: int, spread: float) -> float:
    """Seconds before a transaction that crossed with another is repeated for the `attempt`th time; `spread`,
    from 0 to 1, keeps the two from crossing again."""
    longest: float = min(LONGEST_RETRY, FIRST_RETRY * 3.0 ** min(attempt - 1, 10))
    return longest * (0.25 + 0.75 * spread)
