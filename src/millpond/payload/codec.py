"""Values to JSON bytes and back: the one validator of what a job may carry, the same for every store.

What JSON cannot say exactly is refused with the path to it, its kind and the way out; nothing is rounded or
dropped on the way. Nothing is ever looked up by a name found in a payload.
"""

from __future__ import annotations

import math
import reprlib
import types
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec

from millpond.errors import PayloadRefused

MOST_BYTES = 1 << 20
MOST_DEPTH = 64
LARGEST = 2**63 - 1
MOST_STEP = 60  # characters of a key in the path to what is wrong

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_shown = reprlib.Repr()
_shown.maxother = _shown.maxstring = _shown.maxlong = 60
_KEPT = (bytes, bytearray, datetime, date, time, timedelta, UUID, Decimal)  # left for the walk to judge


def encode(value: Any, path: str) -> bytes:
    """A value as JSON bytes, or PayloadRefused saying where and why not."""
    return pack(Walk().plain(value, path), path)


def pack(plain: Any, path: str) -> bytes:
    """JSON bytes of what a walk has made plain, within the bound."""
    data = _encode(plain)
    if len(data) > MOST_BYTES:
        raise _too_large(path)
    return data


def decode(data: bytes) -> Any:
    """The inverse of `encode`, in plain JSON types. Raises ValueError for what is not JSON."""
    return _decode(data)


def convert(plain: Any, kind: Any) -> Any:
    """Plain JSON types as an annotation says. Raises ValueError if they do not fit it."""
    return msgspec.convert(plain, kind, strict=True, str_keys=True, dec_hook=_rebuild)


def can_convert(kind: Any) -> bool:
    """Can values be checked against this annotation? `Any` and what is beyond us are taken as they are."""
    if kind is Any or kind is object:
        return False
    try:
        msgspec.json.Decoder(kind, dec_hook=_rebuild)
    except Exception:  # whatever a foreign annotation does when it is looked at
        return False
    return True


