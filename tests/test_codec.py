"""codec: strict both ways, atomic files, one appended line."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import pytest

from harness import codec
from harness.records import Event, Row, Status

ROW = Row("add", "float16", "[[4]]", 0, "", 0.1234567890123456789, "ms", "direct", "flushed", 1, "", {"a": 3}, ("v",))


@dataclass(frozen=True)
class Inner:
    x: float
    y: Optional[int]


@dataclass(frozen=True)
class Outer:
    items: tuple[Inner, ...]


def test_a_row_survives_writing_and_reading_with_full_precision():
    assert codec.loads(Row, codec.dumps(ROW), "here") == ROW


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"items": [{"x": 1.0, "y": 2, "z": 3}]}', r"f.items\[0\]: unknown key \['z'\] in Inner"),
        ('{"items": [{"x": 1.0}]}', r"f.items\[0\]: missing key \['y'\] in Inner"),
        ('{"items": [{"x": NaN, "y": 2}]}', "f: NaN is not a number"),
        ('{"items": [{"x": 1e999, "y": 2}]}', r"f.items\[0\].x: inf is not finite"),
        ('{"items": [{"x": "1", "y": 2}]}', r"f.items\[0\].x: expected float, got str '1'"),
        ('{"items": [{"x": 1, "y": true}]}', r"f.items\[0\].y: expected int, got bool True"),
        ('{"items": {}}', "f.items: expected a list, got dict"),
        ('{"items": [], "items": []}', "f: duplicate key 'items'"),
        ('{"items": [', "f: "),
    ],
)
def test_what_is_not_its_type_is_an_error_that_names_the_path(text, message):
    with pytest.raises(codec.CodecError, match=message):
        codec.loads(Outer, text, "f")


def test_null_is_read_only_where_the_type_allows_it():
    assert codec.loads(Outer, '{"items": [{"x": 2, "y": null}]}', "f").items[0] == Inner(2.0, None)
    with pytest.raises(codec.CodecError, match="x: expected float, got NoneType"):
        codec.loads(Outer, '{"items": [{"x": null, "y": null}]}', "f")


def test_nan_is_not_written():
    with pytest.raises(codec.CodecError, match="not JSON"):
        codec.dumps(Inner(float("nan"), None))


def test_a_torn_last_line_is_forgiven(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    codec.append_line(path, ROW)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write('{"op": "add", "dty')
    assert list(codec.read_lines(Row, path)) == [ROW]


def test_a_torn_line_elsewhere_is_an_error_with_its_number(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"code": "A", "row"\n{"code": "B", "row": "", "detail": {}}\n', encoding="utf-8")
    with pytest.raises(codec.CodecError, match=r"events.jsonl:1: "):
        list(codec.read_lines(Event, path))


def test_utf16_is_named_and_not_an_empty_report(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text("{}", encoding="utf-16")
    with pytest.raises(codec.CodecError, match="is UTF-16; convert it to UTF-8"):
        codec.read(Inner, path)


def test_a_failed_write_leaves_the_old_file_and_no_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "status.json"
    codec.write(path, Inner(1.0, 1))

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        codec.write(path, Inner(2.0, 2))
    assert codec.read(Inner, path) == Inner(1.0, 1)
    assert [item.name for item in tmp_path.iterdir()] == ["status.json"]


def test_an_enum_is_read_by_its_value_and_an_unknown_one_lists_the_known():
    text = codec.dumps(
        Status("c", "add", 1, "A", "measured", 0, "", 1.0, 1, 0, None, {}, 1, 1, "", "", "", {}, {})  # type: ignore[arg-type]
    )
    assert codec.loads(Status, text, "s").outcome.terminal
    with pytest.raises(codec.CodecError, match="s.outcome: 'fine' is none of 'measured', 'recorded'"):
        codec.loads(Status, text.replace("measured", "fine"), "s")
