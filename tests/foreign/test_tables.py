"""Console tables: rows are read from their own words, or refused with their line."""

import pytest

from harness.foreign import reading, tables
from harness.foreign.entries import ForeignError, shape_text
from harness.plugins import protocol
from tests.foreign.writing import Bench, bench, console, printed, row_line, table


@pytest.fixture
def read(tmp_path):
    def reader(text):
        path = tmp_path / "run.log"
        path.write_bytes(text.encode())
        return tables.read(reading.read(path))

    return reader


def values(found):
    return [(entry.shape, entry.value) for each in found for entry in each.entries]


def test_a_table_is_read_with_the_latency_of_the_operator_never_torch_or_the_speedup(read):
    (found,), torn = read(console([bench(latencies=(0.009123, 0.5))]))
    assert (found.op, found.dtype, found.mode, found.level) == ("mm", "float16", "kernel", "core")
    assert values([found]) == [("[[8,8],[8,8]]", 0.009123), ("[[16,16],[16,16]]", 0.5)]
    assert found.entries[0].place.endswith("run.log:6")
    assert not torn


def test_several_ops_and_dtypes_in_one_log(read):
    benches = [bench(op, dtype) for op in ("mm", "softmax") for dtype in ("float16", "bfloat16")]
    found, _ = read(console(benches))
    assert [each.name for each in found] == [(each.op, each.dtype) for each in benches]


@pytest.mark.parametrize("columns", [(), (12.413,), (1.5, 123456.789), (900.0, 1.5, 2.5), (123456789.123,)])
def test_columns_come_and_go_from_row_to_row(read, columns):
    head = table(bench(latencies=(1.0,))).rstrip("\n")
    (found,), _ = read(head + "\n" + row_line([(64, 64)], 0.25, columns) + row_line([(8,)], 0.5) + "\n")
    assert values([found])[1:] == [("[[64,64]]", 0.25), ("[[8]]", 0.5)]


DETAILS = [
    [(384, 384), (384, 384)],
    ([(64, 8192), 128], {"dim": -1}),
    ([(64, 8192)], {"dim": [0, 1], "keepdim": True, "p": 1e-05, "mode": "mean (of, all)", "mask": None}),
    {"size": (4, 4), "dtype": "torch.float16", "low": -3.5},
    [[(2, 3), (2, 3)], 0],
    [(1073741824,)],
    [()],
    None,
    [],
]


@pytest.mark.parametrize("detail", DETAILS, ids=str)
def test_every_detail_has_one_text_on_the_console_in_a_record_and_in_a_row(read, detail):
    (found,), _ = read(table(Bench("op", "float16", [(detail, 0.5)])))
    ((shape, value),) = values([found])
    plain = {**detail, "dtype": "float16"} if isinstance(detail, dict) else detail
    assert shape == shape_text(detail) == protocol.shape_text(plain)
    assert value == 0.5


def test_what_is_no_expression_is_its_own_text(read):
    text = table(Bench("op", "float16", [("x", 0.5)])).replace(printed("x"), "[<Device object>]")
    assert values(read(text)[0]) == [('"[<Device object>]"', 0.5)]


def test_failed_and_absent_latencies_are_rows_with_a_reason(read):
    (found,), _ = read(table(bench(latencies=(None, 0.5))).replace("SUCCESS             ", "FAILED              ", 2))
    assert [(entry.value, entry.reason) for entry in found.entries] == [(None, "FAILED in the table")] * 2
    (found,), _ = read(table(bench(latencies=(None,))))
    assert found.entries[0].reason == "no latency of the operator (N/A)"


def test_a_decimal_comma_is_refused_with_its_line(read):
    text = console([bench(latencies=(0.25, 0.5))]).replace("0.500000", "0,500000")
    with pytest.raises(ForeignError, match=r"run\.log:7: decimal comma in 0,500000; run the benchmark under LC_ALL=C"):
        read(text)


def test_a_row_that_is_none_is_refused_with_its_line(read):
    text = console([bench(latencies=(0.25, 0.5))]).replace("0.500000", "zero.five")
    with pytest.raises(ForeignError, match=r"run\.log:7: not a row of a FlagGems table: 'SUCCESS"):
        read(text)


def test_a_torn_last_row_is_forgiven_and_said(read):
    text = table(bench(latencies=(0.25, 0.5)))
    for length in range(len(text) - 3, text.index("0.250000") + 80, -1):
        found, torn = read(text[:length])
        assert (values(found), torn) == ([("[[8,8],[8,8]]", 0.25)], not text[:length].endswith("\n")), text[:length]


def test_a_line_torn_anywhere_else_is_refused(read):
    text = table(bench(latencies=(0.25, 0.5)))
    with pytest.raises(ForeignError, match=r"run\.log:5: not a row"):
        read(text.replace("0.250000", "0.25\n", 1))


def test_a_table_torn_in_its_head_is_torn(read):
    text = table(bench())
    for length in (text.index("Status") + 20, text.index("----") + 5, text.index("SUCCESS")):
        assert read(text[:length]) == ([], True)


def test_unknown_columns_or_units_are_refused(read):
    with pytest.raises(ForeignError, match=r"run\.log:3: unknown columns 'Status .*Gems Latency \(us\)"):
        read(table(bench()).replace("Gems Latency (ms)", "Gems Latency (us)"))


def test_a_row_whose_title_is_lost_is_refused(read):
    with pytest.raises(ForeignError, match=r"run\.log:1: a row that belongs to no table"):
        read(row_line([(4, 4)], 0.5))


def test_a_table_without_rows_is_refused(read):
    text = table(bench(latencies=())) + "\nmore\n"
    with pytest.raises(ForeignError, match=r"run\.log:2: a table without rows"):
        read(text)


def test_pytests_own_summary_lines_are_no_rows(read):
    text = (
        table(bench()).rstrip("\n") + "\nFAILED benchmark/test_mm.py::test_mm - RuntimeError: no\nSKIPPED [1] x.py: y\n"
    )
    assert len(values(read(text)[0])) == 2
