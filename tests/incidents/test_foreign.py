"""Incidents of comparing runs that others made: what went wrong, and what `caliber ab` answers (facts: incidents).

End to end: run directories on disk, the command, its exit code and its words.
"""

from __future__ import annotations

import json
import math

import pytest

from harness.__main__ import main
from harness.records import ExitCode
from tests.foreign.writing import Bench, bench, console, log, result, run, table, write

RELEASE = "--allow-caliber-mismatch"


@pytest.fixture
def ab(tmp_path, capsys):
    """`ab(a, b)`: files of two runs -> exit code, stdout, stderr."""

    def compare(a, b, *options):
        paths = [str(write(tmp_path / name, files)) for name, files in (("a", a), ("b", b))]
        code = main(["ab", *paths, *options])
        return code, *capsys.readouterr()

    return compare


@pytest.fixture
def identified(tmp_path, capsys):
    """`identified(changes_a, changes_b)`: two runs with identities."""

    def compare(a, b, *options):
        paths = [str(run(tmp_path / side, [bench()], side, **changes)) for side, changes in (("A", a), ("B", b))]
        code = main(["ab", *paths, *options])
        return code, *capsys.readouterr()

    return compare


# The incidents this project was born from


def test_two_runs_that_both_recorded_are_refused_by_name(identified):
    """router_gemm "-8.2 %" was the choice of configuration, not the compiler."""
    mode = {"autotune_mode": "record", "autotune_digest": ""}
    code, out, err = identified(mode, mode)
    assert (code, out) == (ExitCode.CALIBER, "")
    assert err.startswith("!!! [caliber] autotune_mode: record (a measured cell must replay")


def test_winners_from_a_shared_tuner_cache_make_latencies_unquotable(identified):
    """mm "945 variants -> 33" was the first run's sqlite."""
    code, out, _ = identified(
        {"tuner_cache": "shared", "autotune_mode": "record", "autotune_digest": ""}, {"tuner_cache": "shared"}
    )
    assert code == ExitCode.DONE
    assert "relative conclusions stand, absolute latencies are unquotable" in out


def test_one_run_isolated_and_one_shared_are_two_calibers(identified):
    code, _, err = identified({}, {"tuner_cache": "shared"})
    assert code == ExitCode.CALIBER
    assert err.startswith("!!! [caliber] tuner_cache: isolated -> ")


def test_two_timers_are_two_calibers(identified):
    """replication_pad3d "+43 %" against "+124.5 %"."""
    code, _, err = identified({"timer": "cuda_graph", "l2": "warm"}, {})
    assert code == ExitCode.CALIBER
    assert "!!! [caliber] timer: cuda_graph -> " in err


def test_the_speedup_column_decides_nothing(ab):
    """It compares gems with torch: 2x against 0.5x here, at equal latencies of gems."""
    code, out, _ = ab(
        {"c.log": console([bench()])}, {"c.log": console([bench()]).replace("7.500000", "0.100000")}, RELEASE
    )
    assert code == ExitCode.DONE
    assert "B as fast as A (+0.00 %" in out


def test_a_side_that_fell_back_from_capture_is_no_number(ab):
    marker = "BENCHMARK_DIRECT_NO_CUDAGRAPH repeat=1\n"
    code, out, _ = ab({"c.log": console([bench()])}, {"c.log": console([bench()], before=marker)}, RELEASE)
    assert code == ExitCode.INCOMPLETE
    assert "n_paired 0" in out
    assert "MIXED_TIMER" in out


def test_a_run_that_reported_itself_as_replaying_and_tuned_is_named(ab):
    """5 of 29 mm shapes were swept; 90 keys tuned themselves."""
    holes = "AUTOTUNE_REPLAY_FALLBACK reason=key_missing\n" * 90
    code, out, _ = ab({"c.log": console([bench()])}, {"c.log": console([bench()], before=holes)}, RELEASE)
    assert code == ExitCode.INCOMPLETE
    assert "B markers: AUTOTUNE_REPLAY_FALLBACK 90" in out
    assert "REPLAY_PARTIAL" in out


def test_a_run_over_what_happened_to_succeed_does_not_read_like_a_complete_one(ab):
    """A shape that fails ends its test: the type's rows are never printed, later types never run."""
    whole = console([bench(dtype="float16"), bench(dtype="float32")])
    ended = console([bench(dtype="float16")]) + "FAILED benchmark/test_mm.py::test_mm - OutOfMemoryError\n"
    code, out, _ = ab({"c.log": whole}, {"c.log": ended}, RELEASE)
    assert code == ExitCode.INCOMPLETE
    assert out.startswith("n_A 4  n_B 2  n_paired 2  rounds 1  INCOMPLETE\n")
    assert "only A: mm float32, all 2 rows" in out
    assert "benchmark/test_mm.py::test_mm: OutOfMemoryError" in out


# Public reports


def test_two_runs_of_one_build_are_not_a_comparison(identified):
    """meta-pytorch/tritonbench#262: A and B were built from the same commit."""
    same = {"switch": {}, "executable": "/venv/bin/python"}
    code, _, err = identified(same, same)
    assert code == ExitCode.CALIBER
    assert "!!! [caliber] switch: sides do not differ on any axis; declare A/A?" in err
    assert identified(same, same, "--aa")[0] == ExitCode.DONE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_utf16_is_no_empty_report(ab, encoding):
    """golang/go#58576, #65157: exit 0 and nothing printed."""
    code, out, err = ab({"c.log": console([bench()]).encode(encoding)}, {"c.log": console([bench()])}, RELEASE)
    assert (code, out) == (ExitCode.FAILED, "")
    assert "a/c.log: is UTF-16" in err


