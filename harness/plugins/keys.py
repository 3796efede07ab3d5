"""Triton's cache keys: computed before they are asked for, and the same in every process of a side.

A constexpr that holds a function (FlagGems: `@tl.constexpr def accumulator_of(dtype)`) stands in the key of each kernel
that names it as its repr, and that has the function's address: what was compiled ahead is then never found, and every
cell compiles it anew.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from functools import wraps
from types import FunctionType
from typing import Any

from harness.plugins import observed


def settle() -> None:
    """Give such a constexpr a repr without an address: the function's name and line and its file's SHA-256."""
    constexpr = importlib.import_module("triton.language.core").constexpr
    original = constexpr.__repr__

    @wraps(original)
    def lasting(own: Any) -> str:
        found = name_of(own.value) if isinstance(own.value, FunctionType) else ""
        return f"constexpr[{found}]" if found else str(original(own))

    constexpr.__repr__ = lasting


def name_of(function: FunctionType) -> str:
    """What tells `function` from every other; "" where its text alone does not say what it returns, or is not known."""
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return ""
    code = function.__code__
    try:
        digest = observed.file_digest(code.co_filename)
    except OSError:  # made from a string
        return ""
    return f"{function.__module__}.{function.__qualname__}:{code.co_firstlineno} {digest}"


def prepare() -> None:
    """Have Triton digest itself, libtriton's 460 MB included, which its first key would do (0.4 s) under the lease."""
    places = ("triton.runtime.cache", "triton.compiler.compiler")  # from 3.5 on, and before
    found = (getattr(importlib.import_module(place), "triton_key", None) for place in places)
    digest = next((function for function in found if function is not None), None)
    with suppress(Exception):  # why: a vendor's own may want anything; then the first key takes as long as it did
        if digest is not None:
            digest()
