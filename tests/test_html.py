"""html: the page from a campaign's files. What a browser makes of it: tests/browser."""

import dataclasses
import json
import re

import pytest

from harness import finish
from harness.html import collecting, details, markup, sections
from harness.records import Outcome
from tests import evidence, pages

BLOCK = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """mm is slower, add is the same, exp changed no code, and sort has a missing cell."""
    same = dict.fromkeys(("exp",), evidence.gate("NO_CODE_CHANGE"))
    unfinished = evidence.change(pages.moved(0.0), "r6_B", status=None, rows=(), identity=None)
    ops = {"mm": pages.moved(5.0), "add": pages.moved(0.0), "exp": evidence.gated(pages.moved(0.0)), "sort": unfinished}
    directory = pages.write(tmp_path_factory.mktemp("campaign"), ops, same)
    finish.render(directory)
    return directory


@pytest.fixture(scope="module")
def page(campaign):
    return (campaign / "report.html").read_text(encoding="utf-8")


def data(page):
    """What the script gets, by op."""
    return {op["op"]: op for op in json.loads(BLOCK.search(page)[1])}


def test_the_answer_is_one_sentence_that_says_what_is_missing(page):
    assert (
        "Of 4 operators, B is faster on 0 and slower on 1, 1 the same, 1 without a code change, 1 incomplete. "
        "Missing: 1 of 52 cells." in page
    )


def test_the_sections_come_in_their_order_and_coverage_first(page):
    ids = re.findall(r'<h2 id="([a-z-]+)"', page)
    wanted = ["coverage", "caliber", "all-ops-together", "verdicts", "receipts"]
    assert ids[0] == "coverage" and [name for name in ids if name in wanted] == wanted


def test_the_table_of_verdicts_needs_no_script_and_says_word_and_sign(page):
    (row,) = re.findall(r'<tr data-op="mm".*?</tr>', page)
    assert 'data-verdict="SLOWER"' in row and re.search(r"\+5\.\d\d % <small>slower</small>", row)
    assert float(re.search(r'<td data-n="([^"]*)">\+5', row)[1]) == pytest.approx(5.0, abs=0.01), (
        "it sorts by the number"
    )
    assert '<th scope="col" aria-sort="none" data-numeric>' in page


def test_what_moved_in_identical_code_is_called_noise(page):
    (row,) = re.findall(r'<tr data-op="exp".*?</tr>', page)
    assert 'data-verdict="NO_CODE_CHANGE"' in row and "% <small>noise</small>" in row
    assert "faster" not in row and "slower" not in row


def test_every_shape_has_its_interval_margin_and_round_deltas(page):
    shapes = data(page)["mm"]["shapes"]
    assert len(shapes) == 3
    for shape in shapes:
        delta, low, high, margin, rounds = shape[5], shape[6], shape[7], shape[10], shape[13]
        assert low < delta < high and margin == 0.5 and len(rounds) == 6
        assert min(rounds) < delta < max(rounds)


def test_telemetry_is_cut_by_cell_and_absent_is_absent_never_zero(page):
    tracks = data(page)["mm"]["tracks"]
    assert [track[0] for track in tracks[:3]] == ["r1_A", "r1_B", "r2_B"]
    name, seconds, clock, temp, power, throttle = tracks[0]
    assert (seconds, power, throttle) == (9, None, "")
    assert clock[4] is None and clock[3] == 1903 and temp[4] == 44


def test_long_telemetry_is_reduced_to_what_a_strip_can_show(tmp_path):
    lines = [f"{second}.0,0,u,{1000 + second},1,,,1,none" for second in range(5000)]
    text = "time_s,index,uuid,sm_clock_mhz,mem_clock_mhz,temp_c,power_w,util_pct,throttle\n" + "\n".join(lines) + "\n"
    item = evidence.ended(evidence.cell(), [evidence.row(1.0)])
    attempt = tmp_path / item.cell.key / "attempts" / "1"
    attempt.mkdir(parents=True)
    (attempt / "telemetry.csv").write_text(text)
    (track,) = details.gather(tmp_path, (item,), points=details.POINTS).tracks
    assert len(track.clock_mhz) == 400 and track.temp_c is None
    assert track.clock_mhz[0] == pytest.approx(1006, abs=1), "a mean of its seconds"