def test_a_decimal_comma_is_no_other_number(ab):
    """OpenRA#20889: 2,174 ms was read as two fields."""
    code, out, err = ab(
        {"c.log": console([bench()])}, {"c.log": console([bench()]).replace("0.500000", "0,500000")}, RELEASE
    )
    assert (code, out) == (ExitCode.FAILED, "")
    assert "b/c.log:7: decimal comma in 0,500000" in err


def test_microseconds_are_not_read_as_milliseconds(ab):
    """golang/go#61262: units of two files differed."""
    code, _, err = ab({"c.log": console([bench()])}, {"c.log": console([bench()]).replace("(ms)", "(us)")}, RELEASE)
    assert code == ExitCode.FAILED
    assert "b/c.log:4: unknown columns" in err


def test_a_geomean_over_different_sets_is_not_printed(ab):
    """golang/go#19565: a public tool prints -81.1 % where the paired rows give -18.3 %."""
    a = [bench("mm", latencies=(1.0,)), bench("slow", latencies=(100.0,))]
    b = [bench("mm", latencies=(1.0,)), bench("quick", latencies=(0.01,))]
    code, out, _ = ab({"r.log": log(a)}, {"r.log": log(b)}, RELEASE)
    assert code == ExitCode.INCOMPLETE
    assert "no number over all ops: the two sides do not hold the same rows" in out
    assert "B as fast as A" in out
    assert ("only A: slow" in out, "only B: quick" in out) == (True, True)


def test_duplicate_names_are_not_collapsed(ab):
    """FlagGems' own scheduler keys rows by their shape: the second layout of a BLAS shape overwrites the first."""
    twice = Bench("mm", "float16", [([(8, 8)], 1.0), ([(8, 8)], 9.0)])
    code, out, _ = ab({"r.log": log([twice])}, {"r.log": log([twice])}, RELEASE)
    assert code == ExitCode.DONE
    assert out.startswith("n_A 2  n_B 2  n_paired 2 ")
    once = Bench("mm", "float16", [([(8, 8)], 9.0)])
    code, out, err = ab({"r.log": log([twice])}, {"r.log": log([once])}, RELEASE)
    assert (code, out) == (ExitCode.FAILED, "")
    assert "2 in " in err
    assert "a/r.log:2 result[0], " in err
    assert "b/r.log:2 result[0])" in err


@pytest.mark.parametrize("b", [console([bench("other")]), "no tables here\n"])
def test_zero_matches_are_no_success(ab, b):
    """nvbench#386, asv#884: exit 0."""
    assert ab({"c.log": console([bench()])}, {"c.log": b}, RELEASE)[0] in (ExitCode.INCOMPLETE, ExitCode.FAILED)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_a_failure_stored_as_a_number_is_not_the_fastest(ab, value):
    """tritonbench#214, FlagGems#6540: 0.0 and NaN as latencies."""
    code, out, _ = ab({"r.log": log([bench()])}, {"r.log": log([bench(latencies=(0.01, value))])}, RELEASE)
    assert code == ExitCode.INCOMPLETE
    assert f"latency {value} ms is not positive" in out


def test_a_result_file_that_kept_another_runs_rows_is_found_out(ab):
    """`--record json` merges into the file that is there."""
    stale = {"c.log": console([bench(latencies=(0.02, 0.5))]), "r.json": result([bench(latencies=(0.01, 0.5))])}
    code, _, err = ab({"c.log": console([bench()])}, stale, RELEASE)
    assert code == ExitCode.FAILED
    assert "two sources of one run disagree: mm float16 [[8,8],[8,8]] is 0.01 ms at " in err


def test_a_torn_last_line_is_forgiven_and_any_other_is_not(ab):
    """sipyourdrink-ltd/bernstein#5919."""
    records = log([bench("mm")]) + log([bench("cat")])
    torn = records[: records.rindex('"latency"')]
    code, out, _ = ab({"r.log": records}, {"r.log": torn}, RELEASE)
    assert code == ExitCode.INCOMPLETE
    assert "torn last line left out (record log)" in out
    code, _, err = ab({"r.log": records}, {"r.log": f"{torn}\n{log([bench('add')])}"}, RELEASE)
    assert code == ExitCode.FAILED
    assert "b/r.log:" in err


def test_the_full_precision_of_a_record_is_used_not_the_consoles_two_digits(ab):
    """40 ns print as 0.000040: 1.2 % of it is below the last digit."""
    a, b = bench(latencies=(0.0000400,)), bench(latencies=(0.0000404,))
    seen = ab({"c.log": table(a), "r.log": log([a])}, {"c.log": table(b), "r.log": log([b])}, RELEASE)[1]
    assert "B 1.0 % slower (+1.00 %" in seen
    assert "B as fast as A" in ab({"c.log": table(a), "r.log": ""}, {"c.log": table(b), "r.log": ""}, RELEASE)[1]


def test_repetition_pairs_with_its_own_round(tmp_path, capsys):
    """google/benchmark#677: repetition i was compared with the first repetition."""
    for number, level in enumerate((1.0, 3.0, 9.0, 27.0), 1):
        for side in "AB":
            write(tmp_path / str(number) / side, {"r.log": log([bench(latencies=(level,))])})
    target = tmp_path / "found.json"
    main(["ab-rounds", str(tmp_path), RELEASE, "--order", "ABAB", "--json", str(target)])
    assert [each["delta"] for each in json.loads(target.read_text())["ops"]["mm"]["rounds"]] == [0.0] * 4
    assert "SAME" in capsys.readouterr().out
