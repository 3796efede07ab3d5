import gzip

import pytest

from harness.plugins import texts
from tests.plugins.target import make_cell, run


@pytest.mark.slow
def test_round_1_keeps_the_normalised_ttgir_of_what_it_launched_and_no_other_round_does(tmp_path):
    first = run(tmp_path / "r1", "scale", make_cell(round=1))
    kept = {path.name: gzip.decompress(path.read_bytes()).decode() for path in (first.attempt / "ir").iterdir()}
    launched = [variant.id for variant in first.fingerprint.variants if variant.launched]
    assert launched and kept.keys() == {f"{name}.ttgir.gz" for name in launched}
    assert all("tt.func" in text and "loc(" not in text for text in kept.values())
    assert not (run(tmp_path / "r2", "scale", make_cell(round=2)).attempt / "ir").exists()


def test_what_is_beyond_the_cap_is_left_out(tmp_path, monkeypatch):
    for number in range(3):
        (tmp_path / f"{number}.ttgir").write_text(f"module {number} loc(#loc1)\n")
    monkeypatch.setattr(texts, "CAP_BYTES", 45)
    texts.keep(tmp_path, {f"v{number}#2": str(tmp_path / f"{number}.ttgir") for number in range(3)})
    (kept,) = (tmp_path / "ir").iterdir()
    assert (kept.name, gzip.decompress(kept.read_bytes())) == ("v0-2.ttgir.gz", b"module 0\n")