def test_a_changed_variant_comes_with_its_counts_and_the_diff_of_its_ttgir(page):
    code = data(page)["mm"]["code"]
    assert code["totals"] == [["convert_layout.ttgir", 1, 0], ["registers", 32, 32]]
    (variant,) = code["changed"]
    assert variant[:3] == ["mm_kernel", "num_warps=4", "ttgir"]
    assert variant[3] == [["convert_layout.ttgir", 1, 0]]
    assert "-  %0 = ttg.convert_layout %x" in code["diff"].split("\n")
    assert data(page)["mm"]["gate"][:2] == ["CODE_CHANGED", "ttgir"]


def test_a_long_diff_is_cut_and_says_how_much(tmp_path, monkeypatch):
    monkeypatch.setattr(details, "DIFF_LINES", 4)
    directory = pages.write(tmp_path, {"mm": pages.moved(5.0)}, {})
    taken = collecting.Pages(directory)
    finish.collect(directory, taken.judge)
    code = json.loads(taken.ops[0])["code"]
    assert code["diff"].count("\n") == 3 and code["cut"] == 3


def test_receipts_are_listed_with_their_hashes(campaign, page):
    sealed = json.loads((campaign / "receipts.json").read_text(encoding="utf-8"))["files"]
    assert sealed
    assert all(f"<code>{path}</code></td><td><code>{digest}</code>" in page for path, digest in sealed.items())


def test_of_very_many_receipts_those_of_single_attempts_are_only_counted():
    cells = {f"mm/r1_A/attempts/{number}/rows.jsonl": "b" for number in range(1200)}
    text = sections.receipts({"seal.json": "a", "mm/verdict.json": "c", **cells})
    assert "1200 more, of single attempts, are in receipts.json." in text
    assert "seal.json" in text and "mm/verdict.json" in text and "rows.jsonl" not in text


def test_the_page_asks_for_nothing_and_allows_nothing(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe-inline" not in policy
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#|data:,|report\.md)[^"]*"', outside)
    assert "url(" not in page and "@import" not in page and "innerHTML" not in page


def test_names_from_a_campaign_are_text_wherever_they_are_put(tmp_path):
    cells = pages.moved(5.0, shapes=1)
    hostile = tuple(
        dataclasses.replace(item, rows=evidence.each_row([item], shape=pages.HOSTILE)[0].rows) for item in cells
    )
    failed = evidence.change_status(pages.moved(0.0), "r2_A", outcome=Outcome.OP_FAILED, reason=pages.HOSTILE)
    directory = pages.write(tmp_path, {"mm": hostile, "sort": failed}, {})
    finish.render(directory)
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert "alert(1)" in page, "it is shown"
    assert "<script>alert" not in page and "<i>out of" not in page and page.count("</script>") == 2
    assert data(page)["mm"]["shapes"][0][1] == pages.HOSTILE


def test_many_ops_share_the_points_of_the_telemetry(campaign, monkeypatch):
    assert collecting.Pages(campaign).points == 400
    monkeypatch.setattr(collecting.store, "ops", lambda plan: tuple(map(str, range(300))))
    assert collecting.Pages(campaign).points == 200


def test_sections_of_the_markdown_report_become_html():
    text = (
        "## A & B\n\n- one `x`\n- **two**\n\n```\n!!! <b>\n\nmore\n```\n\n| a | b |\n| --- | --- |\n| 1 \\| 2 | <i> |"
    )
    assert markup.html(text).split("\n") == [
        '<h2 id="a-b">A &amp; B</h2>',
        "<ul><li>one <code>x</code></li><li><strong>two</strong></li></ul>",
        '<pre class="shout">!!! &lt;b&gt;',
        "",
        "more</pre>",
        '<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        "<tbody>",
        "<tr><td>1 | 2</td><td>&lt;i&gt;</td></tr>",
        "</tbody></table></div>",
    ]


def test_what_needs_no_look_is_folded_and_what_differs_is_not(page):
    before, _, after = page.partition('<h2 id="caliber"')[2].partition("<details>")
    assert "<td>switch.X</td>" in before and "equal on both sides" in after.partition("</summary>")[0]
    assert "<td>backend</td>" in after
