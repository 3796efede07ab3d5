"""verify: a campaign is checked from its files alone, wherever they lie; every difference is named, none is mended."""

import json
import shutil
from dataclasses import replace

import pytest

from harness import codec, finish, receipts, verify
from harness.__main__ import main
from harness.difference import differences
from harness.records import ExitCode
from tests import evidence, finished


@pytest.fixture
def campaign(tmp_path):
    return finished.reported(tmp_path / "here")


def edit(path, change):
    """Change a JSON file as a person would."""
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")


def lines(found):
    return [str(problem) for problem in (*found.evidence, *found.derived)]


def receipt_again(directory, **judging):
    """Receipts as the code of that day would have written them; `judging` replaces hashes of modules."""
    found = codec.read(receipts.Receipts, directory / receipts.NAME)
    hashes = {name: receipts.sha256(directory / name) for name in found.files}
    data = codec.to_json(found) | {"files": hashes}
    data["judging"] |= {f"harness/{name}.py": value for name, value in judging.items()}
    codec.write(directory / receipts.NAME, data)


def test_an_untouched_campaign_verifies_on_another_path(campaign, tmp_path, capsys):
    copy = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(campaign, copy)
    shutil.rmtree(campaign)
    assert main(["verify", str(copy)]) == ExitCode.DONE
    out = capsys.readouterr().out
    assert "2 ops judged again" in out
    assert out.endswith("verified: every file is as receipted, every verdict follows from them\n")


def test_verifying_writes_nothing(campaign):
    before = {path: path.stat().st_mtime_ns for path in campaign.rglob("*")}
    verify.verify(campaign)
    assert {path: path.stat().st_mtime_ns for path in campaign.rglob("*")} == before


@pytest.mark.parametrize("name", ["mm/r2_A/attempts/1/rows.jsonl", "mm/r0_A/cell.json", "judge.json", "add/gate.json"])
def test_a_missing_file_is_named(campaign, name):
    (campaign / name).unlink()
    found = verify.verify(campaign)
    assert f"missing: {name}" in lines(found)
    assert found.exit_code is ExitCode.CALIBER


def test_a_changed_latency_is_named_with_the_verdict_it_would_change(campaign):
    path = campaign / "mm/r2_B/attempts/1/rows.jsonl"
    path.write_text(path.read_text().replace('"value": 1', '"value": 3'), encoding="utf-8")
    found = verify.verify(campaign)
    assert any(line.startswith("changed: mm/r2_B/attempts/1/rows.jsonl: is ") for line in lines(found))
    assert any(line.startswith("differs: mm/verdict.json: estimate.delta: on file 0.0") for line in lines(found))
    assert not any("add/" in line for line in lines(found))


def test_line_ends_rewritten_by_git_have_a_name_of_their_own(campaign):
    """autocrlf rewrote the drivers once, broke them and changed every recorded digest."""
    path = campaign / "mm/r2_B/cell.json"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (line,) = [line for line in lines(verify.verify(campaign)) if "r2_B/cell.json" in line]
    assert "line ends were rewritten to CRLF, nothing else" in line


def test_a_verdict_edited_by_hand_differs_field_by_field(campaign):
    def flatter(data):
        data["verdict"], data["estimate"]["delta"] = "FASTER", -0.1

    edit(campaign / "mm/verdict.json", flatter)
    found = verify.verify(campaign)
    named = [line.split(": on file")[0] for line in lines(found)]
    assert "differs: mm/verdict.json: verdict" in named
    assert "differs: mm/verdict.json: estimate.delta" in named
    assert 'on file "FASTER", derived "SLOWER"' in "\n".join(lines(found))
    assert "NOT VERIFIED" in verify.text(found)


def test_an_edit_covered_up_in_the_receipts_is_still_not_what_the_evidence_gives(campaign):
    edit(campaign / "mm/verdict.json", lambda data: data.update(verdict="FASTER"))
    receipt_again(campaign)
    found = verify.verify(campaign)
    assert not found.evidence and found.exit_code is ExitCode.CALIBER
    assert "the evidence is intact, 1 values on file do not follow from it" in verify.text(found)


def test_a_gate_edited_by_hand_is_derived_again_from_the_fingerprints(campaign):
    edit(campaign / "add/gate.json", lambda data: data.update(verdict="NO_CODE_CHANGE", stage=""))
    assert 'differs: add/gate.json: verdict: on file "NO_CODE_CHANGE", derived "CODE_CHANGED"' in lines(
        verify.verify(campaign)
    )


def test_the_answer_after_the_correction_across_ops_is_checked_too(campaign):
    edit(campaign / "report.json", lambda data: data["ops"][1].update(verdict="SLOWER"))
    (line,) = lines(verify.verify(campaign))
    assert line.startswith('differs: report.json: add: on file "SLOWER"')


