"""How many of the ends that wait are said to the store in one exchange.

By bytes as well as by number: a thousand large results may take longer on their way than anybody waits for
the answer. What could not be said is said again in halves, down to one at a time: a link that is too slow for
all of it must not be given all of it for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def after_failure(said: int) -> int:
    """The most to say after an exchange with so many ends was not answered."""
    return max(1, said // 2)


def after_success(most: int) -> int:
    """The most to say after one that was."""
    return min(MOST, 2 * most)
