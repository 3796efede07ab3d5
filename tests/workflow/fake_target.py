"""A target interpreter that obeys the cell contract without Triton: instant cells for tests of order and faults.

It answers `probe.py` like a healthy interpreter, and `-m pytest ...` by writing what a benchmark would. What one cell
does is a word in the JSON file $FAKE_PLAN, `{"mm/r2_B": ["hang", "ok"]}`: one word per attempt, the last one repeats.
Ops whose name starts with `mm` get other code on side B; the others do not.
"""

import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    if any("probe.py" in argument for argument in sys.argv):
        return probe()
    from harness import codec
    from harness.records import Cell

    faulthandler.register(signal.SIGUSR2)  # as harness.plugins.session does in a real target
    attempt = Path(os.environ["CALIBER_ATTEMPT"])
    cell = codec.read(Cell, Path(os.environ["CALIBER_CELL"]))
    words = json.loads(Path(os.environ["FAKE_PLAN"]).read_text()).get(cell.key, ["ok"])
    word = words[min(int(attempt.name), len(words)) - 1]
    with open(os.environ["FAKE_PLAN"] + ".log", "a", encoding="utf-8") as log:
        log.write(f"{cell.key} {word}\n")
    return behave(word, cell, attempt)


def behave(word, cell, attempt: Path) -> int:
    print(f"fake target: {cell.key} {word}", flush=True)
    if word == "usage":
        print("ERROR: unrecognized arguments: --level core", flush=True)
        return 4
    identify(cell, attempt)
    from harness.plugins import lease

    lease.take()
    if word == "fail":
        emit(cell, attempt, rows=1)
        event(attempt, "ROW_FAILED", "mm float16 [[8]]", error="RuntimeError: boom")
        return 1
    if word == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "empty":
        return 0
    if word == "skip":
        event(attempt, "SKIPPED", "", reason="no such hardware")
        return 0
    if word == "hole" and (attempt / "seeds.json").exists():
        event(attempt, "SWEEP_DISCARDED", "", reason="key_missing", kernel="k", key="[4]", tried="[8]")
        return 1
    linger(*word.split("="))
    emit(cell, attempt, rows=2)
    return 0


def linger(word, number="0") -> None:
    if word == "hang":
        time.sleep(600)
    if word == "sleep":
        time.sleep(float(number))
    for _ in range(int(number) if word == "steps" else 0):
        print("a sign of life", flush=True)
        time.sleep(0.5)


def emit(cell, attempt: Path, rows: int) -> None:
    from harness import codec
    from harness.records import AutotuneRecord, Fingerprint, Row, Variant

    for number in range(rows):
        value = 1.0 + 0.001 * cell.round + (0.05 if cell.side.name == "B" and cell.op.startswith("mm") else 0.0)
        shape = f"[[{4 * (number + 1)}]]"
        row = Row(cell.op, "float16", shape, 0, "", value, "ms", "compile", "none", 1, "", {"registers": 32}, ("v0",))
        codec.append_line(attempt / "rows.jsonl", row)
    changed = cell.op.startswith("mm") and cell.side.name == "B"
    code = "c1" if changed else "c0"
    variant = Variant("v0", "kernel", "*fp16", "num_warps=4", {"ttir": "a", "ttgir": code}, code, {}, True, True)
    codec.write(attempt / "fingerprint.json", Fingerprint((variant,), 1, 0))
    if cell.autotune == "record":
        codec.write(attempt / "autotune.json", AutotuneRecord(cell.op, "fake", "compile", "exclusive", ()))
    event(attempt, "PHASES", "", time="0.01")


def event(attempt: Path, code: str, row: str, **detail: str) -> None:
    from harness import codec
    from harness.records import Event

    codec.append_line(attempt / "events.jsonl", Event(code, row, detail))


def identify(cell, attempt: Path) -> None:
    from harness import codec
    from harness.records import Identity

    measure = cell.measure
    switch = {name: os.environ.get(name) for name in cell.side.env}
    codec.write(
        attempt / "run_identity.json",
        Identity(
            epoch=cell.epoch, backend=cell.instrument.backend, target=cell.instrument.target, device_model="fake",
            device_uuid="fake-0", driver="", runtime="", python="3", torch="2", provider=cell.provider.name,
            provider_digest=cell.provider.digest, harness_digest="h", plugins=cell.instrument.plugins,
            timer=cell.instrument.timer, l2=cell.instrument.l2, level=measure.level, shapes=measure.shapes,
            dtypes=cell.workload.dtypes, direct_repeat=measure.direct_repeat, warmup_ms=measure.warmup_ms,
            rep_ms=measure.rep_ms, tuner_cache=measure.tuner_cache, autotune_mode=cell.autotune,
            autotune_digest="" if cell.autotune == "record" else "d", compile_cache="cold", env={}, switch=switch,
            executable=sys.executable, pythonpath=cell.side.pythonpath, triton="fake", triton_digest="t",
            compiler_commit="", host="h", pid=os.getpid(), started_at="", cuda_visible="",
        ),
    )  # fmt: skip


def probe() -> int:
    names = sys.argv[sys.argv.index("--modules") + 1].split(",") if "--modules" in sys.argv else []
    modules = {name: {"found": True, "path": "/fake", "version": "1", "error": ""} for name in names}
    print(json.dumps({"python": "3.11.0", "executable": sys.executable, "modules": modules, "device": None}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