def test_a_judging_code_that_changed_is_told_apart_from_changed_evidence(campaign):
    edit(campaign / "mm/verdict.json", lambda data: data.update(verdict="UNRESOLVED"))
    receipt_again(campaign, decision="0" * 64)
    found = verify.verify(campaign)
    assert found.code == ("harness/decision.py",)
    assert not found.evidence and found.exit_code is ExitCode.CALIBER
    assert "JUDGING CODE CHANGED: the evidence is intact, 1 values differ" in verify.text(found)


def test_a_judging_code_that_changed_and_says_the_same_is_only_noted(campaign):
    receipt_again(campaign, decision="0" * 64)
    found = verify.verify(campaign)
    assert found.exit_code is ExitCode.DONE
    assert "judging code is not the receipted one: harness/decision.py" in verify.text(found)


def test_an_edit_of_the_frozen_code_breaks_the_seal(campaign):
    path = campaign / "frozen/harness/plugins/timing.py"
    path.write_text(path.read_text() + "\n# faster\n", encoding="utf-8")
    named = [line.split(": is ")[0] for line in lines(verify.verify(campaign))]
    assert named == ["changed: frozen/harness/plugins/timing.py", "seal: frozen"]


def test_a_configuration_that_is_not_the_sealed_one_is_named(campaign):
    edit(campaign / "config.json", lambda data: data["measure"].update(rounds=2))
    receipt_again(campaign)
    (line,) = lines(verify.verify(campaign))
    assert line.startswith("seal: config.json: is sha256:")


def test_the_noise_that_widened_a_margin_is_kept_with_the_campaign(tmp_path):
    same = finished.compiled(finished.variant("v0"))
    cells = finished.op_cells("mm", A=same, B=same)
    control = finished.reported(
        tmp_path / "aa", mm=[replace(item, cell=replace(item.cell, declared_aa=True)) for item in cells]
    )
    settings = replace(evidence.JUDGE, noise_campaign=str(control))
    directory = finished.write(tmp_path / "here", {"mm": finished.op_cells("mm", 5.0)}, settings)
    finish.render(directory)
    shutil.rmtree(control)
    assert verify.verify(directory).exit_code is ExitCode.DONE
    edit(directory / "noise_campaign.json", lambda data: data["shapes"].update(p95=0.2))
    named = [line.split(": ")[:2] for line in lines(verify.verify(directory))]
    assert ["changed", "noise_campaign.json"] in named and ["differs", "mm/verdict.json"] in named


def test_a_cell_that_ended_after_the_report_is_not_covered_by_it(tmp_path):
    cells = evidence.change(finished.op_cells("mm", 5.0), "r6_B", status=None)
    directory = finished.reported(tmp_path, mm=cells)
    assert verify.verify(directory).exit_code is ExitCode.DONE, "an unfinished campaign is verified as far as it goes"
    last = next(item for item in finished.op_cells("mm", 5.0) if item.cell.key == "mm/r6_B")
    finished.write_cell(directory / last.cell.key, last)
    found = lines(verify.verify(directory))
    assert any(line.startswith(f"not receipted: {last.cell.key}/status.json: newer than the report") for line in found)
    finish.render(directory)
    assert verify.verify(directory).exit_code is ExitCode.DONE


def test_evidence_that_cannot_be_read_is_one_line_not_a_crash(campaign):
    (campaign / "mm/r2_A/attempts/1/fingerprint.json").write_text("{", encoding="utf-8")
    found = verify.verify(campaign)
    assert any(line.startswith("unreadable: mm: ") for line in lines(found))
    assert found.ops == 1


def test_a_receipt_cannot_point_outside_the_campaign(campaign):
    edit(campaign / receipts.NAME, lambda data: data["files"].update({"../secret": "0" * 64}))
    assert any("../secret: is no path below the campaign" in line for line in lines(verify.verify(campaign)))


def test_a_campaign_without_receipts_says_how_to_get_them(campaign, capsys):
    (campaign / receipts.NAME).unlink()
    assert main(["verify", str(campaign)]) == ExitCode.FAILED
    assert "no receipts; `caliber report" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ({"a": 1.0}, {"a": 1.0 + 1e-12}, []),
        ({"a": 1.0}, {"a": 1.001}, [("a", "1.0", "1.001")]),
        ({"a": 1}, {"a": True}, [("a", "1", "true")]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [("a[1]", "2", "3")]),
        ({"a": [1]}, {"a": [1, 3]}, [("a", "[1]", "[1, 3]")]),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, [("a.b", "1", "nothing"), ("a.c", "nothing", "1")]),
        (None, 0, [("(all)", "null", "0")]),
    ],
)
def test_differences_name_their_path(was, now, found):
    assert list(differences(was, now)) == found
