"""The text of a compiler stage without its locations, so that another checkout of the same source reads alike.

L0: standard library only, Python 3.10. It knows text formats (MLIR, LLVM IR, PTX, AMD assembly), no file and no hash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping


def strip(stage: str, text: str) -> str:
    """`text` of `stage` less what says where the source lies: paths, lines, debug metadata, comments."""
    return _NORMAL.get(stage, _mlir)(text)


_STRING = r'"(?:[^"\\]|\\.)*"'
_LOCATION = re.compile(rf"{_STRING}|[ \t]*(?<![\w.$#@!%])loc\(")
_PARENTHESIS = re.compile(rf"{_STRING}|[()]")
_LOCATION_NAME = re.compile(r"^#loc\w*[ \t]*=[ \t]*(?:\n|\Z)", re.MULTILINE)


def _mlir(text: str) -> str:
    """`#loc3 = loc(...)` lines and ` loc(...)` uses taken out, however nested; strings are left alone."""
    kept, kept_to, scan = [], 0, 0
    while (match := _LOCATION.search(text, scan)) is not None:
        scan = match.end()
        if match[0].startswith('"'):
            continue
        kept.append(text[kept_to : match.start()])
        kept_to = scan = _closing(text, scan)
    return _LOCATION_NAME.sub("", "".join(kept) + text[kept_to:])


def _closing(text: str, at: int) -> int:
    """Where the parenthesis that was opened before `at` has been closed."""
    depth = 1
    for match in _PARENTHESIS.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return len(text)


_LLVM_NODE = re.compile(r"!(\d+) = (.*)")
_LLVM_NOISE = re.compile(
    r"; ModuleID|source_filename|!llvm\.dbg\.|\s*#dbg_|.*(?:call|declare) void @llvm\.dbg\.|@assertFile_\d"
)
_LLVM_DEBUG = re.compile(r'(?:distinct )?!DI|!\{i32 \d+, !"(?:Debug Info|Dwarf) Version"')
_LLVM_ATTACHED = re.compile(r",? !dbg !\d+")
_LLVM_REFERENCE = re.compile(r'"[^"]*"|(?P<comma>, )?!(?P<node>\d+)\b')


def _llir(text: str) -> str:
    """Code and the metadata it refers to, numbered anew in order of use; no debug metadata."""
    nodes: dict[str, str] = {}
    code = []
    for line in text.splitlines():
        if (node := _LLVM_NODE.match(line)) is not None:
            nodes[node[1]] = node[2]
        elif not _LLVM_NOISE.match(line):
            code.append(_LLVM_ATTACHED.sub("", line))
    debug = {name for name, body in nodes.items() if _LLVM_DEBUG.match(body)}
    numbers: dict[str, int] = {}

    def renumber(match: re.Match[str]) -> str:
        name = match["node"]
        if name is None or name not in nodes:
            return match[0]
        return "" if name in debug else f"{match['comma'] or ''}!{numbers.setdefault(name, len(numbers))}"

    lines = [_LLVM_REFERENCE.sub(renumber, line) for line in code if line]
    done = 0
    while done < len(numbers):  # a node may name further ones
        name = list(numbers)[done]
        lines.append(f"!{done} = {_LLVM_REFERENCE.sub(renumber, nodes[name])}")
        done += 1
    return "\n".join(lines)


_PTX_COMMENT = re.compile(rf"{_STRING}|//[^\n]*")
_PTX_DEBUG_SECTION = re.compile(r"\.section\s+\.debug_\w+\s*\{[^}]*\}")
_PTX_NOISE = re.compile(r"\s*(?:\.(?:file|loc)\s|\$L__(?:tmp|func_begin|func_end)\d+:|.*\bassertFile_\d+\[)")
_GCN_COMMENT = re.compile(rf"{_STRING}|;[^\n]*")
_GCN_SECTION = re.compile(r"\s*\.(?:section|text|data|bss|amdgpu_metadata)\b")
_GCN_NOISE = re.compile(r"\s*(?:\.(?:file|loc|cfi_\w+)\b|\.L(?:tmp|func_begin)\d+:)")


def _ptx(text: str) -> str:
    lines = _PTX_DEBUG_SECTION.sub("", _without(_PTX_COMMENT, text)).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip() and not _PTX_NOISE.match(line))


def _gcn(text: str) -> str:
    return "\n".join(_gcn_lines(_without(_GCN_COMMENT, text)))


def _gcn_lines(text: str) -> Iterator[str]:
    debug = False
    for line in text.splitlines():
        if _GCN_SECTION.match(line):
            debug = ".debug_" in line
        if not debug and line.strip() and not _GCN_NOISE.match(line):
            yield line.rstrip()


def _without(comment: re.Pattern[str], text: str) -> str:
    """`text` less its comments; `comment` matches strings too, so that one with a comment sign in it survives."""
    return comment.sub(lambda match: match[0] if match[0].startswith('"') else "", text)


_NORMAL: Mapping[str, Callable[[str], str]] = {"llir": _llir, "ptx": _ptx, "amdgcn": _gcn}  # else MLIR, or near it
