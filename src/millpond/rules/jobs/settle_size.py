"""How many of the ends that wait are said to the store in one exchange.

By bytes as well as by number: a thousand large results may take longer on their way than anybody waits for
the answer. What could not be said is said again in halves, down to one at a time: a link that is too slow for
all of it must not be given all of it for ever, and the one end that no store takes must be found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MOST = 1000
MOST_BYTES = 8 << 20


def cut(sizes: Iterable[int], most: int) -> int:
    """How many of the first in line go together: as many as fit, and always one."""
    number = total = 0
    for size in sizes:
        total += size
        if number and (number >= most or total > MOST_BYTES):
            break
        number += 1
    return number


class Pace(NamedTuple):
    """How many to send at once."""

    most: int = MOST
    doubtful: int = 0  # among the first so many in line is one that could not be carried out

    @property
    def is_alone(self) -> bool:
        """Has one end failed, perhaps because of what was sent with it? Then it goes by itself."""
        return self.doubtful == 1


def after_failure(sent: int) -> Pace:
    """After an exchange with so many ends was not answered."""
    return Pace(max(1, sent // 2), sent)


def after_success(pace: Pace, sent: int) -> Pace:
    """After one that was. While the one that failed is among the rest, they are halved further: to double
    again would fail again, and each failure may take as long as the store is waited for."""
    left = pace.doubtful - sent
    if left > 0:
        return Pace((left + 1) // 2, left)
    return Pace(min(MOST, 2 * pace.most))
