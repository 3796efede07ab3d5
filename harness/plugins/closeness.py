"""How close an operator's result is to the reference's, within what its data type and its sums allow. Numbers only.

All torch calls go through the tensors themselves: this runs outside any provider's operators, and on the device.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

#: Relative error that two correct results may show: FlagGems' own RESOLUTION, which is torch.testing's defaults.
RELATIVE = {
    "float64": 1e-7, "float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2,
    "complex128": 1e-7, "complex64": 1.3e-6, "complex32": 1e-3,
}  # fmt: skip
#: Of the 8-bit floating types, whose spacing is up to an eighth.
COARSE = 0.125
#: Absolute error, in mean magnitudes of the reference and per square root of the length of a sum: two orders of
#: summation, or TF32 products (10 bits), differ so much where terms cancel.
ABSOLUTE, ABSOLUTE_64 = 2e-4, 1e-7
LONGEST = 4096
#: Elements compared at a time, so that the temporaries stay small beside the tensors.
CHUNK = 1 << 24


class Incomparable(Exception):
    """Why two results are not compared."""


@dataclass(frozen=True)
class Closeness:
    """`wrong` of `elements` lie outside the tolerance; the greatest errors of those (inf for NaN against a number)."""

    elements: int
    wrong: int
    max_abs: float
    max_rel: float


def tensors(value: Any) -> tuple[Any, ...]:
    """The tensors of a result, a tuple or list of results taken apart. Raises Incomparable for anything else in it."""
    if isinstance(value, (tuple, list)) and value:
        return tuple(tensor for item in value for tensor in tensors(item))
    if not isinstance(value, importlib.import_module("torch").Tensor):
        raise Incomparable(f"the result holds {type(value).__name__}, no tensor")
    return (value,)


def compare(found: Sequence[Any], wanted: Sequence[Any], longest: int) -> Closeness:
    """`found` against `wanted`, tensor by tensor. Shapes that differ are wrong in every element.

    `longest` is the greatest length of a sum. Indices that come with values (sort, topk) are not compared, for equal
    values may stand in any order.
    """
    if len(found) != len(wanted):
        raise Incomparable(f"{len(found)} tensors for {len(wanted)} of the reference")
    parts = [_compared(*pair, longest) for pair in zip(found, wanted, strict=True) if not _indices(pair[1], wanted)]
    return Closeness(
        sum(part.elements for part in parts),
        sum(part.wrong for part in parts),
        max((part.max_abs for part in parts), default=0.0),
        max((part.max_rel for part in parts), default=0.0),
    )


def _indices(tensor: Any, wanted: Sequence[Any]) -> bool:
    return not _inexact(tensor) and any(_inexact(other) and other.shape == tensor.shape for other in wanted)


def _inexact(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _compared(found: Any, wanted: Any, longest: int) -> Closeness:
    if found.shape != wanted.shape:
        return Closeness(wanted.numel(), max(wanted.numel(), 1), math.inf, math.inf)
    relative = RELATIVE.get(str(wanted.dtype).removeprefix("torch."), COARSE) if _inexact(wanted) else 0.0
    absolute = _scale(wanted) * math.sqrt(min(longest, LONGEST)) if _inexact(wanted) else 0.0
    wrong, max_abs, max_rel = 0, 0.0, 0.0
    for mine, theirs in _chunks(found, wanted):
        error, bad = _errors(mine, theirs, relative, absolute)
        count = int(bad.sum())
        if count:
            wrong += count
            max_abs = max(max_abs, float(error[bad].max()))
            max_rel = max(max_rel, float((error[bad] / _worked(theirs[bad]).abs()).max()))
    return Closeness(wanted.numel(), wrong, max_abs, max_rel)


def _errors(mine: Any, theirs: Any, relative: float, absolute: float) -> tuple[Any, Any]:
    """The absolute errors, and which of them are too great. Equal infinities and two NaN are no error."""
    if not _inexact(theirs):
        return (_worked(mine) - _worked(theirs)).abs(), mine != theirs
    mine, theirs = _worked(mine), _worked(theirs)
    error = (mine - theirs).abs().nan_to_num(nan=math.inf, posinf=math.inf)
    close = theirs.isfinite() & (error <= relative * theirs.abs() + absolute)
    return error, ~((mine == theirs) | (mine.isnan() & theirs.isnan()) | close)


def _chunks(*of: Any) -> Iterator[tuple[Any, ...]]:
    flat = [tensor.reshape(-1) for tensor in of]
    for start in range(0, flat[0].numel(), CHUNK):
        yield tuple(tensor[start : start + CHUNK] for tensor in flat)


def _worked(tensor: Any) -> Any:
    """In a type that holds its errors too: 16 bits and less are too coarse, and integers wrap."""
    torch = importlib.import_module("torch")
    if tensor.is_complex():
        return tensor.to(torch.complex128 if tensor.element_size() > 8 else torch.complex64)
    if tensor.is_floating_point():
        return tensor if tensor.element_size() >= 4 else tensor.float()
    return tensor.double()


def _scale(wanted: Any) -> float:
    """The tolerated absolute error of a sum of one term: a share of the mean magnitude of the finite elements."""
    total, count = 0.0, 0
    for (chunk,) in _chunks(wanted):
        part = _worked(chunk)
        magnitudes = part[part.isfinite()].abs()
        total, count = total + float(magnitudes.sum()), count + magnitudes.numel()
    mean = total / count if count else 0.0
    wide = str(wanted.dtype) in ("torch.float64", "torch.complex128")
    return (ABSOLUTE_64 if wide else ABSOLUTE) * mean if math.isfinite(mean) else 0.0
