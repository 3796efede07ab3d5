"""shapes: what runs is what the plan names, or the cell says so. Both layouts of FlagGems' protocol; no device."""

import dataclasses
import importlib
import json
import math

import pytest

from harness import codec
from harness.plugins import protocol, session, shapes
from harness.plugins.protocol import Reading
from harness.plugins.shapes import ShardRefused, Walk
from harness.records import Event, Row
from tests.plugins.target import REPOSITORY, make_cell

FIXTURES = REPOSITORY / "tests/fixtures"
PER_OP = ("flaggems_per_op", "base", "consts")
PER_FAMILY = ("flaggems_per_family", "performance_utils", "attri_util")


class Corpus:
    """One layout, wrapped as in a cell: its module, and what the cell wrote."""

    def __init__(self, layout, attempt, monkeypatch, level="core", file=True, **cell):
        folder, module, settings = layout
        path = str(FIXTURES / folder / "benchmark/core_shapes.yaml")
        arguments = (f"--shape_file={path}",) if file else ()
        planned = dataclasses.replace(make_cell(level=level, pytest_args=arguments), **cell)
        current = session.Session(planned, attempt, started_cold=True)
        monkeypatch.setattr(session, "current", lambda: current)
        self.attempt = attempt
        self.module = importlib.import_module(f"tests.fixtures.{folder}.benchmark.{module}")
        config = importlib.import_module(f"tests.fixtures.{folder}.benchmark.{settings}").Config
        monkeypatch.setattr(config, "level", level)
        monkeypatch.setattr(config, "shape_file", path)
        protocol.attach()

    def run(self, name, op_name="add", op=None, **changes):
        """Run one benchmark in one data type; every latency is that of `op`, made by a timer."""

        def latency(*sizes):
            value = (op or (lambda *_: 1.0))(*sizes)
            protocol.asking().readings.append(Reading("", None, "direct", "flushed", 1, "", ()))
            return value

        bench = getattr(self.module, name)(op_name, latency, dtypes=changes.pop("dtypes", ("float16",)))
        vars(bench).update(changes)
        bench.run()
        return self

    def lines(self, kind, name):
        path = self.attempt / name
        return list(codec.read_lines(kind, path)) if path.exists() else []

    @property
    def rows(self):
        found = self.lines(Row, "rows.jsonl")
        return [(row.dtype, json.loads(row.shape or "null"), row.occurrence, row.value) for row in found]

    @property
    def sizes(self):
        return [shape for _, shape, _, _ in self.rows]

    def details(self, code):
        return [event.detail for event in self.lines(Event, "events.jsonl") if event.code == code]


@pytest.fixture(params=[PER_OP, PER_FAMILY], ids=["per_op", "per_family"])
def layout(request):
    return request.param


@pytest.fixture
def corpus(layout, tmp_path, monkeypatch):
    return lambda **changes: Corpus(layout, tmp_path, monkeypatch, **changes)


@pytest.mark.parametrize("op_name, first", [("add", [[2, 2]]), ("sub", [[4]])])
def test_the_op_then_the_class_chain_says_which_shapes_and_all_is_as_planned(corpus, op_name, first):
    ran = corpus().run("Benchmark", op_name)
    assert ran.sizes[0] == first
    assert not ran.details("SHAPES_NOT_AS_PLANNED") and not ran.details("SHAPES_UNCHECKED")


def test_blas_rows_of_both_layouts_have_keys_of_their_own(corpus):
    """At comprehensive every size is measured row-major and column-major; the sizes alone collide."""
    ran = corpus(level="comprehensive").run("BlasBenchmark", "mm", op=lambda a, b: 1.0 + a[0])
    assert len(ran.rows) == 6 and not ran.details("SHAPES_NOT_AS_PLANNED")
    keys = [(tuple(map(tuple, shape)), occurrence) for _, shape, occurrence, _ in ran.rows]
    assert len(set(keys)) == 6
    assert [occurrence for _, occurrence in keys] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "name, ran, why",
    [
        ("OwnShapes", "1", "OwnShapes.set_shapes decides"),
        ("Filtered", "2", "Filtered.init_user_config decides"),
        ("OwnInputs", None, "OwnInputs.get_input_iter does not go through its shapes"),
    ],
)
def test_a_class_that_ignores_the_shape_file_is_told(tmp_path, monkeypatch, name, ran, why):
    found = Corpus(PER_OP, tmp_path, monkeypatch).run(name, dtypes=("float16", "float32"))
    (detail,) = found.details("SHAPES_NOT_AS_PLANNED")
    assert (detail["op"], detail["planned"], detail.get("ran"), detail["why"]) == ("add", "3", ran, why)
    assert found.rows  # told, not failed


def test_where_the_providers_own_shapes_are_planned_nothing_is_compared(tmp_path, monkeypatch):
    found = Corpus(PER_OP, tmp_path, monkeypatch, file=False).run("OwnShapes")
    assert not found.details("SHAPES_NOT_AS_PLANNED")


def test_a_plan_that_cannot_be_told_is_said_and_fails_nothing(tmp_path, monkeypatch):
    found = Corpus(PER_OP, tmp_path, monkeypatch, level="comprehensive")

    class Broken(found.module.OwnShapes):
        def set_more_shapes(self):
            raise KeyError("no such size")

    monkeypatch.setattr(found.module, "Broken", Broken, raising=False)
    assert found.run("Broken").sizes == [[[7, 7]]]
    assert "KeyError" in found.details("SHAPES_UNCHECKED")[0]["reason"]


