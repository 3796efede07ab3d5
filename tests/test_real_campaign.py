"""A campaign that an H200 measured, judged again here: every file as receipted, every verdict derived anew."""

import json
import tarfile
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.records import ExitCode

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = "docs/evidence/2026-12-02-nvidia-h200-aa"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    with tarfile.open(ROOT / EVIDENCE / "campaign.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "results" / "h200_builtin_aa"


def test_every_file_is_as_receipted_and_every_verdict_follows(campaign, capsys):
    assert main(["verify", str(campaign)]) == ExitCode.DONE
    assert "verified: every file is as receipted, every verdict follows from them" in capsys.readouterr().out


def test_one_digit_of_one_row_is_found(campaign, capsys):
    rows = campaign / "matmul" / "r3_B" / "attempts" / "1" / "rows.jsonl"
    whole = rows.read_text(encoding="utf-8")
    rows.write_text(whole.replace("0.2258", "0.2158", 1), encoding="utf-8")
    try:
        assert main(["verify", str(campaign)]) == ExitCode.CALIBER
        assert "matmul/r3_B/attempts/1/rows.jsonl" in capsys.readouterr().out
    finally:
        rows.write_text(whole, encoding="utf-8")


def test_identical_sides_gave_no_claim(campaign):
    noise = json.loads((campaign / "noise.json").read_text(encoding="utf-8"))
    verdicts = json.loads((campaign / "report.json").read_text(encoding="utf-8"))["ops"]
    assert noise["campaign"] == "h200_builtin_aa"
    assert len(verdicts) == 6
    assert {op["verdict"] for op in verdicts} <= {"SAME", "UNRESOLVED", "SIGN_UNSTABLE"}
