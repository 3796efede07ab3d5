"""Strict JSON <-> frozen dataclass, and the two ways a file is written: whole and atomic, or one appended line.

Unknown key, missing key, NaN, wrong type: each is a CodecError that names the path. L0: standard library only.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from harness.decoding import WrongValue, decoder
from harness.records import Refusal

T = TypeVar("T")
_SCALARS = (str, float, int, bool)


class CodecError(Refusal):
    """A value that is not what its type says; the message names file and path."""


def to_json(value: Any) -> Any:
    """Dataclass, enum, mapping, tuple or scalar -> plain JSON value."""
    if value is None or type(value) in _SCALARS:
        return value
    names = _field_names(type(value))  # type: ignore[arg-type]  # a class is hashable
    if names is not None:
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, _SCALARS):
        return value
    raise CodecError(f"{type(value).__name__} has no JSON form: {value!r}")


def dumps(value: Any, indent: int | None = None) -> str:
    """JSON text with full float precision; NaN and infinity are refused."""
    try:
        plain = to_json(value)
        return _COMPACT.encode(plain) if indent is None else _indented(plain, "\n", " " * indent)
    except ValueError as error:
        raise CodecError(f"not JSON: {error}") from None


def loads(cls: type[T], text: str, where: str) -> T:
    """JSON text -> `cls`; `where` (file, or file:line) heads every error."""
    try:
        data = _STRICT.decode(text)
    except ValueError as error:
        raise CodecError(f"{where}: {error}") from None
    return from_json(cls, data, where)


def from_json(cls: type[T], data: Any, where: str) -> T:
    """Plain JSON value -> `cls`, strictly."""
    try:
        return decoder(cls)(data)  # type: ignore[no-any-return,arg-type]  # a class is hashable
    except WrongValue as wrong:
        raise CodecError(f"{where}{wrong.path}: {wrong.message}") from None


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


@cache
def _field_names(cls: type) -> tuple[str, ...] | None:
    return tuple(item.name for item in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else None


def _indented(value: Any, at: str, step: str) -> str:
    """What json.dumps(indent=...) gives; its pure-Python encoder took as long as judging 20 000 cells."""
    if type(value) is str:
        return _quoted(value)
    if isinstance(value, dict) and value:
        inner = at + step
        pairs = [f"{_quoted(key)}: {_indented(item, inner, step)}" for key, item in value.items()]
        return f"{{{inner}{(',' + inner).join(pairs)}{at}}}"
    if isinstance(value, list) and value:
        inner = at + step
        return f"[{inner}{(',' + inner).join([_indented(item, inner, step) for item in value])}{at}]"
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value)  # of a float its shortest exact form, as the encoder writes it
    return _COMPACT.encode(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number caliber accepts")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(n for n in names if names.count(n) > 1)!r}")
    return found


_quoted = json.encoder.encode_basestring
_COMPACT = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
