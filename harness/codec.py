"""Strict JSON <-> frozen dataclass, and the two ways a file is written: whole and atomic, or one appended line.

Unknown key, missing key, NaN, wrong type: each is a CodecError that names the path. L0: standard library only.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from harness.records import Refusal

T = TypeVar("T")
Decoder = Callable[[Any, str], Any]


class CodecError(Refusal):
    """A value that is not what its type says; the message names file and path."""


def to_json(value: Any) -> Any:
    """Dataclass, enum, mapping, tuple or scalar -> plain JSON value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CodecError(f"{type(value).__name__} has no JSON form: {value!r}")


def dumps(value: Any, indent: int | None = None) -> str:
    """JSON text with full float precision; NaN and infinity are refused."""
    try:
        return json.dumps(to_json(value), indent=indent, allow_nan=False, ensure_ascii=False)
    except ValueError as error:
        raise CodecError(f"not JSON: {error}") from None


def loads(cls: type[T], text: str, where: str) -> T:
    """JSON text -> `cls`; `where` (file, or file:line) heads every error."""
    try:
        data = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except ValueError as error:
        raise CodecError(f"{where}: {error}") from None
    return from_json(cls, data, where)


def from_json(cls: type[T], data: Any, where: str) -> T:
    """Plain JSON value -> `cls`, strictly."""
    return _decoder(cls)(data, where)  # type: ignore[no-any-return,arg-type]  # a class is hashable


def read(cls: type[T], path: Path) -> T:
    """The dataclass stored in the file `path`."""
    return loads(cls, read_text(path), str(path))


def read_text(path: Path) -> str:
    """UTF-8 text of `path`; a UTF-16 or broken file is an error that names it, not an empty report."""
    data = path.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise CodecError(f"{path}: is UTF-16; convert it to UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CodecError(f"{path}: not UTF-8 at byte {error.start}") from None


def write(path: Path, value: Any) -> None:
    """Write `value` as indented JSON: complete or not at all."""
    write_text(path, dumps(value, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write `text` to a temporary file beside `path`, fsync, rename over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def append_line(path: Path, value: Any) -> None:
    """Append one JSON line in a single O_APPEND write, so that a crash tears at most the last line."""
    line = (dumps(value) + "\n").encode()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        written = os.write(handle, line)
    finally:
        os.close(handle)
    if written != len(line):
        raise OSError(f"{path}: wrote {written} of {len(line)} bytes; is the disk full?")


def read_lines(cls: type[T], path: Path) -> Iterator[T]:
    """The dataclasses of a JSONL file. A torn last line is forgiven; any other bad line is an error."""
    lines = read_text(path).split("\n")
    last_is_torn = lines[-1] != ""
    for number, line in enumerate(lines, 1):
        if number == len(lines) and last_is_torn:
            return
        if line:
            yield loads(cls, line, f"{path}:{number}")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number caliber accepts")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(n for n in names if names.count(n) > 1)!r}")
    return found


@cache
def _decoder(hint: Any) -> Decoder:
    if hint is Any:
        return lambda data, where: data
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
    decoders = {item.name: _decoder(hints[item.name]) for item in dataclasses.fields(cls)}
    names = frozenset(decoders)

    def decode(data: Any, where: str) -> Any:
        if not isinstance(data, dict):
            raise CodecError(f"{where}: expected an object ({cls.__name__}), got {type(data).__name__}")
        if data.keys() != names:
            _report_keys(data.keys(), names, where, cls.__name__)
        return cls(**{name: decoder(data[name], f"{where}.{name}") for name, decoder in decoders.items()})

    return decode


def _report_keys(got: Any, names: frozenset[str], where: str, kind: str) -> None:
    unknown, missing = sorted(set(got) - names), sorted(names - set(got))
    parts = [f"unknown key {unknown}"] * bool(unknown) + [f"missing key {missing}"] * bool(missing)
    raise CodecError(f"{where}: {' and '.join(parts)} in {kind}; it has {sorted(names)}")


def _literal_decoder(values: tuple[Any, ...], enum: type[Enum] | None = None) -> Decoder:
    def decode(data: Any, where: str) -> Any:
        for value in values:
            if type(data) is type(value) and data == value:
                return enum(data) if enum else data
        raise CodecError(f"{where}: {data!r} is none of {', '.join(map(repr, values))}")

    return decode


def _union_decoder(args: tuple[Any, ...]) -> Decoder:
    inner = [arg for arg in args if arg is not type(None)]
    if len(inner) != 1 or len(inner) == len(args):
        raise TypeError(f"codec: only Optional unions, got {args!r}")
    decoder = _decoder(inner[0])
    return lambda data, where: None if data is None else decoder(data, where)


def _tuple_decoder(args: tuple[Any, ...]) -> Decoder:
    if len(args) != 2 or args[1] is not Ellipsis:
        raise TypeError(f"codec: only tuple[X, ...], got {args!r}")
    decoder = _decoder(args[0])

    def decode(data: Any, where: str) -> Any:
        if not isinstance(data, list):
            raise CodecError(f"{where}: expected a list, got {type(data).__name__}")
        return tuple(decoder(item, f"{where}[{index}]") for index, item in enumerate(data))

    return decode


def _mapping_decoder(value_hint: Any) -> Decoder:
    decoder = _decoder(value_hint)

    def decode(data: Any, where: str) -> Any:
        if not isinstance(data, dict):
            raise CodecError(f"{where}: expected an object, got {type(data).__name__}")
        return {key: decoder(item, f"{where}.{key}") for key, item in data.items()}

    return decode


def _scalar_decoder(kind: type) -> Decoder:
    def decode(data: Any, where: str) -> Any:
        if kind is float and type(data) is int:
            return float(data)
        if type(data) is not kind:
            raise CodecError(f"{where}: expected {kind.__name__}, got {type(data).__name__} {data!r}")
        if isinstance(data, float) and not math.isfinite(data):
            raise CodecError(f"{where}: {data!r} is not finite")
        return data

    return decode
