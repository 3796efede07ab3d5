"""One run: which of its files count, that they agree, and that it is one process's."""

import os
from datetime import datetime

import pytest

from harness import codec
from harness.foreign import run
from harness.foreign.entries import ForeignError
from harness.records import Event
from tests.evidence import cell, ended, row
from tests.foreign.writing import bench, console, log, result, side_identity, table, write


def parsed(path):
    return run.parsed(run.opened(path))


def latencies(found):
    return [entry.value for each in found.tables for entry in each.entries]


FULL = (0.00912345678, 0.5)


def test_a_record_is_preferred_to_the_console_and_the_use_is_said(tmp_path):
    found = parsed(
        write(tmp_path / "a", {"x.txt": console([bench(latencies=FULL)]), "y": log([bench(latencies=FULL)])})
    )
    assert latencies(found) == list(FULL)
    assert found.used == (
        f"2 rows from {tmp_path}/a/y (record log)",
        f"2 rows agree in {tmp_path}/a/x.txt (console, 6 decimals)",
    )


def test_files_are_known_by_what_they_hold(tmp_path):
    files = {
        "mm.data": log([bench(latencies=FULL)]),
        "id.cfg": codec.dumps(side_identity("A")),
        "k.cubin": b"\x7fELF\0",
    }
    opened = run.opened(write(tmp_path / "a", files))
    assert opened.identity == side_identity("A")
    assert latencies(run.parsed(opened)) == list(FULL)


def test_a_single_file_is_a_run(tmp_path):
    folder = write(tmp_path / "a", {"one.log": console([bench()]), "two.log": console([bench()])})
    assert latencies(parsed(folder / "one.log")) == [0.01, 0.5]


def test_a_table_that_only_the_console_has_is_read_from_it(tmp_path):
    files = {"c.log": console([bench(), bench(dtype="float32")]), "r.log": log([bench()])}
    assert [each.kind for each in parsed(write(tmp_path / "a", files)).tables] == ["record log", "console"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (console([bench(latencies=(0.01, 0.500001))]), r"mm float16 \[\[16,16\],\[16,16\]\] is 0\.5 ms at .*y\.log:2 "),
        (console([bench(latencies=(0.01,))]), r"2 rows of mm float16 at .*y\.log:2, 1 at .*x\.log:3"),
        (console([bench(latencies=(0.01, None))]), r"mm .* is 0\.5 ms at .* and absent at .*x\.log:7"),
    ],
)
def test_two_sources_that_disagree_beyond_rounding_are_refused(tmp_path, other, message):
    with pytest.raises(ForeignError, match=f"two sources of one run disagree: {message}"):
        parsed(write(tmp_path / "a", {"x.log": other, "y.log": log([bench()])}))


def test_a_log_and_a_result_file_must_agree_to_the_last_digit(tmp_path):
    files = {"x.log": log([bench(latencies=(0.3,))]), "y.json": result([bench(latencies=(0.30000000000000004,))])}
    with pytest.raises(ForeignError, match="disagree"):
        parsed(write(tmp_path / "a", files))


def test_the_same_table_in_two_files_is_refused_with_both_lines(tmp_path):
    files = {"1.log": console([bench()]), "2.log": console([bench()])}
    with pytest.raises(ForeignError, match=r"mm float16 is in two files of one run: .*1\.log:3 and .*2\.log:3"):
        parsed(write(tmp_path / "a", files))


def test_one_file_per_op_is_one_run(tmp_path):
    files = {f"benchmark_{op}.json": result([bench(op)]) for op in ("mm", "cat")}
    assert [each.op for each in parsed(write(tmp_path / "a", files)).tables] == ["cat", "mm"]


def test_what_only_a_result_file_has_may_be_another_runs_and_is_left_out(tmp_path):
    files = {"c.log": console([bench()]), "r.json": result([bench(), bench("stale")])}
    found = parsed(write(tmp_path / "a", files))
    assert [each.op for each in found.tables] == ["mm"]
    assert found.warnings == (
        "left out, in the result file only, which --record json merges into an older one: stale float16",
    )


def test_a_result_file_alone_is_used_with_a_warning(tmp_path):
    found = parsed(write(tmp_path / "a", {"r.json": result([bench()])}))
    assert latencies(found) == [0.01, 0.5]
    assert found.warnings[0].endswith("r.json: no log confirms it; --record json merges into an existing file")


def test_a_result_file_older_than_its_run_is_warned_of(tmp_path):
    folder = write(tmp_path / "a", {"c.log": console([bench()]), "r.json": result([bench()])}, side_identity("A"))
    os.utime(folder / "r.json", (1_700_000_000, 1_700_000_000))
    assert parsed(folder).warnings == (f"{folder}/r.json is older than the log of its run",)
    (folder / "c.log").unlink()
    before = datetime.fromisoformat(side_identity("A").started_at).timestamp() - 60
    os.utime(folder / "r.json", (before, before))
    assert parsed(folder).warnings[0].startswith(f"{folder}/r.json was written before its run started")


def test_no_row_is_an_error_that_names_the_files_and_the_reason(tmp_path):
    files = {"c.log": "==== 3 skipped in 1.0s ====\n", "d.txt": "FAILED benchmark/test_mm.py::test_mm - no device\n"}
    with pytest.raises(ForeignError, match=r"no row of a benchmark in .*/c\.log, .*/d\.txt .*no device"):
        parsed(write(tmp_path / "a", files))
    with pytest.raises(ForeignError, match="no row of a benchmark in any text file"):
        parsed(write(tmp_path / "b", {"k.cubin": b"\x7fELF\0"}))
    with pytest.raises(ForeignError, match="no such run"):
        parsed(tmp_path / "c")


