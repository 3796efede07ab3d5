"""manifest: strict in, one line per refusal, and a seal that makes a change visible."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness import manifest, providers
from harness.manifest import ManifestError
from harness.records import Workload

SHIPPED = sorted((Path(__file__).parent.parent / "manifests").glob("*.yaml"))
GOOD = """\
# why this list
manifest: good
provider: builtin
workloads:
  - {op: add, node: "benchmark/test_add.py::test_add"}  # plain
  - op: matmul
    node: benchmark/test_matmul.py::test_matmul
    dtypes: [float16]
    reason: one dtype keeps it short
"""
ADD = '{op: add, node: "benchmark/test_add.py::test_add"}'
shipped = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "m.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def with_workloads(*items: str) -> str:
    return "\n".join(["manifest: m", "provider: builtin", "workloads:", *(f"  - {item}" for item in items), ""])


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        manifest.load(write(tmp_path, text))
    message = str(caught.value)
    assert "\n" not in message and str(tmp_path / "m.yaml") in message
    return message.removeprefix(str(tmp_path / "m.yaml"))


def test_a_manifest_is_read_in_the_order_it_is_written(tmp_path: Path) -> None:
    found = manifest.load(write(tmp_path, GOOD))
    assert (found.name, found.provider, found.sealed) == ("good", "builtin", False)
    assert found.workloads == (
        Workload("add", "benchmark/test_add.py::test_add"),
        Workload("matmul", "benchmark/test_matmul.py::test_matmul", ("float16",), "one dtype keeps it short"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": expected a mapping with the keys manifest, provider, workloads"),
        ("- a\n", ":1: expected a mapping"),
        ("manifest: [\n", ":2: not YAML: "),
        ("manifest: m\n---\nmanifest: n\n", ":2: not YAML: but found another document"),
        ("manifest: m\x00\n", ": not YAML: .*special characters"),
        (GOOD + "extra: 1\n", ":10: extra: unknown key; known are manifest, provider, workloads, seal"),
        (GOOD + "provider: builtin\n", ":10: provider: duplicate key; keep one"),
        (GOOD + "? [a]\n: b\n", ":10: key: expected text, got a SequenceNode"),
        ("manifest: m\nprovider: builtin\n", ":1: workloads: missing key"),
        (GOOD.replace("good", "../good"), ":2: manifest: '../good' is not letters, digits"),
        (GOOD.replace("good", "12"), ":2: manifest: expected text, got 12; quote it"),
        (GOOD.replace("builtin", "gems"), ":3: provider: 'gems' is none of builtin, flaggems"),
        ("manifest: m\nprovider: builtin\nworkloads: []\n", ":3: workloads: expected a list of at least one"),
        ("manifest: m\nprovider: builtin\nworkloads: {a: b}\n", ":3: workloads: expected a list"),
        (with_workloads("add"), ":4: expected a mapping with the keys op, node"),
        (with_workloads(ADD, ADD), ":5: op: 'add' is listed twice"),
        (with_workloads(ADD.replace("add,", "Add,")), ":4: op: 'Add' is not lower case letters, digits and `_`"),
        (with_workloads(ADD.replace("op: add", "op: on")), ":4: op: expected text, got on; quote it"),
        (with_workloads(ADD.replace("{", "{op: b, ")), ":4: op: duplicate key"),
        (with_workloads("{op: add}"), ":4: node: missing key; known are op, node, dtypes, reason"),
        (with_workloads(ADD.replace("node", "file")), ":4: file: unknown key"),
        (with_workloads(ADD.replace("}", ", dtypes: []}")), ":4: dtypes: expected a list of at least one"),
        (with_workloads(ADD.replace("}", ", dtypes: float16, reason: r}")), ":4: dtypes: expected a list"),
        (with_workloads(ADD.replace("}", ", dtypes: [torch.half], reason: r}")), ":4: dtypes: 'torch.half' is not"),
        (with_workloads(ADD.replace("}", ", dtypes: [int8, int8], reason: r}")), ":4: dtypes: one of .* listed twice"),
        (with_workloads(ADD.replace("}", ", dtypes: [int8]}")), ":4: dtypes: op 'add' is narrowed without a reason"),
        (with_workloads(ADD.replace("}", ", dtypes: [int8], reason: ' '}")), ":4: dtypes: .* without a reason"),
        (with_workloads(ADD.replace("}", ", reason: r}")), ":4: reason: op 'add' is not narrowed; drop it"),
    ],
)
def test_a_refusal_names_file_line_key_and_the_way_out(tmp_path: Path, text: str, message: str) -> None:
    assert re.match(re.escape(message).replace(r"\.\*", ".*"), refusal(tmp_path, text))


@pytest.mark.parametrize(
    "node", ["/b/test_a.py::test_a", "../b/test_a.py::test_a", "b/../../a.py::test_a", r"b\\a.py::test_a"]
)
def test_a_node_stays_inside_the_provider(tmp_path: Path, node: str) -> None:
    assert "must be a path inside the provider" in refusal(tmp_path, with_workloads(f'{{op: add, node: "{node}"}}'))


@pytest.mark.parametrize(
    "node",
    ["benchmark/test_add.py", "benchmark/test_add.py::add", "-c.py::test_a", "a b.py::test_a", "a.py::T::test_a"],
)
def test_a_node_is_one_test_of_a_file(tmp_path: Path, node: str) -> None:
    assert "is no test; write" in refusal(tmp_path, with_workloads(f'{{op: add, node: "{node}"}}'))


def test_a_node_may_name_the_parameters_of_its_test(tmp_path: Path) -> None:
    node = "benchmark/test_blas_perf.py::test_blas_benchmark[mm-float16]"
    found = manifest.load(write(tmp_path, with_workloads(f'{{op: mm, node: "{node}"}}')))
    assert found.workloads[0].node == node


def test_a_missing_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="none.yaml: No such file or directory; set `manifest` in config"):
        manifest.load(tmp_path / "none.yaml")


def test_the_digest_is_of_the_content_not_of_the_text(tmp_path: Path) -> None:
    plain = manifest.load(write(tmp_path, GOOD)).digest
    other = """\
