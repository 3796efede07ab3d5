"""Real faults: signals to Snakemake, to the runner, a full disk. Afterwards a plain re-run finishes, exactly."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import psutil
import pytest

from harness.plan import schedule
from tests.workflow.project import Project

pytestmark = pytest.mark.fault


def wait_for(condition, what: str, within_s: float = 40.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.05)


def started(project: Project, key: str):
    return lambda: any(line.startswith(f"{key} ") for line in project.measured())


def targets(project: Project) -> list[int]:
    """Pids of the project's target processes that still run."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = process.info["cmdline"] or []
        if str(project.root / "target") in command and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def hanging(tmp_path) -> Project:
    project = Project(tmp_path, ops=("mm",), rounds=2)
    assert schedule("t", "mm", 2)[1] == ("A", "B"), "the cell that hangs is the first of round 1"
    project.behave({"mm/r1_A": ["sleep=30", "ok"]})
    return project


def in_round_1(project: Project):
    return lambda: any("/r1_" in line for line in project.measured())


def finish(project: Project, unlock: bool = False) -> list[str]:
    """Resume with the same command; returns the cells it measured."""
    if unlock:
        assert project.run("--unlock").returncode == 0
    project.forget()
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert len(project.outcomes()) == 5
    return sorted(line.split()[0] for line in project.measured())


def test_ctrl_c_records_an_interrupted_attempt_and_resumes_exactly(tmp_path):
    project = hanging(tmp_path)
    running = project.start()
    wait_for(in_round_1(project), "a cell of round 1 runs")
    os.killpg(running.pid, signal.SIGINT)
    running.wait(30)
    wait_for(lambda: not targets(project), "the benchmark is gone")
    assert set(project.outcomes()) == {"mm/r0_A"}
    assert finish(project) == ["mm/r1_A", "mm/r1_B", "mm/r2_A", "mm/r2_B"]


def test_sigterm_to_snakemake_drains_and_loses_nothing(tmp_path):
    project = Project(tmp_path, ops=("mm",), rounds=2)
    project.behave({"mm/r1_A": ["sleep=2"], "mm/r1_B": ["sleep=2"]})
    running = project.start()
    wait_for(in_round_1(project), "a cell of round 1 runs")
    os.kill(running.pid, signal.SIGTERM)
    running.wait(60)
    done = set(project.outcomes())
    assert len(done) == 2, "the running cell was finished and kept"
    assert set(finish(project)) == {"mm/r1_A", "mm/r1_B", "mm/r2_A", "mm/r2_B"} - done


def test_kill_9_of_snakemake_ends_the_benchmark_and_measures_no_good_cell_twice(tmp_path):
    project = hanging(tmp_path)
    running = project.start()
    wait_for(in_round_1(project), "a cell of round 1 runs")
    running.kill()
    running.wait(10)
    wait_for(lambda: not targets(project), "the orphaned benchmark is gone")
    assert set(project.outcomes()) == {"mm/r0_A"}
    assert finish(project, unlock=True) == ["mm/r1_A", "mm/r1_B", "mm/r2_A", "mm/r2_B"]


def test_kill_9_of_the_runner_is_a_lost_attempt_and_the_rest_goes_on(tmp_path):
    project = hanging(tmp_path)
    running = project.start()
    wait_for(in_round_1(project), "a cell of round 1 runs")
    runner = next(
        process for process in psutil.Process(running.pid).children(recursive=True)
        if "harness.cell" in process.cmdline()
    )  # fmt: skip
    runner.kill()
    wait_for(lambda: len(project.measured()) >= 3, "the other side runs")
    running.send_signal(signal.SIGINT)
    os.killpg(running.pid, signal.SIGINT)
    running.wait(30)
    assert not targets(project)
    assert finish(project)[0] == "mm/r1_A"


def test_a_second_instance_is_refused_and_names_the_first(tmp_path):
    project = hanging(tmp_path)
    running = project.start()
    wait_for(in_round_1(project), "a cell of round 1 runs")
    second = project.run("--nolock")
    assert "refused" in second.stdout
    third = project.run()
    assert third.returncode != 0
    os.killpg(running.pid, signal.SIGINT)
    running.wait(30)


def test_a_full_disk_promotes_nothing_and_resumes(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=560m", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no tmpfs here: {mounted.stderr.decode().strip()}")
    try:
        project = Project(tmp_path / "p", ops=("mm",), rounds=2)
        (project.root / "results").symlink_to(small)
        filler = small / "filler"
        project.behave({"mm/r1_A": ["sleep=3", "ok"]})
        running = project.start()
        wait_for(in_round_1(project), "a cell of round 1 runs")
        subprocess.run(f"cat /dev/zero > {filler} 2>/dev/null", shell=True)
        running.wait(60)
        filler.unlink()
        assert running.returncode == 1
        outcomes = project.outcomes()
        assert set(outcomes) == {"mm/r0_A"}, "what could not be written whole was not promoted"
        assert finish(project) == ["mm/r1_A", "mm/r1_B", "mm/r2_A", "mm/r2_B"]
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)
