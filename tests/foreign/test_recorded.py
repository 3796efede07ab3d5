"""`--record log` and `--record json`: full precision, one place per row, and only what is a record."""

import json
import math

import pytest

from harness.foreign import reading, recorded
from harness.foreign.entries import ForeignError
from tests.foreign.writing import Bench, bench, log, result


@pytest.fixture
def text(tmp_path):
    def make(content, name="result.log"):
        (tmp_path / name).write_bytes(content.encode())
        return reading.read(tmp_path / name)

    return make


def test_a_record_log_gives_the_latency_in_full_precision(text):
    (found,), torn = recorded.read_log(text(log([bench(latencies=(0.00912345678901, 1e-9))])))
    assert [entry.value for entry in found.entries] == [0.00912345678901, 1e-9]
    assert found.entries[1].shape == "[[16,16],[16,16]]"
    assert found.entries[1].place.endswith("result.log:2 result[1]")
    assert not torn


def test_other_lines_of_the_logger_are_no_records(text):
    more = "[INFO] {'op_name': 'mm', 'recommended_core_shapes': []}\n[INFO] {\"other\": 1}\n"
    assert len(recorded.read_log(text(more + log([bench()])))[0]) == 1


def test_a_torn_last_record_is_forgiven_and_any_other_is_refused(text):
    whole = log([bench(dtype="float16")]).rpartition("[INFO] [")[0] + log([bench(dtype="bfloat16")]).split("\n")[1]
    found, torn = recorded.read_log(text(whole[:-30]))
    assert ([each.dtype for each in found], torn) == (["float16"], True)
    assert len(recorded.read_log(text(whole))[0]) == 2  # without its line end, but whole
    with pytest.raises(ForeignError, match=r"result\.log:3: "):
        recorded.read_log(text(whole[:-30] + "\nmore\n"))


def test_a_decimal_comma_is_refused_with_its_line(text):
    content = log([bench(latencies=(0.0091,))]).replace("0.0091", "0,0091")
    with pytest.raises(ForeignError, match=r"result\.log:2: .*decimal comma in 0,0091\? .*LC_ALL=C"):
        recorded.read_log(text(content))
    with pytest.raises(ForeignError, match=r"result\.log:2 result\[0\]: latency '0,0091' is no number.*decimal comma"):
        recorded.read_log(text(content.replace("0,0091", '"0,0091"')))


def test_a_truth_value_is_no_latency(text):
    with pytest.raises(ForeignError, match=r"result\[0\]: latency True is no number of ms"):
        recorded.read_log(text(log([bench(latencies=(0.25,))]).replace("0.25", "true")))


def test_a_key_that_repeats_is_refused(text):
    with pytest.raises(ForeignError, match=r"result\.log:2: duplicate key 'latency'"):
        recorded.read_log(text(log([bench()]).replace('"latency":', '"latency": 1.0, "latency":', 1)))


def test_a_record_that_lacks_a_field_is_refused(text):
    with pytest.raises(ForeignError, match=r"result\.log:2: not a benchmark record: KeyError 'latency'"):
        recorded.read_log(text(log([bench()]).replace('"latency":', '"latency_ms":')))


def test_invalid_latencies_keep_their_reason(text):
    content = log([bench(latencies=(None, math.nan)), bench("cat", error="out of\nmemory")])
    first, second = recorded.read_log(text(content))[0]
    assert first.entries[0].reason == "no latency of the operator (null)"
    assert math.isnan(first.entries[1].value)
    assert [entry.reason for entry in second.entries] == ["FAILED: out of memory"] * 2


def test_a_result_file_has_tables_failures_and_skips(text):
    ended = {"fft": ("skipped", "CUDA is not available"), "sort": ("failed", "RuntimeError:\n no")}
    found = recorded.read_result(text(result([bench(), bench(dtype="float32")], ended), "r.json"))
    assert [table.name for table in found.tables] == [("mm", "float16"), ("mm", "float32")]
    assert found.tables[1].entries[0].place.endswith("r.json: mm.details[1] result[0]")
    assert (found.failed, found.skipped) == ({"sort": "RuntimeError: no"}, {"fft": "CUDA is not available"})


@pytest.mark.parametrize("content", ["{}", '{"a": 1}', '{"a": {"b": 1}}', "[1]", "{broken", "plain"])
def test_other_json_is_no_result_file(text, content):
    assert recorded.read_result(text(content, "x.json")) is None


def test_a_torn_result_file_is_refused_with_its_line(text):
    whole = result([bench()])
    with pytest.raises(ForeignError, match=rf"r\.json:{whole.count(chr(10)) - 3}: "):
        recorded.read_result(text("\n".join(whole.split("\n")[:-4]), "r.json"))
    with pytest.raises(ForeignError, match=r"r\.json:\d+: .*decimal comma in 0,5"):
        recorded.read_result(text(whole.replace("0.5", "0,5"), "r.json"))
    twice = json.dumps({"mm": {"details": []}})
    with pytest.raises(ForeignError, match=r"r\.json: duplicate key 'mm'"):
        recorded.read_result(text(f"{twice[:-1]}, {twice[1:]}", "r.json"))


def test_dtypes_within_a_detail_are_bare_names(text):
    (found,), _ = recorded.read_log(text(log([Bench("cast", "float16", [([(4,), "torch.int8"], 0.5)])])))
    assert found.entries[0].shape == '[[4],"int8"]'
