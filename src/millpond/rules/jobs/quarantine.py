"""When an end that the store does not take is sent again, and whether it is worth a word.

An end that fails by itself waits longer after each try, and after a second try that took long so much longer
that a small part of the node's time with the store goes into it. Not after the first: the whole store may
have been locked for some seconds, and be free again by the time it is asked whether it takes others
(tests/proof_node/test_store_trouble.py, test_a_foreign_lock_on_the_file_is_waited_out). One that another
transaction's lock keeps out is tried soon: most locks are held for a moment.
"""

from __future__ import annotations

FIRST, LONGEST = 1.0, 60.0  # seconds before an end that failed is sent again
FIRST_DEFERRED, LONGEST_DEFERRED = 0.02, 5.0  # the same for one that a lock keeps out
SHARE = 10.0  # times as long as a try took
MOST = 300.0
HURRY = 0.5  # at most, while the node stops: its time is short
WORTH_TELLING = 5.0  # seconds that a lock may keep an end out without a word
QUIET = 60.0  # seconds between two warnings of the same end


def pause(tries: int, took: float, spread: float, *, is_deferred: bool) -> float:
    """Seconds before the next try after so many, of which the last took so long; `spread`, from 0 to 1, keeps
    many ends and many nodes from coming back at once."""
    first, longest = (FIRST_DEFERRED, LONGEST_DEFERRED) if is_deferred else (FIRST, LONGEST)
    grown = min(longest, first * 2.0 ** min(tries - 1, 10))
    slow = SHARE * took if tries > 1 else 0.0
    return min(MOST, max(grown, slow)) * (0.5 + 0.5 * spread)


def due_at(tried_at: float, after: float, *, hurry: bool) -> float:
    """When the next try is due."""
    return tried_at + (min(after, HURRY) if hurry else after)


def is_worth_telling(waited: float, *, is_deferred: bool) -> bool:
    """Should people know of an end that has waited so long?"""
    return not is_deferred or waited >= WORTH_TELLING