def test_two_identities_are_two_runs(tmp_path):
    folder = write(tmp_path / "a", {"c.log": console([bench()])}, side_identity("A"))
    write(folder / "deeper", {}, side_identity("B"))
    with pytest.raises(
        ForeignError, match=r"two identities: .*/a/run_identity\.json and .*/a/deeper/run_identity\.json"
    ):
        run.opened(folder)


def test_kernel_caches_and_hidden_folders_are_no_part_of_a_run(tmp_path):
    folder = write(tmp_path / "a", {"c.log": console([bench()])})
    for name in ("triton_cache", ".pytest_cache", ".git"):
        write(folder / name, {"c.log": console([bench()])})
    assert latencies(parsed(folder)) == [0.01, 0.5]


def attempt(folder, torn=""):
    """What a caliber cell leaves: rows, events, a log with the provider's own table."""
    rows = [row(1.5, "[[64]]"), row(2.5, "[[128]]")]
    event = Event("BENCHMARK_DIRECT_NO_CUDAGRAPH", str(rows[0].key), {"repeat": "1"})
    files = {
        "rows.jsonl": "".join(codec.dumps(each) + "\n" for each in rows) + torn,
        "events.jsonl": codec.dumps(event) + "\n",
        "run.log": console([bench("softmax", latencies=(9.0,))]),
        "cell.json": codec.dumps(cell(), indent=1),
    }
    write(folder, files, side_identity("A"))
    return tuple(rows)


def test_an_attempt_of_a_caliber_cell_is_a_run_of_its_rows(tmp_path):
    rows = attempt(tmp_path / "1")
    found = parsed(tmp_path / "1")
    assert tuple(each for each, _ in found.own) == rows
    assert found.own[1][1].endswith("rows.jsonl:2")
    assert found.opened.marks.total() == {"BENCHMARK_DIRECT_NO_CUDAGRAPH": 1}


def test_of_a_caliber_cell_the_promoted_attempt_counts(tmp_path):
    folder = tmp_path / "r1_A"
    attempt(folder / "attempts" / "1")
    (folder / "attempts" / "2").mkdir()
    with pytest.raises(ForeignError, match="a cell of caliber that has not ended"):
        run.opened(folder)
    codec.write(folder / "status.json", ended(cell(), [row(1.0)]).status)
    assert len(parsed(folder).own) == 2


def test_torn_files_are_forgiven_and_said(tmp_path):
    attempt(tmp_path / "1", torn='{"op": "soft')
    assert parsed(tmp_path / "1").torn == (f"{tmp_path}/1/rows.jsonl:3: torn last line left out",)
    files = {"c.log": table(bench(latencies=(0.01, 0.5)))[:-8], "r.log": log([bench()])}
    found = parsed(write(tmp_path / "a", files))
    assert found.torn == (f"{tmp_path}/a/c.log:6: torn last line left out (console)",)
    assert latencies(found) == [0.01, 0.5]


def test_markers_belong_to_the_table_that_follows_them(tmp_path):
    line = "BENCHMARK_DIRECT_NO_CUDAGRAPH repeat=3\n"
    first = "AUTOTUNE_REPLAY_FALLBACK reason=key_missing\n"
    text = f"{first}{table(bench())}{line}{line}{table(bench('cat'))}AUTOTUNE_RECORDED x\n"
    marks = run.opened(write(tmp_path / "a", {"c.log": text})).marks
    assert marks.of("mm", "float16") == {"AUTOTUNE_REPLAY_FALLBACK": 1, "AUTOTUNE_RECORDED": 1}
    assert marks.of("cat", "float16") == {"BENCHMARK_DIRECT_NO_CUDAGRAPH": 2, "AUTOTUNE_RECORDED": 1}


@pytest.mark.parametrize(
    "line", ["AUTOTUNE_REPLAY_FALLBACK=0", "AUTOTUNE_REPLAY_FALLBACK: 0", "X_AUTOTUNE_REPLAY_FALLBACK"]
)
def test_a_count_of_none_is_no_marker(tmp_path, line):
    assert not run.opened(write(tmp_path / "a", {"c.log": f"{line}\n"})).marks.total()


def test_failed_tests_and_ops_are_kept_with_their_place(tmp_path):
    text = "\x1b[31mFAILED\x1b[0m: Operator=sort dtype={dtype} err=<<<{e}>>>\n" + console([bench()])
    text += "FAILED benchmark/test_sort.py::test_sort - RuntimeError: no\nSKIPPED [2] benchmark/test_fft.py:73: CUDA\n"
    found = parsed(write(tmp_path / "a", {"c.log": text}))
    assert found.failed["sort"] == f"dtype={{dtype}} err=<<<{{e}}>>> ({tmp_path}/a/c.log:1)"
    assert found.failed["benchmark/test_sort.py::test_sort"].startswith("RuntimeError: no (")
    assert found.skipped == ("benchmark/test_fft.py:73: CUDA",)
    only = parsed(write(tmp_path / "b", {"c.log": console([bench()]) + "=== 1 failed, 2 passed in 3.21s ===\n"}))
    assert only.failed == {"pytest": f"1 failed, 2 passed in 3.21s ({tmp_path}/b/c.log:11)"}
