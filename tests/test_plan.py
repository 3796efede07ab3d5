"""plan: the same cells in the same order on every parse."""

import dataclasses
from collections import Counter

from harness import config, plan, providers
from harness.records import Instrument, Provider, Workload

INSTRUMENT = Instrument("aot", "cuda:90", (), "meta", "compile", "none", ("harness.plugins.timing",), "")
CORPUS = plan.Corpus(Provider("builtin", "root", "sha256:0"), lambda workload: (workload.node,))
OPS = [Workload(op, f"benchmark/test_{op}.py::test_{op}") for op in ("add", "mm", "sort")]


def settings(tmp_path, **changes):
    data = {"campaign": "c", "manifest": "m", "backend": "aot", "sides": {"A": {}, "B": {}}, **changes}
    return config.parse(data, tmp_path)


def cells(tmp_path, **changes):
    return list(plan.cells(settings(tmp_path, **changes), OPS, INSTRUMENT, CORPUS))


def test_round_0_is_side_a_alone_and_records(tmp_path):
    recorded = [cell for cell in cells(tmp_path) if cell.round == 0]
    assert [(cell.op, cell.side.name, cell.autotune) for cell in recorded] == [
        ("add", "A", "record"), ("mm", "A", "record"), ("sort", "A", "record"),
    ]  # fmt: skip


def test_a_measured_cell_never_records(tmp_path):
    assert {cell.autotune for cell in cells(tmp_path) if cell.round} == {"replay"}


def test_both_orders_occur_equally_often(tmp_path):
    planned = cells(tmp_path, measure={"rounds": 6})
    firsts = Counter((cell.op, cell.side.name) for cell in planned if cell.round and cell.slot == 1)
    assert set(firsts.values()) == {3}


def test_orders_are_shuffled_and_not_the_same_for_every_op(tmp_path):
    orders = {tuple(plan.schedule("c", f"op{index}", 6)) for index in range(30)}
    assert len(orders) > 5


def test_the_plan_is_the_same_on_every_parse(tmp_path):
    assert cells(tmp_path) == cells(tmp_path)


def test_every_cell_of_an_op_runs_on_that_ops_lane(tmp_path):
    planned = cells(tmp_path, devices=[0, "GPU-1"])
    assert {(cell.op, cell.device) for cell in planned} == {("add", "0"), ("mm", "GPU-1"), ("sort", "0")}


def test_ops_run_one_after_the_other_round_by_round(tmp_path):
    planned = cells(tmp_path)
    assert [cell.seq for cell in planned] == list(range(len(planned)))
    assert [(cell.op, cell.round) for cell in planned] == sorted(
        ((cell.op, cell.round) for cell in planned), key=lambda item: (["add", "mm", "sort"].index(item[0]), item[1])
    )


def test_later_rounds_wait_for_round_1_of_both_sides_and_for_nothing_else():
    assert plan.needs("mm", 0, "A") == ()
    assert plan.needs("mm", 1, "B") == ("mm/r0_A",)
    assert plan.needs("mm", 4, "A") == ("mm/r1_A", "mm/r1_B")


def test_an_op_that_is_never_captured_is_planned_direct_under_its_test_functions_name(tmp_path):
    workloads = [Workload("unique", "benchmark/test_unique.py::test_unique2"), *OPS]
    captured = dataclasses.replace(INSTRUMENT, timer="cuda_graph", l2="warm")

    def planned(key):
        made = plan.cells(settings(tmp_path, measure={"capture_deny_ops": [key]}), workloads, captured, CORPUS)
        return {(cell.instrument.timer, cell.instrument.l2) for cell in made if cell.op == "unique"}

    assert planned("unique2") == {("direct", "flushed")}
    assert planned("unique") == {("cuda_graph", "warm")}  # neither the file nor the op; campaign.build refuses it


def test_a_key_of_the_deny_list_is_the_test_function_without_its_prefix_and_parameters():
    nodes = {
        "benchmark/test_unique.py::test_unique2": "unique2",
        "benchmark/test_unary_pointwise_perf.py::test_general_unary_pointwise_perf[abs-dtypes0]":
            "general_unary_pointwise_perf",
        "benchmark/attention/test_flash.py::test_flash": "flash",
    }  # fmt: skip
    assert {node: providers.key(node) for node in nodes} == nodes
