"""The sealed list of workloads: strict YAML in, frozen values out, and the seal that makes a change visible.

The digest is over the content, not the text: comments, order of keys and line ends do not matter, the order of
workloads does. It must not know what a node contains; providers check that it exists.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from harness import codec, providers
from harness.records import Refusal, Workload

OP = re.compile(r"[a-z0-9_]+")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
DTYPE = re.compile(r"[a-z][a-z0-9_]*")
NODE = re.compile(r"\w[\w./-]*\.py::test\w*(\[[^\[\]]+\])?")


class ManifestError(Refusal):
    """A manifest caliber refuses: file, line, key and the way out, in one line."""


@dataclass(frozen=True)
class Manifest:
    """A list of workloads, in the order they run. `digest` is `sha256:<hex>`; `sealed` says that the file holds it."""

    name: str
    provider: str
    workloads: tuple[Workload, ...]
    digest: str
    sealed: bool


def load(path: Path) -> Manifest:
    """The manifest in `path`. ManifestError when it is malformed, or sealed and changed since."""
    manifest, written = Source(path, _read(path)).manifest()
    if manifest.sealed and written != manifest.digest:
        raise ManifestError(
            f"{path}: sealed as {written}, its content is {manifest.digest}: it changed after it was sealed; "
            f"review the change, then run `caliber seal {path}`, or take it back"
        )
    return manifest


def seal(path: Path) -> str:
    """Write the digest of the content into `path`, all other bytes as they are. Returns the digest."""
    source = Source(path, _read(path))
    manifest, _ = source.manifest()
    text = source.with_seal(manifest.digest)
    if not _is_sealed(Source(path, text), manifest.digest):
        raise ManifestError(f"{path}: a last line `seal: ...` does not fit in; write one key per line, not in braces")
    if text != source.text:
        codec.write_text(path, text)
    return manifest.digest


def _is_sealed(source: Source, expected: str) -> bool:
    try:
        manifest, written = source.manifest()
    except ManifestError:
        return False
    return manifest.digest == written == expected


def digest(name: str, provider: str, workloads: Sequence[Workload]) -> str:
    """SHA-256 over the canonical JSON of the content; what is not given does not count."""
    listed = [{key: value for key, value in codec.to_json(item).items() if value} for item in workloads]
    content = {"manifest": name, "provider": provider, "workloads": listed}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _read(path: Path) -> str:
    try:
        if path.read_bytes().startswith(codecs.BOM_UTF8):
            raise ManifestError(f"{path}: starts with a byte order mark; save it as UTF-8 without one")
        return codec.read_text(path)
    except codec.CodecError as error:
        raise ManifestError(str(error)) from None
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}; set `manifest` in config to one of manifests/*.yaml") from None


@dataclass(frozen=True)
class Source:
    """A manifest's text. It is read as a tree of nodes, not of values, for only nodes know their line."""

    path: Path
    text: str

    def manifest(self) -> tuple[Manifest, str]:
        """The validated content, and the seal that is written in the file, right or wrong ("" = none)."""
        top = self._mapping(self._compose(), ("manifest", "provider", "workloads"), ("seal",))
        name = self._matching(top["manifest"], "manifest", NAME, "letters, digits, `_`, `-`, `.`")
        provider = self._text(top["provider"], "provider")
        if provider not in providers.NAMES:
            raise self._error(top["provider"], f"provider: {provider!r} is none of {', '.join(providers.NAMES)}")
        workloads = self._workloads(top["workloads"])
        found = digest(name, provider, workloads)
        written = _shown(top["seal"]) if "seal" in top else ""
        return Manifest(name, provider, workloads, found, "seal" in top), written

    def with_seal(self, value: str) -> str:
        """The text with its seal replaced, or added as the last line."""
        top = self._compose()
        assert isinstance(top, yaml.MappingNode)  # manifest() has looked
        for key, old in top.value:
            if key.value == "seal":
                return f"{self.text[: key.end_mark.index]}: {value}{self.text[old.end_mark.index :]}"
        return f"{self.text}{'' if self.text.endswith(chr(10)) else chr(10)}seal: {value}\n"

    def _compose(self) -> yaml.Node | None:
        try:
            return yaml.compose(self.text, yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
            raise ManifestError(f"{self.path}{line}: not YAML: {error.problem}; see manifests/README.md") from None
        except yaml.YAMLError as error:
            raise ManifestError(f"{self.path}: not YAML: {' '.join(str(error).split())}") from None

    def _workloads(self, node: yaml.Node) -> tuple[Workload, ...]:
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise self._error(node, "workloads: expected a list of at least one `{op: ..., node: ...}`")
        found: dict[str, Workload] = {}
        for item in node.value:
            workload = self._workload(item)
            if workload.op in found:
                raise self._error(item, f"op: {workload.op!r} is listed twice; one op, one workload")
            found[workload.op] = workload
        return tuple(found.values())

    def _workload(self, node: yaml.Node) -> Workload:
        items = self._mapping(node, ("op", "node"), ("dtypes", "reason"))
        op = self._matching(items["op"], "op", OP, "lower case letters, digits and `_`")
        dtypes = self._dtypes(items["dtypes"]) if "dtypes" in items else ()
        reason = self._text(items["reason"], "reason").strip() if "reason" in items else ""
        if dtypes and not reason:
            raise self._error(node, f"dtypes: op {op!r} is narrowed without a reason; write down `reason: why`")
        if "reason" in items and not dtypes:
            raise self._error(node, f"reason: op {op!r} is not narrowed; drop it, or use a comment")
        return Workload(op, self._node(items["node"]), dtypes, reason)

    def _node(self, node: yaml.Node) -> str:
        text = self._text(node, "node")
        path = PurePosixPath(text.split("::")[0])
        if "\\" in path.as_posix() or path.is_absolute() or ".." in path.parts:
            raise self._error(node, f"node: {text!r} must be a path inside the provider, with `/`, without `..`")
        if not NODE.fullmatch(text):
            raise self._error(node, f"node: {text!r} is no test; write `benchmark/test_<op>.py::test_<op>`")
        return text

    def _dtypes(self, node: yaml.Node) -> tuple[str, ...]:
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise self._error(node, "dtypes: expected a list of at least one; drop it to run all")
        found = tuple(self._matching(item, "dtypes", DTYPE, "a name like float16") for item in node.value)
        if len(set(found)) != len(found):
            raise self._error(node, f"dtypes: one of {', '.join(found)} is listed twice; drop it")
        return found

    def _mapping(
        self, node: yaml.Node | None, required: Sequence[str], optional: Sequence[str]
    ) -> dict[str, yaml.Node]:
        """The values of a mapping by key: all of `required`, some of `optional`, each once, nothing else."""
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"expected a mapping with the keys {', '.join(required)}")
        found: dict[str, yaml.Node] = {}
        known = (*required, *optional)
        for name, value in node.value:
            key = self._text(name, "key")
            if key in found:
                raise self._error(name, f"{key}: duplicate key; keep one")
            if key not in known:
                raise self._error(name, f"{key}: unknown key; known are {', '.join(known)}")
            found[key] = value
        missing = [key for key in required if key not in found]
        if missing:
            raise self._error(node, f"{missing[0]}: missing key; known are {', '.join(known)}")
        return found

    def _matching(self, node: yaml.Node, key: str, pattern: re.Pattern[str], expected: str) -> str:
        text = self._text(node, key)
        if not pattern.fullmatch(text):
            raise self._error(node, f"{key}: {text!r} is not {expected}")
        return text

    def _text(self, node: yaml.Node, key: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            raise self._error(node, f"{key}: expected text, got {_shown(node)}; quote it if it is meant as text")
        return str(node.value)

    def _error(self, node: yaml.Node | None, message: str) -> ManifestError:
        line = f":{node.start_mark.line + 1}" if node else ""
        return ManifestError(f"{self.path}{line}: {message}")


def _shown(node: yaml.Node) -> str:
    return str(node.value) or "nothing" if isinstance(node, yaml.ScalarNode) else f"a {type(node).__name__}"