# --- simplifying ---------------------------------------------------------------------------------------
class Walk:
    """One pass over values that will share a payload: makes them plain, or refuses them.

    `strange` tells whether something was met that JSON has no kind of its own for, such as a datetime.
    """

    __slots__ = ("room", "strange")

    def __init__(self) -> None:
        self.room = MOST_BYTES  # bytes left, at the least: nothing large is ever copied before it is refused
        self.strange = False

    def plain(self, value: Any, path: str) -> Any:
        """The value in plain JSON types, or PayloadRefused."""
        try:
            return self._walk(value, 0)
        except _Refusal as refusal:
            path += "".join(reversed(refusal.steps))
            raise PayloadRefused(f"{path} {refusal}", path) from None
        except _TooLarge:
            raise _too_large(path) from None

    def _walk(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value)
        if kind is bool or value is None:
            return value
        if kind is int:
            return _whole(value)
        if kind is float:
            return _number(value)
        if kind is list or kind is tuple:
            return self._items(value, depth)
        if kind is dict:
            return self._entries(value, depth)
        self.strange = True
        return self._other(value, depth)

    def _text(self, value: str) -> str:
        self._take(len(value) + 2)
        if "\0" in value:
            raise _Refusal("is text with a NUL character, which not every database keeps: remove it")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _Refusal(
                    "is text with a lone surrogate, half a character: decode it with errors='replace'"
                ) from None
        return value

    def _items(self, value: Any, depth: int) -> list[Any]:
        self._enter(len(value), depth)
        items: list[Any] = []
        try:
            for item in value:
                items.append(self._walk(item, depth + 1))  # noqa: PERF401 - its length is the index in an error
        except _Refusal as refusal:
            refusal.steps.append(f"[{len(items)}]")
            raise
        return items

    def _entries(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        self._enter(2 * len(value), depth)
        return {self._key(key): self._entry(key, item, depth + 1) for key, item in value.items()}

    def _key(self, key: Any) -> str:
        if not isinstance(key, str):
            raise _Refusal(
                f"has the key {_shown.repr(key)}, {_kind(key)}, but keys in JSON are text: use str"
            )
        try:
            return self._text(str.__str__(key))
        except _Refusal as refusal:
            raise _Refusal(f"has a key that {refusal}") from None

    def _entry(self, key: str, item: Any, depth: int) -> Any:
        try:
            return self._walk(item, depth)
        except _Refusal as refusal:
            plain = key.isidentifier() and len(key) <= MOST_STEP
            refusal.steps.append(f".{key}" if plain else f"[{_shown.repr(key)}]")
            raise

    def _enter(self, size: int, depth: int) -> None:
        if depth >= MOST_DEPTH:
            raise _Refusal(f"is nested more than {MOST_DEPTH} levels deep: flatten it, or store it elsewhere")
        self._take(size + 1)

    def _take(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            raise _TooLarge

    def _other(self, value: Any, depth: int) -> Any:
        """What is not JSON itself but has one exact form in it."""
        if isinstance(value, Enum):
            return self._walk(value.value, depth)
        text = _as_text(value)
        if text is not None:
            return self._text(text)
        if _is_record(value):
            return self._walk(_taken_apart(value), depth)
        if issubclass(type(value), list | tuple):
            return self._items(value, depth)
        if issubclass(type(value), dict):
            return self._entries(value, depth)
        native = _native(value)
        if native is not None:
            return self._walk(native, depth)
        raise _Refusal(f"is {_kind(value)}, which cannot be stored as JSON: {_cure(value)}")


class _Refusal(Exception):
    """What is wrong with a value; the way to it is collected as the walk goes back up."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.steps: list[str] = []


class _TooLarge(Exception):
    """The payload is beyond the bound, wherever we are in it."""


def _too_large(path: str) -> PayloadRefused:
    return PayloadRefused(
        f"{path} would be more than {MOST_BYTES:,} bytes of JSON, the most a job may carry: "
        "store it elsewhere and pass where it is",
        path,
    )


def _whole(value: int) -> int:
    if not -LARGEST - 1 <= value <= LARGEST:
        digits = int(value.bit_length() * math.log10(2)) + 1  # never str(): it refuses long ones
        raise _Refusal(f"is an int of about {digits:,} digits, beyond 64 bits: pass it as text")
    return value


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise _Refusal(f"is the float {value!r}, which JSON cannot say: pass None or text")
    return value


def _native(value: Any) -> str | float | None:
    """What a class derived from str, int or float stands for, whatever its methods say."""
    kind = type(value)  # never isinstance: a proxy says that it is what it stands for
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    return float.__float__(value) if issubclass(kind, float) else None


def _as_text(value: Any) -> str | None:
    """The text that stands for it, and that its annotation reads back."""
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date | time | timedelta | UUID):
        return str(msgspec.to_builtins(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise _Refusal(f"is the Decimal {value}, which JSON cannot say: pass None or text")
        return str(value)
    if is_secret_text(type(value)):
        return str(value.get_secret_value())
    return str(value) if isinstance(value, PurePath) else None


def is_secret_text(kind: Any) -> bool:
    """Is it pydantic's SecretStr? Known by its name: pydantic need not be there."""
    is_pydantic = str(getattr(kind, "__module__", "")).partition(".")[0] == "pydantic"
    return is_pydantic and getattr(kind, "__name__", "") == "SecretStr"


def _moment(value: datetime) -> str:
    offset = value.utcoffset()
    if offset is None:
        raise _Refusal("is a datetime without a time zone: use datetime.now(UTC) or .replace(tzinfo=...)")
    try:
        return (value.astimezone(UTC) if offset % timedelta(minutes=1) else value).isoformat()
    except OverflowError:
        raise _Refusal("is a datetime beyond the years 1 to 9999 in UTC: pass text") from None


def _is_record(value: Any) -> bool:
    """Does it have named fields: a dataclass, a Struct, an attrs class, a pydantic model?"""
    kind = type(value)
    return (
        isinstance(value, msgspec.Struct)
        or hasattr(kind, "__dataclass_fields__")
        or hasattr(kind, "__attrs_attrs__")
        or _is_model(kind)
    )


def _taken_apart(value: Any) -> Any:
    try:
        if _is_model(type(value)):
            return _dumped(value)
        return msgspec.to_builtins(value, builtin_types=_KEPT, enc_hook=_dumped)
    except Exception as error:  # fields, properties and serialisers are somebody else's code
        raise _Refusal(f"is {_kind(value)}, which cannot be stored as JSON: {error}") from None


def _dumped(value: Any) -> Any:
    """A pydantic model or a path inside a record, in plain types."""
    if _is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"it holds {_kind(value)}; {_cure(value)}")


def _is_model(kind: Any) -> bool:
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_validate")


def _rebuild(kind: Any, plain: Any) -> Any:
    """What only its own class can read: pydantic models and secrets, and paths."""
    if _is_model(kind):
        return kind.model_validate(plain)
    if is_secret_text(kind) and isinstance(plain, str):
        return kind(plain)
    if isinstance(kind, type) and issubclass(kind, PurePath) and isinstance(plain, str):
        return kind(plain)
    if isinstance(kind, type) and not isinstance(plain, kind):
        raise TypeError(f"Expected `{kind.__name__}`, got `{type(plain).__name__}`")
    return plain


def _kind(value: Any) -> str:
    return "of kind " + f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _cure(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return "pass text, base64, or where the bytes are"
    if isinstance(value, set | frozenset):
        return "pass sorted(...) of it, a list"
    if isinstance(value, types.FunctionType | type):
        return "pass its name, and look it up in the task"
    return "pass what identifies it (an id, a path), and load it in the task"