provider: "builtin"
workloads: [
  {node: benchmark/test_add.py::test_add, op: add},
  {op: matmul, node: benchmark/test_matmul.py::test_matmul, reason: one dtype keeps it short, dtypes: [float16]}]
manifest: good
"""
    assert manifest.load(write(tmp_path, other)).digest == plain
    assert re.fullmatch("sha256:[0-9a-f]{64}", plain)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("good", "better"),
        ("op: add", "op: plus"),
        ("test_add.py::test_add", "test_add.py::test_add_inplace"),
        ("[float16]", "[float16, float32]"),
        ("keeps it short", "keeps it very short"),
    ],
)
def test_a_sealed_manifest_that_changed_is_refused_with_both_digests(tmp_path: Path, old: str, new: str) -> None:
    path = write(tmp_path, GOOD)
    sealed = manifest.seal(path)
    now = manifest.load(write(tmp_path, GOOD.replace(old, new))).digest
    changed = (GOOD + f"seal: {sealed}\n").replace(old, new)
    message = refusal(tmp_path, changed)
    assert sealed in message and now in message and f"`caliber seal {path}`" in message


def test_the_order_of_workloads_is_content(tmp_path: Path) -> None:
    mul = ADD.replace("add", "mul")
    one, two = (manifest.load(write(tmp_path, with_workloads(*items))).digest for items in ((ADD, mul), (mul, ADD)))
    assert one != two


def test_sealing_adds_one_line_and_keeps_every_other_byte(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    digest = manifest.seal(path)
    assert path.read_bytes() == (GOOD + f"seal: {digest}\n").encode()
    found = manifest.load(path)
    assert found.sealed and found.digest == digest


def test_sealing_twice_does_not_touch_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    manifest.seal(path)
    os.utime(path, ns=(1, 1))
    manifest.seal(path)
    assert path.stat().st_mtime_ns == 1


@pytest.mark.parametrize("old", ["sha256:0", "", "[1, 2]", '"x"'])
def test_sealing_again_replaces_any_seal_in_its_place(tmp_path: Path, old: str) -> None:
    path = write(tmp_path, f"seal: {old}  # by hand\n{GOOD}")
    assert re.match("sealed as .*|:1: ", refusal(tmp_path, path.read_text(encoding="utf-8")).removeprefix(": "))
    digest = manifest.seal(path)
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    assert first.split() == ["seal:", digest, "#", "by", "hand"] and rest == GOOD


def test_a_last_line_without_a_line_end_gets_one(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.rstrip("\n"))
    digest = manifest.seal(path)
    assert path.read_text(encoding="utf-8") == f"{GOOD}seal: {digest}\n"


@pytest.mark.parametrize("text", [f"{{manifest: m, provider: builtin, workloads: [{ADD}]}}\n", GOOD + "...\n"])
def test_a_manifest_that_a_seal_line_does_not_fit_in_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ManifestError, match="does not fit in"):
        manifest.seal(path)
    assert path.read_text(encoding="utf-8") == text


def test_a_malformed_manifest_is_not_sealed(tmp_path: Path) -> None:
    path = write(tmp_path, with_workloads(ADD, ADD))
    with pytest.raises(ManifestError, match="listed twice"):
        manifest.seal(path)
    assert "seal" not in path.read_text(encoding="utf-8")


@shipped
def test_every_shipped_manifest_is_sealed_under_its_file_name(path: Path) -> None:
    found = manifest.load(path)
    assert found.sealed and found.name == path.stem


@shipped
def test_every_shipped_manifest_has_lf_line_ends(path: Path) -> None:
    assert b"\r" not in path.read_bytes()


@pytest.mark.parametrize("name", ["smoke", "builtin"])
def test_every_builtin_node_exists(name: str) -> None:
    provider = providers.get("builtin")
    found = manifest.load(SHIPPED[0].with_name(f"{name}.yaml"))
    root = provider.locate(None)
    provider.check(root, found.workloads)
    assert {workload.node for workload in found.workloads} <= set(provider.tests(root))


def test_builtin_lists_every_builtin_operator() -> None:
    provider = providers.get("builtin")
    found = manifest.load(SHIPPED[0].with_name("builtin.yaml"))
    assert {workload.node for workload in found.workloads} == set(provider.tests(provider.locate(None)))


def test_rlc_product_is_32_operators_and_narrows_none() -> None:
    found = manifest.load(SHIPPED[0].with_name("rlc_product.yaml"))
    assert len({workload.op for workload in found.workloads}) == len({w.node for w in found.workloads}) == 32
    assert not any(workload.dtypes for workload in found.workloads)


def test_flaggems_six_is_narrowed_to_float16_with_six_reasons() -> None:
    found = manifest.load(SHIPPED[0].with_name("flaggems_six.yaml"))
    assert {workload.dtypes for workload in found.workloads} == {("float16",)}
    assert len({workload.reason for workload in found.workloads}) == 6


@pytest.mark.skipif("CALIBER_FLAGGEMS" not in os.environ, reason="CALIBER_FLAGGEMS names no FlagGems checkout")
@pytest.mark.parametrize("name", ["rlc_product", "flaggems_six"])
def test_every_flaggems_node_exists_in_a_checkout(name: str) -> None:
    provider = providers.get("flaggems")
    found = manifest.load(SHIPPED[0].with_name(f"{name}.yaml"))
    root = provider.locate(os.environ["CALIBER_FLAGGEMS"])
    provider.check(root, found.workloads)
    assert {workload.node for workload in found.workloads} <= set(provider.tests(root))
