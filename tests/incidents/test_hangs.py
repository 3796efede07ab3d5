"""Incidents of targets that hang (facts/incidents.md 1; triton-flaggems 6, item 14), with a real target process."""

import os
import sys

import pytest

from harness import codec, process
from harness.outcome import Found, classify
from harness.plugins import session
from harness.plugins.autotune import Watch
from harness.plugins.replay import First
from harness.records import Outcome
from tests.plugins.target import REPOSITORY, make_cell

SILENT_S = 20.0  # an import of torch on a busy machine says nothing for half of it


@pytest.mark.slow
def test_a_benchmark_that_hangs_leaves_its_stack_and_its_finished_rows(tmp_path):
    """One hung cell held the batch; a limit alone cannot tell a hang from a long sweep, nor say where it stood."""
    cell = make_cell()
    codec.write(tmp_path / "cell.json", cell)
    env = {
        **os.environ,
        "CALIBER_CELL": str(tmp_path / "cell.json"),
        "CALIBER_ATTEMPT": str(tmp_path),
        "CALIBER_AUTOTUNE": str(tmp_path / "none.json"),
        "CALIBER_RUNTIME": "meta",
        "TRITON_CACHE_DIR": str(tmp_path / "triton"),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), cell.provider.root]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    plugins = [word for name in cell.instrument.plugins for word in ("-p", name)]
    arguments = ["--level", "core", "--warmup", "10", "--iter", "20", "--metrics", "latency"]
    ended = process.run_group(
        [sys.executable, "-m", "pytest", *plugins, "benchmark/test_ops.py", "-k", "double or hangs", *arguments],
        cwd=cell.provider.root,
        env=env,
        log=tmp_path / "run.log",
        limits=process.Limits(300, SILENT_S, [tmp_path / "rows.jsonl", tmp_path / "triton"]),
    )
    log = (tmp_path / "run.log").read_text()
    outcome, reason = classify(ended, Found((), (), True, log), recording=False)
    assert outcome is Outcome.TIMED_OUT and reason.startswith(f"no progress for {SILENT_S:.0f} s"), log
    assert "test_ops.py" in reason and reason.endswith("in sleeps")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) >= 6  # of `double`, finished before


def test_a_sweep_over_kernels_compiled_before_gives_a_sign_of_life_for_each_candidate(tmp_path, monkeypatch):
    """It writes no line and fills no cache; a limit on silence alone would end it as a hang (TileOPs #1813)."""
    current = session.Session(make_cell(), tmp_path, started_cold=False)
    monkeypatch.setattr(session, "current", lambda: current)
    log = tmp_path / "run.log"
    log.write_text("pytest\n")
    os.utime(log, (1000, 1000))
    with open(log, "a") as stream:
        monkeypatch.setattr(session, "REAL_STDOUT", stream.fileno())
        bench = Watch(First())._timed_candidate(lambda tuner, *, config: f"{tuner} {config}")
        assert bench("tuner", config="BLOCK=64") == "tuner BLOCK=64"
    assert log.stat().st_mtime > 1000 and log.read_text() == "pytest\n"


def test_a_log_that_is_a_pipe_has_no_time_to_set_and_that_is_no_error(tmp_path, monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(session, "REAL_STDOUT", writing)
    session.Session(make_cell(), tmp_path, started_cold=False).beat()
    os.close(reading), os.close(writing)
