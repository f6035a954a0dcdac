"""The parameters of a task: calls are bound, checked against the annotations, encoded, and read back.

What a call puts in, the task gets: a value that would come back as something else is refused when the call
is made. Defaults are not stored; they are those of the code that runs the job.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from millpond.errors import ArgumentsRefused, OptionError, PayloadRefused
from millpond.options import nearest
from millpond.payload.codec import MOST_STEP, Walk, can_convert, convert, decode, is_secret_text, pack
from millpond.redaction import Secret
from millpond.units import shown

_MANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_EXACT = (str, int, float, bool)
MOST_TEXT = 300  # characters of somebody else's message


class Signature:
    """How a task may be called."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        self._signature = _signature(function)
        self._parameters = self._signature.parameters
        hints = hints_of(function)
        checked = {
            parameter.name: _whole_kind(parameter, hints[parameter.name])
            for parameter in self._parameters.values()
            if parameter.name in hints
        }
        self._checks = {name: kind for name, kind in checked.items() if can_convert(kind)}
        self.hidden = tuple(name for name, kind in checked.items() if _is_secret(kind))
        self._exact = {name: kind for name, kind in self._checks.items() if kind in _EXACT}
        self._positional = self._named(Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        self._keywords = self._named(Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        self._required = {
            parameter.name
            for parameter in self._parameters.values()
            if parameter.default is Parameter.empty and parameter.kind not in _MANY
        }
        self._takes_many = any(parameter.kind in _MANY for parameter in self._parameters.values())
        self._is_simple = len(self._keywords) == len(self._parameters)
        self._names = set(self._parameters)
        self._kinds = tuple((name, self._exact.get(name)) for name in self._checks)

    def kinds(self) -> list[Any]:
        """The annotations that arguments are checked against."""
        return list(self._checks.values())

    def described(self) -> str:
        """The parameters as text that is the same in every process: a default is only said to be there."""
        return ", ".join(
            f"{parameter.kind}{parameter.name}: {inspect.formatannotation(parameter.annotation)}"
            f"{'' if parameter.default is Parameter.empty else ' = ...'}"
            for parameter in self._parameters.values()
        )

    @property
    def names(self) -> set[str]:
        """The names of the parameters."""
        return set(self._parameters)

    def _named(self, *kinds: object) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self._parameters.values() if parameter.kind in kinds)

    # --- in ------------------------------------------------------------------------------------------
    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """A call as JSON bytes, or ArgumentsRefused or PayloadRefused saying what is wrong with it."""
        walk = Walk()
        arguments: dict[str, Any] = {}
        try:
            for name, value in self._bind(args, kwargs).items():
                arguments[name] = plain = walk.plain(value, name)
                if type(value) is not self._exact.get(name):
                    self._check(name, value, plain, walk)
            return pack(arguments, "the arguments")
        except PayloadRefused as refused:
            raise PayloadRefused(f"{self.name}: {refused}", refused.path) from None

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, with the defaults."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name. The usual call is bound by hand: inspect takes its time."""
        if not self._takes_many and len(args) <= len(self._positional):
            bound = dict(zip(self._positional, args, strict=False))
            for name, value in kwargs.items():
                if name in bound or name not in self._keywords:
                    break
                bound[name] = value
            else:
                if self._required <= bound.keys():
                    return bound
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            unknown = [name for name in kwargs if name not in self._keywords]
            hint = nearest(unknown[0], self._keywords) if unknown and "unexpected" in str(error) else ""
            raise ArgumentsRefused(f"{self.name}{self._signature}: {error}{hint}") from None

    def _check(self, name: str, value: Any, plain: Any, walk: Walk) -> None:
        """Does the value fit its annotation, and will it come back as what it is?"""
        kind = self._checks.get(name)
        back = plain if kind is None else self._converted(name, plain, kind)
        if walk.strange or back is not plain:
            walk.strange = False
            changed = _changed(value, back)
            if changed is not None:
                raise ArgumentsRefused(f"{self.name}: {name}{changed[0]} {changed[1]}")

    def _converted(self, name: str, plain: Any, kind: Any) -> Any:
        try:
            return convert(plain, kind)
        except Exception as error:  # __post_init__ and validators may raise anything
            text, place = _explained(error)
            if place.startswith("[...]"):
                place = _named_entry(plain, kind) + place.removeprefix("[...]")
            fix = inspect.formatannotation(kind)
            raise ArgumentsRefused(f"{self.name}: {name}{place}: {text}; {name} takes {fix}") from None

    # --- out -----------------------------------------------------------------------------------------
    def decode(self, data: bytes) -> tuple[list[Any], dict[str, Any]]:
        """The call in a payload, with its arguments as the annotations say.

        Raises PayloadRefused for what no version of the task could read, ArgumentsRefused for what this
        one cannot.
        """
        try:
            plain = decode(data)
        except (ValueError, RecursionError) as error:
            raise PayloadRefused(f"{self.name}: the stored arguments cannot be read: {error}") from None
        if not isinstance(plain, dict):
            raise PayloadRefused(f"{self.name}: the stored arguments are no JSON object")
        if self._is_simple and plain.keys() == self._names:  # the usual case: all by name, nothing missing
            for name, kind in self._kinds:
                if type(plain[name]) is not kind:
                    plain[name] = self._converted(name, plain[name], self._checks[name])
            return [], plain
        return self._call(self._revived(plain))

    def arguments(self, data: bytes) -> dict[str, Any]:
        """The arguments in a payload by name, as the annotations say; without the defaults."""
        return self._revived(decode(data))

    def _revived(self, plain: dict[str, Any]) -> dict[str, Any]:
        unknown = [name for name in plain if name not in self._parameters]
        missing = [name for name in self._parameters if name in self._required and name not in plain]
        if unknown or missing:
            wrong = f"have {unknown}, which it does not take" if unknown else f"lack {missing}"
            raise ArgumentsRefused(f"{self.name}{self._signature}: the stored arguments {wrong}")
        for name, kind in self._checks.items():
            if name in plain and type(plain[name]) is not self._exact.get(name):
                plain[name] = self._converted(name, plain[name], kind)
        return plain

    def _call(self, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        spread = any(
            parameter.kind is Parameter.VAR_POSITIONAL and arguments.get(name)
            for name, parameter in self._parameters.items()
        )
        for name, parameter in self._parameters.items():
            if name not in arguments:
                continue
            if parameter.kind is Parameter.VAR_POSITIONAL:
                args += arguments[name]
            elif parameter.kind is Parameter.VAR_KEYWORD:
                kwargs.update(arguments[name])
            elif parameter.kind is Parameter.POSITIONAL_ONLY or (spread and name in self._positional):
                args.append(arguments[name])
            else:
                kwargs[name] = arguments[name]
        return args, kwargs


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"{shown(function)} tells nobody what it takes ({error}): wrap it in a function"
        ) from None


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations that can be resolved; one that cannot hides no other, and checks nothing."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # an annotation may be any expression
        hints: dict[str, Any] = {}
        space = getattr(inspect.unwrap(function), "__globals__", {})
        for name, kind in getattr(function, "__annotations__", {}).items():
            try:
                alone = types.SimpleNamespace(__annotations__={name: kind})
                hints |= get_type_hints(alone, space, include_extras=True)
            except Exception:  # noqa: S112 - as above
                continue
        return hints


def _is_secret(kind: Any) -> bool:
    """Must a parameter not be shown? `Annotated[str, Secret]` says so, and pydantic's SecretStr."""
    if get_origin(kind) is Annotated:
        return any(mark is Secret or isinstance(mark, Secret) for mark in kind.__metadata__) or _is_secret(
            kind.__origin__
        )
    if get_args(kind):
        return any(_is_secret(part) for part in get_args(kind))
    return is_secret_text(kind)


def _whole_kind(parameter: Parameter, kind: Any) -> Any:
    """The kind of everything a parameter takes: `*numbers: int` is a list of int."""
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return list[kind]
    return dict[str, kind] if parameter.kind is Parameter.VAR_KEYWORD else kind


def _explained(error: Exception) -> tuple[str, str]:
    """What does not fit, and where inside the argument."""
    if not isinstance(error, ValueError | TypeError):
        return f"{type(error).__name__}: {error}"[:MOST_TEXT], ""
    details = getattr(error, "errors", None) or getattr(error.__cause__, "errors", None)
    text, _, place = str(error).partition(" - at `")
    place = "" if not place.startswith("$") else place.removeprefix("$").rstrip("`")
    if callable(details):  # pydantic: the first of its list is enough
        first = details()[0]
        text = first["msg"]
        place += "".join(f".{step}" for step in first["loc"])
    return text[:1].lower() + text[1:MOST_TEXT], place


def _named_entry(plain: Any, kind: Any) -> str:
    """The entry of a dict that does not fit; msgspec says only that there is one."""
    for key, item in plain.items():
        try:
            convert({key: item}, kind)
        except Exception:  # the one that was told of, most likely
            return f".{key}" if key.isidentifier() and len(key) <= MOST_STEP else f"[{shown(key, MOST_STEP)}]"
    return "[...]"


def _changed(before: Any, after: Any) -> tuple[str, str] | None:
    """Where a value would come back as something else or without a part, and what to do about it."""
    kind = type(before)
    if before is None or kind in _EXACT:
        return None
    if kind in (list, tuple):
        return _changed_items(before, after)
    if kind is dict:
        return _changed_entries(before, after)
    if isinstance(after, kind):
        return _changed_items(before, after) if isinstance(before, tuple) else _changed_fields(before, after)
    if isinstance(before, type(after)) and before == after:
        return None
    return "", (
        f"is of kind {kind.__qualname__} and would come back as {type(after).__qualname__}: "
        f"annotate it as {kind.__qualname__}, or pass plain JSON"
    )


def _changed_items(before: Any, after: Any) -> tuple[str, str] | None:
    if not isinstance(after, list | tuple) or len(before) != len(after):
        return None  # its annotation makes something else of a list
    for index, (was, becomes) in enumerate(zip(before, after, strict=True)):
        found = _changed(was, becomes)
        if found is not None:
            return f"[{index}]{found[0]}", found[1]
    return None


def _changed_entries(before: dict[str, Any], after: Any) -> tuple[str, str] | None:
    entries = _fields(after)
    if entries is None:
        return None
    for key, was in before.items():
        if key not in entries:
            return f".{key}", "is no field of its annotation and would be lost: leave it out"
        found = _changed(was, entries[key])
        if found is not None:
            return f".{key}{found[0]}", found[1]
    return None


def _changed_fields(before: Any, after: Any) -> tuple[str, str] | None:
    """The same inside a dataclass, Struct or attrs class: a field that takes anything brings back JSON."""
    for name in _field_names(type(before)):
        was, becomes = getattr(before, name, None), getattr(after, name, None)
        if name.startswith("_") and was != becomes:
            return f".{name}", "is private, is not stored and would be lost: give it a name without the _"
        found = _changed(was, becomes)
        if found is not None:
            return f".{name}{found[0]}", found[1]
    return None


def _field_names(kind: type) -> Iterable[str]:
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if hasattr(kind, "__attrs_attrs__"):
        return [field.name for field in kind.__attrs_attrs__]
    return [field.name for field in fields(kind)] if is_dataclass(kind) else ()


def _fields(after: Any) -> Mapping[str, Any] | None:
    """What came of the entries of a dict, by their names in JSON; None if that cannot be told."""
    kind = type(after)
    if kind is dict:
        return after if all(type(key) is str for key in after) else None
    if isinstance(after, msgspec.Struct) and not kind.__struct_config__.array_like:
        names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
        tag = {kind.__struct_config__.tag_field: None} if kind.__struct_config__.tag_field else {}
        return tag | {encoded: getattr(after, name) for encoded, name in names}
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(after, name, None) for name in kind.__dataclass_fields__}
    return None
