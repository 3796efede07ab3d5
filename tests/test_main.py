"""The command line as a newcomer meets it: help that says enough, refusals of one line with their exit code."""

import subprocess
import sys

import pytest

from harness.__main__ import COMMANDS, main, parser
from harness.records import ExitCode
from tests.workflow.project import Project


@pytest.fixture
def project(tmp_path, monkeypatch):
    project = Project(tmp_path, ops=("add", "mm"), rounds=2)
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("CALIBER_LEASE_DIR", str(tmp_path / "leases"))
    monkeypatch.setenv("FAKE_PLAN", str(project.root / "fake.json"))
    return project


def test_help_names_every_command_and_every_exit_code():
    text = parser().format_help()
    assert all(name in text for name in COMMANDS)
    assert all(str(code.value) in text for code in ExitCode)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert COMMANDS[name][0].split(";")[0][:30] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("arguments", [["frobnicate"], ["report"], ["report", "results/none", "--frobnicate"]])
def test_wrong_arguments_end_with_a_code_of_their_own(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == ExitCode.USAGE
    assert "usage: caliber" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["status", "results/none"],
            1,
            "caliber: results/none/plan.json: no such campaign here; start it with snakemake",
        ),
        (["plan", "--config", "none.yaml"], 1, "caliber: none.yaml: [Errno 2] No such file"),
        (["seal", "none.yaml"], 1, "none.yaml"),
        (["report", "results/none"], 1, "no such campaign here"),
    ],
)
def test_a_refusal_is_one_line_on_stderr(project, arguments, code, message, capsys):
    assert main(arguments) == code
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1


def test_a_cell_that_does_not_exist_is_one_line_too(project):
    command = [sys.executable, "-m", "harness", "cell", "none/r1_A/cell.json"]  # its own process: it takes over signals
    ended = subprocess.run(command, env=project.env, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.endswith("no such cell; `caliber plan` lists them, a started campaign has their files\n")
    assert ended.stderr.count("\n") == 1


def test_plan_lists_every_cell_in_order(project, capsys):
    assert main(["plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "campaign t: 2 ops, 10 cells, 1 lane(s), backend aot, provider flaggems"
    assert lines[1].startswith("warning: measure.rounds = 2")
    assert lines[2].split() == ["0", "lane", "0", "add/r0_A", "record"]
    assert len(lines) == 12


def test_preflight_says_what_each_side_runs_on(project, capsys):
    assert main(["preflight"]) == 0
    assert "side A and B: " in capsys.readouterr().out


def test_a_missing_interpreter_is_named_with_exit_3(project, capsys):
    side = {"python": "/nowhere/python"}
    project.configure(sides={"A": side, "B": {**side, "env": {"SWITCH": "1"}}})
    assert main(["preflight"]) == ExitCode.ENVIRONMENT
    assert capsys.readouterr().err.startswith("PREFLIGHT_FAILED check=interpreter: /nowhere/python does not exist")


def test_an_unsealed_manifest_is_refused_with_the_command_that_seals_it(project, capsys):
    path = project.root / "manifest.yaml"
    text = path.read_text()
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith("seal:")) + "\n")
    assert main(["plan"]) == 1
    assert "is not sealed; review it, then `caliber seal manifest.yaml`" in capsys.readouterr().err
    assert main(["seal", "manifest.yaml"]) == 0
    assert main(["plan"]) == 0


def test_backends_are_listed_with_what_they_can_do(capsys):
    assert main(["backends"]) == 0
    assert [line.split()[0].rstrip(":") for line in capsys.readouterr().out.splitlines()] == [
        "cuda", "musa", "rocm", "ascend", "aot",
    ]  # fmt: skip
