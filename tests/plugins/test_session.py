import json

import pytest

from harness import codec
from harness.plugins import session
from harness.records import Event, Row
from tests.plugins.target import make_cell


@pytest.fixture
def current(tmp_path):
    return session.Session(make_cell(), tmp_path, started_cold=True)


def row(shape: str) -> Row:
    return Row("add", "float16", shape, 0, "", 0.1, "ms", "direct", "flushed", 1, "", {}, ())


def test_a_row_is_on_disk_before_the_next_shape_begins(current):
    current.emit_row(row("[[1]]"))
    assert [found.shape for found in codec.read_lines(Row, current.attempt / "rows.jsonl")] == ["[[1]]"]


def test_repeats_of_a_name_are_numbered_from_zero(current):
    keys = [current.number("add", "float16", shape) for shape in ("[[1]]", "[[2]]", "[[1]]")]
    assert [(key.shape, key.occurrence) for key in keys] == [("[[1]]", 0), ("[[2]]", 0), ("[[1]]", 1)]


def test_candidates_of_one_shape_are_numbered_apart(current):
    keys = [current.number("mm", "float16", "[[1]]", config) for config in ("k(BLOCK=1)", "k(BLOCK=2)", "k(BLOCK=1)")]
    assert [key.occurrence for key in keys] == [0, 0, 1]


def test_an_event_belongs_to_the_row_being_made_unless_it_says_otherwise(current):
    current.row = "add float16 [[1]]"
    current.emit_event("ONE", reason="x")
    current.emit_event("TWO", "")
    assert [event.row for event in codec.read_lines(Event, current.attempt / "events.jsonl")] == [current.row, ""]


def test_a_marker_is_one_line_however_odd_its_values():
    event = Event("CODE", "add float16 [[1]]", {"reason": "two\nlines", "n": "3", "empty": ""})
    line = session.marker_line(event)
    assert line == 'CODE reason="two\\nlines" n=3 empty="" row="add float16 [[1]]"'
    assert json.loads(line.split("reason=")[1].split(" n=")[0]) == "two\nlines"


def test_a_phase_is_not_charged_for_the_phases_inside_it(current, monkeypatch):
    now = iter([0.0, 1.0, 4.0, 10.0])
    monkeypatch.setattr(session.time, "monotonic", lambda: next(now))
    with current.phase("tune"):
        with current.phase("inner"):
            current.charge("compile", 2.0)
    assert current.seconds == {"tune": 7.0, "inner": 1.0, "compile": 2.0}


def test_outside_a_cell_the_missing_variables_are_named(monkeypatch):
    session.current.cache_clear()
    monkeypatch.delenv("CALIBER_CELL", raising=False)
    monkeypatch.setenv("CALIBER_ATTEMPT", "somewhere")
    with pytest.raises(RuntimeError, match="CALIBER_CELL not set.*caliber cell"):
        session.current()


@pytest.mark.parametrize("made, cold", [((), True), (("triton",), True), (("triton", "triton/key"), False)])
def test_the_compile_cache_is_cold_when_absent_or_empty(tmp_path, monkeypatch, made, cold):
    session.current.cache_clear()
    for name in made:
        (tmp_path / name).mkdir()
    codec.write(tmp_path / "cell.json", make_cell())
    monkeypatch.setenv("CALIBER_CELL", str(tmp_path / "cell.json"))
    monkeypatch.setenv("CALIBER_ATTEMPT", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    assert session.current().started_cold is cold
    session.current.cache_clear()


def test_an_error_is_told_by_its_class_and_first_line():
    assert session.first_line(RuntimeError("\nboom\ndetails")) == "RuntimeError: boom"
    assert session.first_line(KeyError()) == "KeyError: "
