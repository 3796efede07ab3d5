"""Clocks, temperature, power and load beside a cell: evidence, never a gate. `python -m harness.telemetry`.

CSV on stdout, reasons and the raw first sample on stderr. Nothing here may fail, slow or stop a cell.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from pathlib import Path

from harness import backends, process, samplers
from harness.backends import Backend, Device, ToolError
from harness.records import ExitCode, Refusal
from harness.samplers import Reading, Sample, Sampler, SamplerMissing

COLUMNS = (
    "time_s", "index", "uuid", "sm_clock_mhz", "mem_clock_mhz", "temp_c", "power_w", "util_pct", "throttle"
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Sample until told to stop; 0 then, 3 when there is nothing to sample with."""
    parser = argparse.ArgumentParser(prog="caliber telemetry", description=main.__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `caliber telemetry`."""
    parser.add_argument("--backend", required=True, help=f"one of {', '.join(backends.NAMES)}, or an alias")
    parser.add_argument("--devices", default="0", help="indices or UUIDs, comma separated (default: %(default)s)")
    parser.add_argument("--interval", type=_seconds, default=1.0, metavar="S", help="seconds (default: %(default)s)")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="stop after N samples (default: never)")
    parser.add_argument("--run", action="store_true", help="sample; without it, only say what would be sampled")


def run(arguments: argparse.Namespace) -> int:
    """Do what the arguments say. A reader that leaves and a SIGTERM are ordinary ends."""
    try:
        backend = backends.get(arguments.backend)
        devices = _devices(backend, arguments.devices)
        if not arguments.run:
            print(_intention(backend, devices, arguments), end="", flush=True)
            return int(ExitCode.DONE)
        process.raise_on_signals()
        _sample(samplers.open_sampler(backend.sampler, devices), devices, arguments.interval, arguments.count)
    except (SamplerMissing, ToolError, Refusal) as reason:
        print(f"telemetry: {reason}", file=sys.stderr)
        return int(ExitCode.ENVIRONMENT)
    except BrokenPipeError:
        # The reader left (`| head`). A traceback here was once read as "telemetry is broken", and the interpreter's
        # flush at exit writes a second one unless stdout leads somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except process.Interrupted:
        sys.stdout.flush()
    return int(ExitCode.DONE)


def row(time_s: float, reading: Reading) -> str:
    """One CSV line, without newline; an absent value is empty."""
    values = (reading.sm_clock_mhz, reading.mem_clock_mhz, reading.temp_c, reading.power_w, reading.util_pct)
    numbers = ["" if value is None else f"{value:.10g}" for value in values]
    return ",".join([f"{time_s:.3f}", str(reading.index), reading.uuid, *numbers, reading.throttle])


@dataclass(frozen=True)
class Spread:
    """Least, mean and greatest of the values that were there."""

    least: float
    mean: float
    greatest: float


@dataclass(frozen=True)
class Summary:
    """One telemetry file in numbers. None = never measured. `interval_s` is the achieved one, not the asked one.

    `busy` is the number of samples under load, and `busy_sm_clock_mhz` the SM clock over them: a cell also imports and
    compiles while its device idles at a fifth of the clock, and that must not be taken for the clock of its rows.
    """

    samples: int
    busy: int
    busy_sm_clock_mhz: Spread | None
    interval_s: float | None
    sm_clock_mhz: Spread | None
    temp_c: Spread | None
    power_w: Spread | None
    throttle: tuple[str, ...]


def columns(csv_path: Path) -> Mapping[str, Sequence[str]]:
    """The file by column, as texts; "" is absent. A sampler killed in mid-line leaves a torn last line: not counted."""
    text = csv_path.read_text(encoding="utf-8") if csv_path.exists() else ""
    lines = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1]))) or [list(COLUMNS)]
    if tuple(lines[0]) != COLUMNS:
        raise ValueError(f"{csv_path}: columns are {','.join(lines[0])}, expected {','.join(COLUMNS)}")
    for number, line in enumerate(lines, 1):
        if len(line) != len(COLUMNS):
            raise ValueError(f"{csv_path}:{number}: {len(line)} values, expected {len(COLUMNS)}")
    return dict(zip(COLUMNS, zip(*lines[1:], strict=True), strict=True)) if lines[1:] else dict.fromkeys(COLUMNS, ())


def summarise(csv_path: Path) -> Summary:
    """Number of samples, spreads, and throttle reasons seen."""
    table = columns(csv_path)
    times = list(dict.fromkeys(map(float, table["time_s"])))
    seen = {name for cell in set(table["throttle"]) if cell for name in cell.split("|")} - samplers.HARMLESS
    loaded = [bool(util) and float(util) > 0 for util in table["util_pct"]]
    return Summary(
        samples=len(times),
        busy=sum(loaded),
        busy_sm_clock_mhz=_spread(compress(table["sm_clock_mhz"], loaded)),
        interval_s=statistics.median(b - a for a, b in pairwise(times)) if len(times) > 1 else None,
        sm_clock_mhz=_spread(table["sm_clock_mhz"]),
        temp_c=_spread(table["temp_c"]),
        power_w=_spread(table["power_w"]),
        throttle=tuple(sorted(seen)),
    )


def _devices(backend: Backend, tokens: str) -> tuple[Device, ...]:
    """The devices to sample; a missing sampler is the reason to give, not the absence of its tool's devices."""
    if not backend.sampler:
        raise SamplerMissing(f"backend {backend.name} has no device to sample")
    return backends.resolve_all(tokens.split(","), backend.devices())


def _sample(sampler: Sampler, devices: Sequence[Device], interval_s: float, count: int) -> None:
    """Header, then one line per device and instant. The header goes first: a reader that is gone ends it at once."""
    print(",".join(COLUMNS), flush=True)
    started, taken, said = time.monotonic(), 0, ""
    while True:
        try:
            sample = sampler.read()
        except ToolError as error:
            if str(error) != said:  # a lost device would repeat itself for hours
                said = str(error)
                print(f"telemetry: {said}", file=sys.stderr, flush=True)
        else:
            _print(sample, devices)
            if taken == 0:
                _evidence(sampler, sample)
        taken += 1
        if taken == count:
            return
        late = (time.monotonic() - started) % interval_s
        time.sleep(interval_s - late)


def _print(sample: Sample, devices: Sequence[Device]) -> None:
    now = time.time()
    for reading in samplers.align(devices, sample):
        print(row(now, reading), flush=True)


def _evidence(sampler: Sampler, sample: Sample) -> None:
    """The first sample as the tool gave it: a wrong number can then be traced to parser or tool."""
    for note in sampler.notes:
        print(f"telemetry: {note}", file=sys.stderr)
    print(f"telemetry: first sample from {sampler.source}:\n{sample.raw.rstrip()}", file=sys.stderr, flush=True)


def _intention(backend: Backend, devices: Sequence[Device], arguments: argparse.Namespace) -> str:
    uuids = ",".join(device.uuid for device in devices)
    lines = [f"would sample every {arguments.interval:g} s, by {backend.sampler}:"]
    lines += [f"  {device}" for device in devices]
    lines += ["columns: " + " ".join(COLUMNS)]
    options = f"--backend {backend.name} --devices {uuids} --interval {arguments.interval:g} --run"
    lines += [f"run: caliber telemetry {options}"]
    return "\n".join(lines) + "\n"


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.01 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} s: sampling needs at least 0.01 s")
    return value


def _spread(texts: Iterable[str]) -> Spread | None:
    values = [float(text) for text in texts if text]
    return Spread(min(values), sum(values) / len(values), max(values)) if values else None


if __name__ == "__main__":
    sys.exit(main())
