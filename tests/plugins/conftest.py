"""Target processes that many tests look at; each is run once (seconds)."""

import pytest

from tests.plugins.target import ON_FAKE_DEVICE, Ran, make_cell, replaying, run

GOOD = "double or scale or shift or both or halved or no_kernel"


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A directory for the attempts."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def aot_record(place) -> Ran:
    """Round 0 of backend aot."""
    return run(place / "aot_record", GOOD)


@pytest.fixture(scope="session")
def aot_replay(place, aot_record) -> Ran:
    """A measured cell of backend aot."""
    return run(place / "aot_replay", GOOD, replaying(make_cell()), record=aot_record.attempt / "autotune.json")


@pytest.fixture(scope="session")
def aot_failing(place) -> Ran:
    """Tests of which one row fails, one runs out of memory, one skips itself."""
    return run(place / "aot_failing", "fails or too_large or skipped")


@pytest.fixture(scope="session")
def device_record(place) -> Ran:
    """Round 0 on the fake device."""
    return run(place / "device_record", GOOD, make_cell(**ON_FAKE_DEVICE))


@pytest.fixture(scope="session")
def device_replay(place, device_record) -> Ran:
    """A measured cell on the fake device, with a direct_repeat of 3."""
    cell = replaying(make_cell(**ON_FAKE_DEVICE, direct_repeat=3))
    return run(place / "device_replay", GOOD, cell, record=device_record.attempt / "autotune.json")
