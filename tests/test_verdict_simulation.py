"""The simulation behind "can I believe it?": it runs, and its null worlds claim no more than they may."""

import importlib.util
import sys

import numpy as np
import pytest


@pytest.fixture(scope="module")
def simulation():
    from tests.conftest import ROOT

    spec = importlib.util.spec_from_file_location("simulation", ROOT / "benchmarks" / "verdict_simulation.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["simulation"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_it_prints_a_line_per_world_and_number_of_rounds(simulation, capsys):
    simulation.main(1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(simulation.WORLDS) * 4
    assert {line[42:45].strip() for line in lines[1:]} == {"4", "6", "8", "10"}


@pytest.mark.parametrize("name", ["null", "null, 12 shapes", "null, bimodal 2 %", "null, process jolts 0.5 %"])
def test_a_null_world_makes_a_claim_in_no_more_than_five_percent_of_ops(simulation, name):
    (world,) = (each for each in simulation.WORLDS if each.name == name)
    rng = np.random.default_rng(22)
    found = np.mean([simulation.judged(world, 4, rng)["any"] for _ in range(150)])
    assert found <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 150)


def test_four_rounds_see_more_than_a_plain_t_test(simulation):
    (world,) = (each for each in simulation.WORLDS if each.name == "1 % on a quarter")
    rng = np.random.default_rng(23)
    runs = [simulation.judged(world, 4, rng) for _ in range(25)]
    assert np.mean([run["power"] for run in runs]) > 2 * np.mean([run["(plain)"] for run in runs])
