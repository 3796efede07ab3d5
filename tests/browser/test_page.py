"""The page in a real browser: no error, no request, and every state that an address can hold.

Needs a Chromium (Debian: `apt-get install chromium`); without one these tests say so and skip.
"""

import dataclasses

import pytest

from harness import finish
from tests import evidence, pages
from tests.browser import chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not chromium.PROGRAM, reason=f"none of {', '.join(chromium.NAMES)} is on PATH"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    ops = {"mm": pages.moved(5.0), "add": pages.moved(0.0), "bmm": pages.moved(-2.0), "exp": pages.moved(1.0)}
    hostile = evidence.each_row(pages.moved(3.0, shapes=1), shape=pages.HOSTILE)
    ops["hostile"] = tuple(dataclasses.replace(item) for item in hostile)
    directory = pages.write(tmp_path_factory.mktemp("campaign"), ops, {})
    finish.render(directory)
    return directory / "report.html"


def opened(page, state, tmp_path):
    found = chromium.open_page(page, state, tmp_path)
    assert found.console == ()
    assert found.requests == frozenset()
    return found


def test_it_opens_with_every_operator_closed(page, tmp_path):
    found = opened(page, "", tmp_path)
    assert found.rows() == ["mm", "add", "bmm", "exp", "hostile"]
    assert found.details() == []
    assert "5 of 5 operators" in found.dom


def test_the_address_filters_by_text(page, tmp_path):
    assert opened(page, "#filter=MM", tmp_path).rows() == ["mm", "bmm"]


def test_the_address_filters_by_verdict(page, tmp_path):
    found = opened(page, "#verdict=FASTER,SAME", tmp_path)
    assert found.rows() == ["add", "bmm"]
    assert 'data-verdict="SAME" aria-pressed="true"' in found.dom
    assert 'data-verdict="SLOWER" aria-pressed="false"' in found.dom


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("B vs A", ["bmm", "add", "exp", "hostile", "mm"]),
        ("-B vs A", ["mm", "hostile", "exp", "add", "bmm"]),
        ("operator", ["add", "bmm", "exp", "hostile", "mm"]),
    ],
)
def test_the_address_sorts_and_the_header_says_so(page, tmp_path, sort, order):
    found = opened(page, f"#sort={sort.replace(' ', '%20')}", tmp_path)
    assert found.rows() == order
    direction = "descending" if sort.startswith("-") else "ascending"
    assert found.dom.count(f'<th scope="col" aria-sort="{direction}"') == 1


def test_an_opened_operator_shows_plot_shapes_telemetry_and_code(page, tmp_path):
    found = opened(page, "#open=mm&theme=dark", tmp_path)
    (detail,) = found.details()
    assert 'data-theme="dark"' in found.dom
    plot = detail[detail.index("Forest plot") :]
    assert plot.count('class="ci"') == 4, "each of 3 shapes, and all together"
    assert plot.count('class="round"') == 4 * 6 and plot.count('class="band"') == 4
    assert "SM clock, MHz" in detail and "Power: absent" in detail
    assert "registers" in detail and '<span class="del">-  %0 = ttg.convert_layout %x</span>' in detail
    assert "ROW_OOM" in detail and "&lt;i&gt;out of memory&lt;/i&gt;" in detail
    assert "12 cells" in detail or "13 cells" in detail


def test_shapes_of_identical_code_moved_by_noise(tmp_path):
    gate = {"exp": evidence.gate("NO_CODE_CHANGE")}
    directory = pages.write(tmp_path, {"exp": evidence.gated(pages.moved(1.0))}, gate)
    finish.render(directory)
    (detail,) = opened(directory / "report.html", "#open=exp", tmp_path).details()
    assert "NO_CODE_CHANGE" in detail and "% noise" in detail and "% slower" not in detail and "% faster" not in detail


def test_several_operators_can_be_open_in_a_sorted_and_filtered_table(page, tmp_path):
    found = opened(page, "#filter=mm&sort=operator&open=mm,add", tmp_path)
    assert found.rows() == ["bmm", "mm"] and len(found.details()) == 2
    assert [" hidden" in detail.split(">")[0] for detail in found.details()] == [True, False]


def test_a_hostile_shape_is_text(page, tmp_path):
    found = opened(page, "#open=hostile", tmp_path)
    assert "alert(1)" in found.details()[0]
    assert "<script>alert" not in found.dom.replace("&lt;", "")


def test_console_and_requests_are_really_watched(tmp_path):
    """Else the absence of both proves nothing."""
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.1:9/x.png'><script>console.error('seen')</script>")
    found = chromium.open_page(bad, "", tmp_path)
    assert any("seen" in line for line in found.console)
    assert "http://127.0.0.1:9/x.png" in found.requests
