"""The compile step's runner, on a side whose interpreter is a script: what it is given, and whatever it does."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import codec
from harness.compilations import Ahead
from harness.records import Outcome, Side
from tests import evidence

REPOSITORY = Path(__file__).resolve().parents[1]
TARGET = """#!{python}
import json, os, sys, time
given = dict(word[2:].split("=", 1) for word in sys.argv if word.startswith("--"))
open({seen!r}, "w").write(json.dumps({{"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}}))
{body}
"""
ANSWER = codec.dumps(Ahead("softmax", "B", 3, 2, 0, {"m.k": "why"}, "", 0.0))
ANSWERS = f"open(given['result'], 'w').write({ANSWER!r})"


class Step:
    """A campaign whose round 0 has ended, and one run of the step for side B."""

    def __init__(self, root: Path, body: str = ANSWERS, outcome: Outcome = Outcome.RECORDED, **measure) -> None:
        self.campaign = root / "results" / "demo"
        self.seen, self.leases, python = root / "seen.json", root / "leases", root / "python"
        python.write_text(TARGET.format(python=sys.executable, seen=str(self.seen), body=body))
        python.chmod(0o755)
        (root / "provider").mkdir()
        provider = dataclasses.replace(evidence.cell().provider, root=str(root / "provider"))
        side = Side("B", str(python), (), {"SOME_SWITCH": "1"})
        self.cell = evidence.cell(side="B", provider=provider)
        self.cell = dataclasses.replace(self.cell, side=side, measure=dataclasses.replace(self.cell.measure, **measure))
        zero = evidence.cell(round_=0)
        attempt = self.campaign / "softmax" / "r0_A" / "attempts" / "1"
        codec.write(attempt / "run_identity.json", evidence.identity(zero))
        codec.write(attempt.parents[1] / "status.json", evidence.status(zero, outcome))
        (attempt / "specializations.jsonl").write_text("")
        codec.write(self.campaign / self.cell.key / "cell.json", self.cell)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "harness.ahead", str(self.campaign / self.cell.key / "cell.json")]

    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), "CALIBER_LEASE_DIR": str(self.leases)}

    def run(self) -> Ahead:
        done = subprocess.run(self.command(), env=self.env(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("softmax/ahead_B compiled ")
        return codec.read(Ahead, self.result)

    @property
    def result(self) -> Path:
        return self.campaign / "softmax" / "ahead_B.json"


def test_the_sides_interpreter_gets_the_cells_environment_but_no_device(tmp_path):
    step = Step(tmp_path)
    found = step.run()
    assert (found.asked, found.compiled, found.missing, found.reason) == (3, 2, {"m.k": "why"}, "")
    assert found.elapsed_s > 0
    seen = json.loads(step.seen.read_text())
    assert seen["env"]["CUDA_VISIBLE_DEVICES"] == ""
    assert seen["env"]["SOME_SWITCH"] == "1"
    assert seen["env"]["TRITON_CACHE_DIR"] == str(step.campaign / "softmax/cache_B/triton")
    assert seen["env"]["CALIBER_CACHE_STAMP"] == str(step.campaign / "softmax/cache_B/stamp.json")
    assert f"--device-name={evidence.identity(step.cell).device_model}" in seen["argv"]
    assert seen["cwd"] == str(tmp_path / "provider")
    assert not step.leases.exists(), "no device is leased"
    assert not (step.campaign / "softmax/cache_B/ahead/scratch").exists()


@pytest.mark.parametrize(
    "body, reason",
    [
        ("sys.exit('RuntimeError: no module flag_gems')", "ended with 1: RuntimeError: no module flag_gems"),
        ("os.kill(os.getpid(), 11)", "ended with -11: no message"),
        ("", "ended with 0: no message"),
        ("open(given['result'], 'w').write('{')", "result.json"),
    ],
)
def test_whatever_the_target_does_the_step_only_says_why_nothing_was_compiled(tmp_path, body, reason):
    found = Step(tmp_path, body).run()
    assert (found.compiled, found.asked) == (0, 0) and reason in found.reason


def test_a_side_whose_interpreter_is_missing_is_for_its_preflight_to_refuse(tmp_path):
    step = Step(tmp_path)
    Path(step.cell.side.python).unlink()
    assert "No such file" in step.run().reason


def test_a_step_that_takes_too_long_is_ended_and_told(tmp_path):
    assert "timed out" in Step(tmp_path, "time.sleep(60)", cell_timeout_s=1).run().reason


@pytest.mark.parametrize("outcome", [Outcome.OP_FAILED, Outcome.SKIPPED])
def test_without_a_recorded_round_there_is_nothing_to_compile(tmp_path, outcome):
    step = Step(tmp_path, outcome=outcome)
    assert step.run().reason == f"round 0 {outcome.value}"
    assert not step.seen.exists()


def test_a_round_0_of_a_triton_that_cannot_be_watched_leaves_nothing_to_compile(tmp_path):
    step = Step(tmp_path)
    (step.campaign / "softmax/r0_A/attempts/1/specializations.jsonl").unlink()
    assert step.run().reason == "round 0 left no specializations.jsonl"


def test_a_killed_step_leaves_no_answer_and_the_next_one_starts_over(tmp_path):
    step = Step(tmp_path, "time.sleep(60)")
    running = subprocess.Popen(step.command(), env=step.env(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not step.seen.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) != 0
    assert not step.result.exists()
    python = Path(step.cell.side.python)
    python.write_text(python.read_text().replace("time.sleep(60)", ANSWERS))
    assert step.run().compiled == 2
