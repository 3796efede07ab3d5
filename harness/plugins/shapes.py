"""Which shapes a benchmark runs: those the plan names, or the cell says so; and where to go on after one that failed.

FlagGems resolves shapes along the class chain of a benchmark (op name, class names, DEFAULT_SHAPES; set_more_shapes at
level comprehensive), but many of its classes do it their own way and ignore the shape file. It must not know rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from harness.plugins import session
from harness.records import Cell

SHAPE_FILE = "--shape_file="


class ShardRefused(session.EndsCell):
    """The shapes of this benchmark cannot be spread over several processes."""


class Walk(list[Any]):
    """The shapes of a benchmark, and how far they have been iterated.

    An input generator that fails is at its end; one made anew goes on behind the shape that failed. It may iterate
    its shapes several times (BLAS at level comprehensive does, for both layouts), so a place is (iteration, index).
    """

    def __init__(self, shapes: Sequence[Any]) -> None:
        super().__init__(shapes)
        self.told = False  # that no input was made from them
        self.start()

    def start(self) -> None:
        """A new data type: from the first shape."""
        self.iterations = 0
        self.at: tuple[int, int] | None = None
        self._first = (1, 0)

    def __iter__(self) -> Iterator[Any]:
        self.iterations += 1
        mine, (iteration, index) = self.iterations, self._first
        first = len(self) if mine < iteration else index if mine == iteration else 0
        for place in range(first, len(self)):
            self.at = (mine, place)
            yield self[place]

    def skip(self) -> bool:
        """Let the next iteration begin behind the current shape. False when no shape was reached since the last."""
        if self.at is None:
            return False
        self._first, self.at, self.iterations = (self.at[0], self.at[1] + 1), None, 0
        return True

    @property
    def current(self) -> str:
        """The shape that the iteration has reached, as text; "" before the first."""
        return shape_text(self[self.at[1]]) if self.at else ""


def prepare() -> None:
    """Read the planned shape file, before there is a device to keep waiting (FlagGems' takes 0.15 s)."""
    path = shape_file(session.current().cell)
    with suppress(Exception):  # why: every benchmark reads it again and tells what is wrong with it
        if path:
            _table(path)


def settle(benchmark: Any) -> Walk | None:
    """Make the benchmark's shapes a Walk, once its own set-up has resolved them; None where they are no list.

    They are compared with the plan, and cut to this process's shard. Raises ShardRefused.
    """
    found = getattr(benchmark, "shapes", None)
    if isinstance(found, Walk):
        return found
    if not isinstance(found, (list, tuple)):
        return None
    cell = session.current().cell
    _compare(benchmark, found, cell)
    walk = Walk(_own_shard(benchmark, found, cell))
    benchmark.shapes = walk
    return walk


def ended(benchmark: Any, walk: Walk | None) -> None:
    """After the inputs of one data type: say so when they were not made from the benchmark's shapes at all."""
    if walk is None or walk.iterations or walk.told or not shape_file(session.current().cell):
        return
    walk.told = True
    why = f"{type(benchmark).__name__}.get_input_iter does not go through its shapes"
    session.current().emit_event("SHAPES_NOT_AS_PLANNED", "", op=benchmark.op_name, planned=str(len(walk)), why=why)


def by_position(benchmark: Any) -> bool:
    """True where shapes are paired with another list by position, so that none can be left out of them."""
    makers = (getattr(vars(cls).get("get_input_iter"), "__code__", None) for cls in type(benchmark).__mro__)
    return any("zip" in code.co_names for code in makers if code is not None)


def shape_file(cell: Cell) -> str:
    """The shape file that the plan names; "" where the provider's own shapes are planned."""
    found = (word.removeprefix(SHAPE_FILE) for word in cell.pytest_args if word.startswith(SHAPE_FILE))
    return next(found, "")


def planned(benchmark: Any, table: Mapping[str, Any], level: str) -> list[str]:
    """What the shape file says for a benchmark, as texts, each once: upstream's own rule without any exception."""
    names = [benchmark.op_name, *(cls.__name__ for cls in type(benchmark).__mro__)]
    entry: Mapping[str, Any] = next((table[name] for name in names if name in table), {})
    shapes = entry.get("shapes", getattr(benchmark, "DEFAULT_SHAPES", ()))
    more = benchmark.set_more_shapes() if level == "comprehensive" and hasattr(benchmark, "set_more_shapes") else ()
    return list(dict.fromkeys(map(shape_text, [*shapes, *(more or ())])))


def _compare(benchmark: Any, found: Sequence[Any], cell: Cell) -> None:
    path = shape_file(cell)
    if not path:
        return
    try:
        wanted = planned(benchmark, _table(path), cell.measure.level)
    except Exception as error:  # why: the provider's code; a plan that cannot be told is said, and fails no cell
        reason = session.first_line(error)
        session.current().emit_event("SHAPES_UNCHECKED", "", op=benchmark.op_name, reason=reason)
        return
    ran = dict.fromkeys(map(shape_text, found))
    if set(wanted) != set(ran):
        detail = {"planned": str(len(wanted)), "ran": str(len(ran)), "common": str(len(set(wanted) & set(ran)))}
        why = _decider(benchmark)
        session.current().emit_event("SHAPES_NOT_AS_PLANNED", "", op=benchmark.op_name, **detail, why=why)


def _decider(benchmark: Any) -> str:
    for name in ("set_shapes", "init_user_config"):
        owner = next((cls for cls in type(benchmark).__mro__ if name in vars(cls)), None)
        if owner is not None and owner.__name__ != "Benchmark":
            return f"{owner.__name__}.{name} decides"
    return "the benchmark chose others"


def _own_shard(benchmark: Any, shapes: Sequence[Any], cell: Cell) -> Sequence[Any]:
    if cell.shards < 2:
        return shapes
    if by_position(benchmark):
        raise ShardRefused(f"{type(benchmark).__name__} pairs its shapes with another list by position")
    own = shapes[cell.shard :: cell.shards]
    detail = {"total": str(len(shapes)), "taken": str(len(own))}
    session.current().emit_event("SHARD_SHAPES", "", op=benchmark.op_name, **detail)
    return own


@cache
def _table(path: str) -> Mapping[str, Any]:
    text = Path(path).read_text(encoding="utf-8")
    if path.endswith(".json"):
        return json.loads(text)  # type: ignore[no-any-return]
    if "yaml" not in sys.modules:  # a target has no yaml of ours; a provider that reads such a file has loaded its own
        raise ValueError(f"{path}: this process has loaded no yaml")
    return sys.modules["yaml"].safe_load(text)  # type: ignore[no-any-return]


def shape_text(detail: Any) -> str:
    """A shape, or record_shapes' detail, as compact JSON: sizes and tuples as lists, dtypes as bare names."""
    return json.dumps(_shape(detail), separators=(",", ":"), ensure_ascii=False)


def scalar(value: Any) -> Any:
    """A JSON value for anything that is no container: dtypes as bare names, other objects by their class."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    text = str(value)  # an object's address in a key would never pair
    return type(value).__name__ if " at 0x" in text else text.removeprefix("torch.")


def _shape(detail: Any) -> Any:
    if isinstance(detail, Mapping):
        return {str(key): _shape(value) for key, value in detail.items()}
    if isinstance(detail, (tuple, list)):
        return [_shape(item) for item in detail]
    return scalar(detail)
