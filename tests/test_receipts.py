"""receipts: what the verdicts of a campaign rest on, hashed, and the same at every rendering."""

import hashlib
import json
import subprocess
import sys

from harness import codec, finish, receipts
from tests import finished


def read(directory):
    return json.loads((directory / "receipts.json").read_text(encoding="utf-8"))


def test_every_artifact_of_a_verdict_has_a_receipt_with_its_hash(tmp_path):
    directory = finished.reported(tmp_path)
    files = read(directory)["files"]
    for name in ("seal.json", "config.json", "plan.json", "judge.json", "caliber.json", "frozen/harness/records.py",
                 "mm/verdict.json", "mm/gate.json", "mm/r3_B/cell.json", "mm/r3_B/status.json",
                 "mm/r3_B/attempts/1/rows.jsonl", "mm/r3_B/attempts/1/run_identity.json",
                 "mm/r3_B/attempts/1/fingerprint.json"):  # fmt: skip
        assert files[name] == hashlib.sha256((directory / name).read_bytes()).hexdigest(), name
    assert list(files) == sorted(files)
    assert all(receipts.sha256(directory / name) == digest for name, digest in files.items())


def test_the_same_files_give_the_same_receipts(tmp_path):
    directory = finished.reported(tmp_path)
    first = (directory / "receipts.json").read_bytes()
    finish.render(directory)
    assert (directory / "receipts.json").read_bytes() == first


def test_the_runners_own_hash_is_taken_over_and_counted(tmp_path):
    """A file altered between the end of its cell and the report must not get a receipt that fits it."""
    directory = finished.write(tmp_path, {"mm": finished.op_cells("mm", 5.0)})
    rows = directory / "mm/r1_A/attempts/1/rows.jsonl"
    honest = receipts.sha256(rows)
    rows.write_text(rows.read_text().replace("float16", "float32"))
    finish.render(directory)
    found = read(directory)
    assert found["files"]["mm/r1_A/attempts/1/rows.jsonl"] == honest != receipts.sha256(rows)
    assert found["recorded"] == 12 * 3 + 1 and found["recorded"] + found["hashed"] == len(found["files"])


def test_receipts_repeat_the_seal_and_name_what_judged(tmp_path):
    found = read(finished.reported(tmp_path))
    assert found["seal"] == json.loads((tmp_path / "seal.json").read_text())
    assert found["judging"]["harness/verdict.py"] == receipts.sha256(receipts.HARNESS / "verdict.py")
    assert set(found["packages"]) == {"python", "numpy", "scipy"}


def test_a_campaign_that_was_never_sealed_has_receipts_too(tmp_path):
    directory = finished.write(tmp_path, {"mm": finished.op_cells("mm")})
    (directory / "seal.json").unlink()
    finish.render(directory)
    assert codec.read(receipts.Receipts, directory / "receipts.json").seal is None


def test_the_judging_half_is_what_really_gets_loaded_to_judge():
    """A module that a verdict passes through and that is not hashed would change it unseen."""
    code = "import sys, harness.judging, harness.fingerprint; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    modules = {f"{name.replace('.', '/')}.py" for name in loaded if name.startswith("harness.")}
    known = set(receipts.judging())
    assert {name for name in modules if name.count("/") == 1 and (receipts.HARNESS.parent / name).exists()} <= known
    assert {"harness/statistics.py", "harness/screening.py", "harness/decision.py"} <= known
    assert not known & {"harness/cell.py", "harness/finish.py", "harness/campaign.py"}
