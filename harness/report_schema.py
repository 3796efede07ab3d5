"""The JSON schema of `report.json`, made from its declarations: `python -m harness.report_schema` prints it.

Types come from the dataclasses, descriptions from their docstrings and from the comments behind their fields, so that
the documentation cannot differ from the code. `schemas/report.schema.json` is its output; a test compares the two.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from harness.report_data import ReportData

HERE = Path(__file__).parent
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12."""
    definitions: dict[str, Any] = {}
    root = _schema(ReportData, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "report.json of a caliber campaign",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def text() -> str:
    """The file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint in SCALARS:
        return {"type": SCALARS[hint]}
    if hint is Any:
        return {}
    if dataclasses.is_dataclass(hint):
        return _reference(hint, definitions)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [item.value for item in hint]}
    return _generic(get_origin(hint), get_args(hint), definitions)


def _generic(origin: Any, args: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [{"type": "null"} if arg is type(None) else _schema(arg, definitions) for arg in args]}
    if origin is tuple:
        return {"type": "array", "items": _schema(args[0], definitions)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(args[1], definitions)}
    raise TypeError(f"report_schema: no schema for {origin!r}")


def _reference(cls: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = cls.__name__
    if name not in definitions:
        definitions[name] = {}  # a class that contains itself finds its place taken
        definitions[name] = _object(cls, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _object(cls: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints, comments = get_type_hints(cls), _comments(cls)
    properties = {
        item.name: _schema(hints[item.name], definitions)
        | ({"description": comments[item.name]} if item.name in comments else {})
        for item in dataclasses.fields(cls)
    }
    return {
        "description": " ".join((inspect.getdoc(cls) or "").split()),
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _comments(cls: Any) -> dict[str, str]:
    """Field -> the comment behind it."""
    lines = (line.strip().partition("  # ") for line in inspect.getsource(cls).splitlines())
    return {field.split(":")[0]: comment for field, found, comment in lines if found and ":" in field}


if __name__ == "__main__":
    sys.stdout.write(text())
