"""Once per side, in round 1: does the operator, with the configurations it is measured with, compute what torch does?

A restored configuration may compute something else (vLLM #17619), and a wrong kernel may be a fast one. The benchmark
protocol asks for the reference's latency first, with the same arguments; instead of timing it, its result is kept. The
operator's own is taken once its row is timed, and both are compared when the benchmark asks for its next input: no
provider has its own operators in the place of torch's there. It must not know how anything is timed.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.plugins import closeness, session
from harness.plugins.autotune import unwatched
from harness.plugins.closeness import Incomparable

#: Larger results are not kept: beside its inputs a row may fill the device.
MAX_ELEMENTS = 1 << 28

_tally: Counter[str] = Counter(agree=0, differ=0, unchecked=0)
_why: Counter[str] = Counter()


def applies() -> bool:
    """True in the one cell per side that checks, on a device that computes."""
    cell = session.current().cell
    return cell.round == 1 and cell.autotune in ("replay", "first") and cell.instrument.timer != "compile"


def conclude() -> None:
    """The cell's account: rows that agree, differ and were not checked, and why not."""
    if applies():
        why = ", ".join(f"{reason} ({count})" for reason, count in _why.most_common())
        counts = {name: str(count) for name, count in _tally.items()}
        session.current().emit_event("RESULT_CHECKED", "", **counts, **({"why": why} if why else {}))


class Taken:
    """A call whose result is wanted: the timer hands over the function that it times."""

    def __init__(self, reference: bool) -> None:
        self.reference = reference  # called and not timed
        self.value: Any = None
        self.why = "its benchmark did not call do_bench" if reference else "its row failed"  # "" once there is a value

    def take(self, call: Callable[[], Any]) -> float:
        """Call once and keep the result; the answer to who asked for a latency is none."""
        self.value, self.why = call(), ""
        return math.nan

    def keep(self, call: Callable[[], Any]) -> None:
        """The same for a row that is timed already: it stands, whatever becomes of one call more."""
        try:
            with session.current().phase("check"):
                self.take(call)
        except Exception as error:  # why: the reason is told, and the device is looked at by the next row
            self.why = session.first_line(error)


@dataclass
class Input:
    """One input of a benchmark: its reference, the result to be held against that, or why there is none to hold."""

    why: str = ""
    due: bool = False  # the next latency asked for is the reference's
    reference: tuple[Any, ...] | None = None
    longest: int = 1  # no sum over the arguments is longer
    row: str = ""
    result: Taken | None = None


class Checks:
    """The rows of one benchmark, each checked before the next one's input is made."""

    def __init__(self, benchmark: Any, cls: Any) -> None:
        self._benchmark, self._cls = benchmark, cls
        self._never = ""  # why no row of the benchmark can be compared
        self._asks = False  # the benchmark was told to ask for the reference
        self._input = Input()

    def metrics(self) -> list[str]:
        """What the benchmark is to ask for: the operator's latency, and the reference's first where it is compared."""
        self._never = self._excluded() if applies() else ""
        self._asks = applies() and not self._never
        return ["latency_base", "latency"] if self._asks else ["latency"]

    def between(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """The inputs, one by one; before the next is made, the last one's results are compared and let go."""
        for item in inputs:
            self._input = Input(why=self._never, due=self._asks)
            yield item
            self._settle()
            self._input = Input()  # nothing of the last one is held

    def is_reference(self) -> bool:
        """True for the first latency asked for of an input, where the reference's comes first."""
        due, self._input.due = self._input.due, False
        return due

    def reference(self, ask: Callable[[Taken], None], arguments: Sequence[Any]) -> None:
        """Take the reference, by `ask`, twice: what differs from itself (random numbers) is no reference."""
        versions = _versions(arguments)
        try:
            with session.current().phase("check"), unwatched():
                first = _kept(ask)
                if _versions(arguments) != versions:
                    raise Incomparable("it writes its arguments")
                self._input.longest = max((size for tensor in _found(arguments) for size in tensor.shape), default=1)
                if closeness.compare(_kept(ask), first, self._input.longest).wrong:
                    raise Incomparable("two calls of the reference differ")
                self._input.reference = first
        except Incomparable as error:
            self._input.why = str(error)
        except Exception as error:  # why: a reference that fails is no failure of the row, which says what it lacked
            self._input.why = f"the reference failed: {session.first_line(error)}"

    def own(self, row: str) -> Taken | None:
        """Where the timer is to leave the operator's own result for `row`; None where nothing waits for it."""
        self._input.row = row
        self._input.result = Taken(reference=False) if self._input.reference is not None else None
        return self._input.result

    def _settle(self) -> None:
        if not applies() or not self._input.row:
            return
        try:
            with session.current().phase("check"):
                found = self._held_against()
        except Incomparable as error:
            return _unchecked(str(error))
        except Exception as error:  # why: neither agreement nor difference is claimed, and the reason is told
            return _unchecked(session.first_line(error))
        _tally["differ" if found.wrong else "agree"] += 1
        if found.wrong:
            detail = {"wrong": f"{found.wrong} of {found.elements}", "max_abs": f"{found.max_abs:.3g}"}
            session.current().emit_event("RESULT_DIFFERS", self._input.row, **detail, max_rel=f"{found.max_rel:.3g}")

    def _held_against(self) -> closeness.Closeness:
        reference, result = self._input.reference, self._input.result
        if reference is None or result is None:
            raise Incomparable(self._input.why or "its benchmark did not ask for the reference")
        if result.why:
            raise Incomparable(result.why)
        return closeness.compare(closeness.tensors(result.value), reference, self._input.longest)

    def _excluded(self) -> str:
        runs = next((cls.__name__ for cls in self._cls.__mro__ if "run" in vars(cls)), "")
        if runs != "Benchmark":
            return "its benchmark has a run of its own"
        in_place = getattr(self._benchmark, "is_inplace", False) or str(self._benchmark.op_name).endswith("_")
        return "it works in place" if in_place else ""


def _kept(ask: Callable[[Taken], None]) -> tuple[Any, ...]:
    """Copies of what one call of the reference returns: it may be a buffer that the operator writes into as well."""
    taken = Taken(reference=True)
    ask(taken)
    if taken.why:
        raise Incomparable(taken.why)
    result = closeness.tensors(taken.value)
    if sum(tensor.numel() for tensor in result) > MAX_ELEMENTS:
        raise Incomparable(f"the result has more than {MAX_ELEMENTS} elements")
    if any(tensor.is_meta for tensor in result):
        raise Incomparable("meta tensors have no values")
    return tuple(tensor.detach().clone() for tensor in result)


def _unchecked(why: str) -> None:
    _tally["unchecked"] += 1
    _why[why] += 1


def _found(value: Any) -> list[Any]:
    """Every tensor in arguments, however nested."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _found(item)]
    return [value] if isinstance(value, importlib.import_module("torch").Tensor) else []


def _versions(arguments: Sequence[Any]) -> list[int]:
    """How often each argument was written to, as torch counts it."""
    return [0 if tensor.is_inference() else tensor._version for tensor in _found(arguments)]
