"""What differs between two JSON values, place by place. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

#: Another machine's libm may move the last digits of a number; nothing that decides is this close to its bar.
TOLERANCE = 1e-9
#: Below this a log ratio is rounding, whatever it is relative to.
ZERO = 1e-15
ABSENT = object()


def differences(was: Any, now: Any, where: str = "") -> Iterator[tuple[str, str, str]]:
    """(path, value, value) of every difference between two JSON values; lists of other lengths differ as a whole."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted({*was, *now}):
            yield from differences(was.get(key, ABSENT), now.get(key, ABSENT), f"{where}.{key}".lstrip("."))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from differences(old, new, f"{where}[{index}]")
    elif not _alike(was, now):
        yield where or "(all)", _shown(was), _shown(now)


def _alike(was: Any, now: Any) -> bool:
    if isinstance(was, float) and isinstance(now, (int, float)):
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=ZERO)
    return type(was) is type(now) and bool(was == now)


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    found = json.dumps(value, ensure_ascii=False)
    return found if len(found) <= 120 else f"{found[:117]}..."
