"""What a compiled kernel is, exactly: a hash per compiler stage, the hash of its code, and the counts read from both.

Owns the reading of one variant's files as Triton leaves them in its cache, and the identity of a specialization. It
must not know sides, cells, caches or devices. L0: standard library only, Python 3.10, loaded in the target.

Locations are no code. Of a text stage everything is stripped that says where the source lies (paths, lines, debug
metadata, comments), so that another checkout hashes alike. Not undone: the names of MLIR values, which come from source
names and vanish with TRITON_DISABLE_LINE_INFO, and what an enabled device_assert passes as a value (its line; on AMD
its path too).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import elf, locations

#: Triton's stages, in compile order. A vendor's own stage stays behind the one it follows in the file group.
ORDER = {"ttir": 0, "ttgir": 1, "llir": 2, "ptx": 3, "amdgcn": 3, "cubin": 4, "hsaco": 4}
#: Not stages: the options, and the front end's text from before the first pass.
NO_STAGE = ("json", "source")
#: Heads the hash of a binary whose code sections caliber cannot find: the hash of the whole file.
OPAQUE = "file:"
#: The options of a variant's identity, those that a launch or a tuner chooses, and the value at which each goes without
#: saying (a build may lack it). Never one that a switch or a build changes (enable_fp_fusion, debug, arch, extern_libs,
#: default_dot_input_precision, ...), never the cache hash: with those, no variant of side A has a partner on side B.
IDENTITY_OPTIONS: Mapping[str, Any] = {
    "num_warps": None,
    "num_stages": None,
    "num_ctas": 1,
    "maxnreg": None,
    "waves_per_eu": 0,
    "matrix_instr_nonkdim": 0,
    "kpack": 1,
    "cluster_dims": (1, 1, 1),
    "launch_pdl": False,
    "launch_cooperative_grid": False,
}


@dataclass(frozen=True)
class Described:
    """`stages`: stage -> SHA-256 of its text or code, in compile order. `code`: that of the binary, "" when unknown.

    `metrics` are exact counts: convert_layout.<stage> (operations), shared_bytes (per block), code_bytes (padding
    included), instructions (as assembled; on NVIDIA without NOPs, which are padding), registers and spill_bytes (per
    thread; see elf.cuda_metrics), on AMD also sgprs and sgpr_spills (scalar registers, per wave). One that cannot be
    known is absent, never 0.
    """

    stages: Mapping[str, str]
    code: str
    metrics: Mapping[str, int]


def describe(files: Mapping[str, str]) -> Described:
    """Read one variant's files: Triton's metadata_group, file name -> path. OSError and ValueError name the file."""
    stages: dict[str, str] = {}
    metrics: dict[str, int] = {}
    code = ""
    for stage, path in _in_compile_order(files):
        data = Path(path).read_bytes()
        if b"\0" in data:
            image = elf.parse(data, path)
            code = elf.code_hash(image) if image else ""
            stages[stage] = code or OPAQUE + hashlib.sha256(data).hexdigest()
            metrics.update(_binary_metrics(image) if image and code else {})
        else:
            text = locations.strip(stage, data.decode("utf-8", "surrogateescape"))
            stages[stage] = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
            metrics.update(_text_metrics(stage, text))
    return Described(stages, code, {**metrics, **_declared_metrics(files)})


def variant_id(
    kernel: str,
    signature: Mapping[Any, Any],
    constants: Mapping[Any, Any],
    attrs: Any,
    options: Mapping[str, Any],
) -> tuple[str, str, str]:
    """(id, signature text, options text) of a specialization; the id is 16 hex digits over kernel and both texts.

    `signature`, `constants` and `attrs` are those of Triton's ASTSource: name -> type, path -> value, path -> pairs.
    `options` may be the whole metadata: only IDENTITY_OPTIONS count.
    """
    signed = _signature(signature, constants, attrs)
    chosen = " ".join(f"{name}={_value(options[name])}" for name in IDENTITY_OPTIONS if _matters(name, options))
    digest = hashlib.sha256("\n".join((kernel, signed, chosen)).encode("utf-8", "surrogateescape")).hexdigest()
    return digest[:16], signed, chosen


def _in_compile_order(files: Mapping[str, str]) -> list[tuple[str, str]]:
    rank, ranked = -1, []
    for name, path in files.items():
        stage = name.rpartition(".")[2]
        rank = ORDER.get(stage, rank)
        if stage not in NO_STAGE:
            ranked.append((rank, stage, str(path)))
    return [(stage, path) for _, stage, path in sorted(ranked, key=lambda item: item[0])]


# --- counts -----------------------------------------------------------------------------------------------------------

_CONVERT = re.compile(r'^\s*(?:%[\w.$:, %#-]+ = )?"?(?:ttg|triton_gpu)\.convert_layout\b', re.MULTILINE)
_GCN_INSTRUCTION = re.compile(r"^\s+[a-z]\w*(?=\s|$)", re.MULTILINE)
_GCN_FACT = re.compile(r"^\s*(?:- )?\.(\w+): +(\d+)$", re.MULTILINE)


def _text_metrics(stage: str, text: str) -> dict[str, int]:
    if stage == "amdgcn":
        return _gcn_metrics(text)
    converts = 0 if stage in ORDER and stage != "ttgir" else len(_CONVERT.findall(text))
    return {f"convert_layout.{stage}": converts} if converts or stage == "ttgir" else {}


def _gcn_metrics(text: str) -> dict[str, int]:
    facts = {name: int(number) for name, number in _GCN_FACT.findall(text)}
    spilled = facts.get("vgpr_spill_count")
    known = {
        "registers": facts.get("vgpr_count"),
        "spill_bytes": None if spilled is None else 4 * spilled,
        "sgprs": facts.get("sgpr_count"),
        "sgpr_spills": facts.get("sgpr_spill_count"),
        "shared_bytes": facts.get("group_segment_fixed_size"),  # the json's includes the dynamic part, and wins
        "instructions": len(_GCN_INSTRUCTION.findall(text)),
    }
    return {name: value for name, value in known.items() if value is not None}


def _binary_metrics(image: elf.Image) -> dict[str, int]:
    return {"code_bytes": image.code_bytes, **(elf.cuda_metrics(image) if image.machine == elf.CUDA else {})}


def _declared_metrics(files: Mapping[str, str]) -> dict[str, int]:
    for name, path in files.items():
        if name.endswith(".json"):
            shared = json.loads(Path(path).read_text(encoding="utf-8")).get("shared")
            return {"shared_bytes": shared} if isinstance(shared, int) else {}
    return {}


# --- identity ---------------------------------------------------------------------------------------------------------

_PLACE = re.compile(r" at 0x[0-9a-fA-F]+|(?<![\w.])/(?:[^\s/'\"<>]+/)+[^\s'\"<>]*")


def _signature(signature: Mapping[Any, Any], constants: Mapping[Any, Any], attrs: Any) -> str:
    values = {_path(where): f"={_value(value)}" for where, value in constants.items()}
    multiples = _divisibility(attrs)
    parts = []
    for index, (name, kind) in enumerate(signature.items()):
        typed = kind if isinstance(kind, str) else _value(kind)
        parts.append(f"{name}: {typed}{multiples.pop((index,), '')}{values.pop((index,), '')}")
    inner = sorted({*values, *multiples}, key=lambda where: tuple(map(str, where)))  # within tuple arguments
    parts.extend(f"{'.'.join(map(str, where))}{multiples.get(where, '')}{values.get(where, '')}" for where in inner)
    return ", ".join(parts)


def _path(where: Any) -> tuple[Any, ...]:
    return where if isinstance(where, tuple) else (where,)


def _divisibility(attrs: Any) -> dict[tuple[Any, ...], str]:
    """Divisibility only: tt.pointer_range, say, is there or not as AMDGCN_USE_BUFFER_OPS decides."""
    if not isinstance(attrs, Mapping):  # before Triton 3.3, an object
        return {("attrs",): f"={_value(attrs)}"}
    pairs = ((_path(where), pair) for where, listed in attrs.items() for pair in listed)
    return {where: f" %{pair[1]}" for where, pair in pairs if pair[0] == "tt.divisibility"}


def _matters(name: str, options: Mapping[str, Any]) -> bool:
    value = options.get(name)
    return value is not None and (tuple(value) if isinstance(value, list) else value) != IDENTITY_OPTIONS[name]


def _value(value: Any) -> str:
    """Text of a constant that says nothing of this process or this disk; a function is its name and its source."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_value, value))})"
    if type(value).__name__ == "constexpr":
        return _value(value.value)
    source = getattr(value, "src", None)
    if isinstance(source, str):
        return f"{getattr(value, '__name__', '')}#{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    return _PLACE.sub("", str(value))
