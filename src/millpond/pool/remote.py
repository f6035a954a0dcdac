"""An exception with the traceback text of the process it was raised in.

Kept apart and import-light: every worker needs it, and it must unpickle anywhere.
"""

from __future__ import annotations

import pickle
import traceback
from typing import Any


class RemoteTraceback(Exception):
    """The cause of an exception that came from a worker: where it was raised over there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class Unreadable(Exception):
    """The function or the arguments of a task could not be unpickled here."""


class Remote:
    """Carries an exception and its traceback text through pickle; arrives as the exception itself."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.text = describe(error)
        # The traceback object, and the frames it keeps alive, stay here
        self.error.__traceback__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return arrive, (self.error, self.text)


def arrive(error: BaseException, text: str) -> BaseException:
    """Rebuild the exception on the receiving side."""
    error.__cause__ = RemoteTraceback(text)
    return error


def describe(error: BaseException) -> str:
    """The traceback of an exception as text, even if its own `__str__` raises."""
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:
        return f"{type(error).__qualname__} (its text cannot be had: __str__ raises)"


def text_of(error: BaseException) -> str:
    """Type and message of an exception, even if its own `__str__` raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return f"{type(error).__name__} (its text cannot be had: __str__ raises)"


def pack_plain(message: str, text: str) -> bytes:
    """A RuntimeError in the place of something that cannot be pickled."""
    replacement = RuntimeError(message)
    remote = Remote(replacement)
    remote.text = text
    return pickle.dumps(remote, 5)
