"""The markdown of caliber's own report sections -> HTML: headings, tables, lists, fenced blocks, paragraphs.

One wording for report.md and report.html. Knows the few forms that those sections use, and escapes all text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape

#: Longer tables are folded.
FOLDED = 25
_BLOCK = re.compile(r"```\n(.*?)\n```|\n{2,}", re.DOTALL)
_CELL = re.compile(r"(?<!\\)\|")


Dull = Callable[[Sequence[str]], bool]


def html(markdown: str, dull: Dull | None = None, called: str = "more rows") -> str:
    """One section. Rows of a table that are `dull` are folded away below the others, under what they are `called`."""
    return "\n".join(filter(None, (_block(block, dull, called) for block in _blocks(markdown))))


def heading(text: str) -> str:
    """`<h2>` with an id to link to."""
    name = re.sub(r"[^a-z]+", "-", text.lower()).strip("-")
    return f'<h2 id="{name}">{inline(text)}</h2>'


def inline(text: str) -> str:
    """Escaped text; **strong** and `code` kept."""
    safe = escape(text)
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], foldable: bool = True) -> str:
    """A table in a box that scrolls by itself; a long one is folded. Cells are HTML already."""
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    found = scrolling(f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>")
    return fold(f"All {len(rows)} rows", found) if foldable and len(rows) > FOLDED else found


def fold(summary: str, content: str) -> str:
    """Closed until asked for."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def scrolling(table: str) -> str:
    """A box that a wide table scrolls in, by keyboard too, so that the page does not."""
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _blocks(markdown: str) -> Iterator[str]:
    """Fenced blocks whole, the rest split at blank lines."""
    start = 0
    for match in _BLOCK.finditer(markdown):
        yield markdown[start : match.start()]
        if match[1] is not None:
            yield match[0]
        start = match.end()
    yield markdown[start:]


def _block(block: str, dull: Dull | None, called: str) -> str:
    lines = [line for line in block.split("\n") if line]
    if not lines:
        return ""
    if lines[0].startswith("## "):
        return heading(lines[0][3:])
    if lines[0] == "```":
        return f'<pre class="shout">{escape(block[4:-4])}</pre>'
    if lines[0].startswith("| "):
        titles, _, *rows = map(_cells, lines)
        return _split(titles, rows, dull, called) if dull else table(titles, rows)
    if lines[0].startswith("- "):
        return "<ul>" + "".join(f"<li>{inline(line[2:])}</li>" for line in lines) + "</ul>"
    return f"<p>{inline(' '.join(lines))}</p>"


def _split(titles: Sequence[str], rows: Sequence[Sequence[str]], dull: Dull, called: str) -> str:
    telling, rest = [row for row in rows if not dull(row)], [row for row in rows if dull(row)]
    found = table(titles, telling) if telling else ""
    return f"{found}\n{fold(f'{len(rest)} {called}', table(titles, rest, foldable=False))}" if rest else found


def _cells(line: str) -> list[str]:
    return [inline(cell.strip().replace("\\|", "|")) for cell in _CELL.split(line)[1:-1]]
