"""An exception with the traceback text of the process it was raised in.

Kept apart and import-light: every worker needs it, and it must unpickle anywhere.
"""

from __future__ import annotations

import pickle
import traceback
from typing import Any

# Set through these, and not by assignment: an exception may refuse that, as a frozen dataclass does
FIELDS: Any = vars(BaseException)


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
        FIELDS["__traceback__"].__set__(self.error, None)

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self.error)
        plain: Any = BaseException
        if kind.__setattr__ is not plain.__setattr__ and kind.__reduce__ is plain.__reduce__:
            return restore, (kind, self.error.args, vars(self.error), self.text)
        return arrive, (self.error, self.text)


def restore(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any], text: str
) -> BaseException:
    """Rebuild an exception that refuses assignments: pickle would make them."""
    error = BaseException.__new__(kind, *args)
    vars(error).update(state)
    return arrive(error, text)


def arrive(error: BaseException, text: str) -> BaseException:
    """Rebuild the exception on the receiving side."""
    FIELDS["__cause__"].__set__(error, RemoteTraceback(text))
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