def test_a_shard_takes_its_own_shapes_and_says_of_how_many(corpus):
    taken = corpus(shard=1, shards=2).run("Benchmark", dtypes=("float16", "float32"))
    assert taken.sizes == [[[3, 3]], [[3, 3]]]
    assert taken.details("SHARD_SHAPES") == [{"op": "add", "total": "3", "taken": "1"}]


def test_a_shard_without_a_shape_ends_well_with_no_row(corpus):
    empty = corpus(shard=5, shards=6).run("Benchmark", dtypes=("float16", "float32"))
    assert not empty.rows and empty.details("SHARD_SHAPES")[0]["taken"] == "0"


def test_shapes_that_are_paired_by_position_are_not_sharded(tmp_path, monkeypatch):
    with pytest.raises(pytest.fail.Exception, match="by position"):
        Corpus(PER_OP, tmp_path, monkeypatch, shards=2).run("Zipped")


def out_of_memory_at(*sizes):
    def make(shape, dtype):
        if shape in sizes:
            raise RuntimeError("CUDA out of memory. Tried to allocate 80 GiB")
        return shape

    return make


def test_inputs_that_cannot_be_made_are_a_row_without_a_number_and_the_next_shape_follows(corpus):
    ran = corpus().run("Benchmark", make=out_of_memory_at((3, 3)), dtypes=("float16", "float32"))
    assert ran.rows == [
        (dtype, shape, 0, value)
        for dtype in ("float16", "float32")
        for shape, value in (([[2, 2]], 1.0), ([3, 3], None), ([[64, 5]], 1.0))
    ]
    assert ran.lines(Row, "rows.jsonl")[1].reason.startswith("OOM: RuntimeError: CUDA out of memory")


def test_a_generator_that_goes_twice_through_its_shapes_goes_on_where_it_was(corpus):
    """Restarted on the rest of the list it would measure the first layout again."""
    made = []

    def make(shape, dtype):
        made.append(shape)
        if len(made) == 9:  # the first operand of the second shape, the second time round
            raise RuntimeError("out of memory")
        return shape

    ran = corpus(level="comprehensive").run("BlasBenchmark", "mm", make=make)
    assert [(shape, number) for _, shape, number, value in ran.rows if value is not None] == [
        ([[8, 8], [8, 8]], 0), ([[16, 16], [16, 16]], 0), ([[16, 64], [64, 1]], 0),
        ([[8, 8], [8, 8]], 1), ([[16, 64], [64, 1]], 1),
    ]  # fmt: skip
    assert [shape for _, shape, _, value in ran.rows if value is None] == [[2, 16, 16, 16]]


def test_a_dtype_that_fails_at_every_shape_does_not_take_the_next_along(corpus):
    """Upstream prints a table of each dtype, and fails on one without a row."""

    def make(shape, dtype):
        return out_of_memory_at(*[shape] * (dtype == "float16"))(shape, dtype)

    ran = corpus().run("Benchmark", make=make, dtypes=("float16", "float32"))
    assert [(dtype, value) for dtype, _, _, value in ran.rows] == [("float16", None)] * 3 + [("float32", 1.0)] * 3


@pytest.mark.parametrize("name", ["OwnInputs", "Zipped"])
def test_a_generator_that_cannot_be_taken_up_ends_its_dtype_and_says_so(tmp_path, monkeypatch, name):
    make = out_of_memory_at((2,), (3, 3))
    ran = Corpus(PER_OP, tmp_path, monkeypatch).run(name, make=make, dtypes=("float16", "float32"))
    assert [value for *_, value in ran.rows] == [1.0, None] * 2
    assert [detail["dtype"] for detail in ran.details("DTYPE_ENDED")] == ["float16", "float32"]


def test_a_shape_that_fails_is_a_row_and_the_next_is_measured(corpus):
    def op(size):
        if size == (2, 2):
            raise ValueError("boom\ndetails")
        return 0.5

    ran = corpus().run("Benchmark", op=op)
    assert [value for *_, value in ran.rows] == [None, 0.5, 0.5]
    assert ran.lines(Row, "rows.jsonl")[0].reason == "FAILED: ValueError: boom"


def test_a_generator_is_skipped_on_from_the_place_it_reached():
    walk = Walk([(1,), (2,), (3,)])
    assert walk.current == "" and not walk.skip()
    first = iter(walk)
    next(first), next(first)
    assert walk.current == "[2]" and walk.skip()
    assert [list(walk), list(walk)] == [[(3,)], [(1,), (2,), (3,)]]
    walk.start()
    assert list(walk) == [(1,), (2,), (3,)]


def test_a_shape_has_no_address_of_an_object_in_it():
    class Dtype:
        def __str__(self):
            return "torch.float16"

    assert shapes.shape_text([(2, 3), Dtype(), object(), math.inf > 0, 0.5]) == '[[2,3],"float16","object",true,0.5]'


def test_what_refuses_to_be_sharded_ends_the_cell():
    assert issubclass(ShardRefused, session.EndsCell)
