"""Plain JSON value -> frozen dataclass, strictly: unknown key, missing key, wrong type, NaN are each a WrongValue.

One decoder is made per type, and no path is spelled until something is wrong: a campaign has a million rows to read.
L0: standard library only.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Decoder = Callable[[Any], Any]


class WrongValue(Exception):
    """A value that is not what its type says; each level it passes on the way up puts its own name before `path`."""

    def __init__(self, message: str) -> None:
        self.message, self.path = message, ""

    def below(self, name: str) -> WrongValue:
        """Itself, after it has passed the level called `name`."""
        self.path = name + self.path
        return self


@cache
def decoder(hint: Any) -> Decoder:
    """What reads a value of type `hint`."""
    if hint is Any:
        return lambda data: data
    origin, args = get_origin(hint), get_args(hint)
    if origin is not None:
        return _generic_decoder(hint, origin, args)
    if dataclasses.is_dataclass(hint):
        return _dataclass_decoder(hint)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _literal_decoder(tuple(item.value for item in hint), hint)
    if hint in (str, int, float, bool):
        return _scalar_decoder(hint)
    raise TypeError(f"codec: no decoder for {hint!r}")


def _generic_decoder(hint: Any, origin: Any, args: tuple[Any, ...]) -> Decoder:
    if origin is Literal:
        return _literal_decoder(args)
    if origin in (Union, types.UnionType):
        return _union_decoder(args)
    if origin is tuple:
        return _tuple_decoder(args)
    if issubclass(origin, Mapping):
        return _mapping_decoder(args[1])
    raise TypeError(f"codec: no decoder for {hint!r}")


def _dataclass_decoder(cls: type) -> Decoder:
    hints = get_type_hints(cls)
    # A text or a whole number is right by its type alone; a float must be finite too.
    plain = {name: hint if hint in (str, int, bool) else None for name, hint in hints.items()}
    decoders = [(item.name, plain[item.name], decoder(hints[item.name])) for item in dataclasses.fields(cls)]
    names = frozenset(name for name, _, _ in decoders)

    def decode(data: Any) -> Any:
        if not isinstance(data, dict):
            raise WrongValue(f"expected an object ({cls.__name__}), got {type(data).__name__}")
        if data.keys() != names:
            raise WrongValue(_about_keys(data.keys(), names, cls.__name__))
        values = {}
        name = ""
        try:
            for name, kind, read in decoders:
                value = data[name]
                values[name] = value if type(value) is kind else read(value)
        except WrongValue as wrong:
            raise wrong.below(f".{name}") from None
        return cls(**values)

    return decode


def _about_keys(got: Any, names: frozenset[str], kind: str) -> str:
    unknown, missing = sorted(set(got) - names), sorted(names - set(got))
    parts = [f"unknown key {unknown}"] * bool(unknown) + [f"missing key {missing}"] * bool(missing)
    return f"{' and '.join(parts)} in {kind}; it has {sorted(names)}"


def _literal_decoder(values: tuple[Any, ...], enum: type[Enum] | None = None) -> Decoder:
    known = {(type(value), value): enum(value) if enum else value for value in values}

    def decode(data: Any) -> Any:
        try:
            return known[type(data), data]
        except (KeyError, TypeError):  # TypeError: a list or an object has no hash
            raise WrongValue(f"{data!r} is none of {', '.join(map(repr, values))}") from None

    return decode


def _union_decoder(args: tuple[Any, ...]) -> Decoder:
    inner = [arg for arg in args if arg is not type(None)]
    if len(inner) != 1 or len(inner) == len(args):
        raise TypeError(f"codec: only Optional unions, got {args!r}")
    read = decoder(inner[0])
    return lambda data: None if data is None else read(data)


def _tuple_decoder(args: tuple[Any, ...]) -> Decoder:
    if len(args) != 2 or args[1] is not Ellipsis:
        raise TypeError(f"codec: only tuple[X, ...], got {args!r}")
    read = decoder(args[0])

    def decode(data: Any) -> Any:
        if not isinstance(data, list):
            raise WrongValue(f"expected a list, got {type(data).__name__}")
        values: list[Any] = []
        try:
            for item in data:
                values.append(read(item))
        except WrongValue as wrong:
            raise wrong.below(f"[{len(values)}]") from None
        return tuple(values)

    return decode


def _mapping_decoder(value_hint: Any) -> Decoder:
    read = decoder(value_hint)

    def decode(data: Any) -> Any:
        if not isinstance(data, dict):
            raise WrongValue(f"expected an object, got {type(data).__name__}")
        values = {}
        key = ""
        try:
            for key, item in data.items():
                values[key] = read(item)
        except WrongValue as wrong:
            raise wrong.below(f".{key}") from None
        return values

    return decode


def _scalar_decoder(kind: type) -> Decoder:
    if kind is float:
        return _float

    def decode(data: Any) -> Any:
        if type(data) is not kind:
            raise WrongValue(f"expected {kind.__name__}, got {type(data).__name__} {data!r}")
        return data

    return decode


def _float(data: Any) -> float:
    if type(data) is int:
        return float(data)
    if type(data) is not float:
        raise WrongValue(f"expected float, got {type(data).__name__} {data!r}")
    if not math.isfinite(data):
        raise WrongValue(f"{data!r} is not finite")
    return data
