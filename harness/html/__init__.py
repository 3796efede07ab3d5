"""report.html: one self-contained page that opens offline, from the same values as report.md.

`details` reads what only the page shows (telemetry, code texts); `payload`, `sections`, `markup` and `page` take values
and return text. Everything that comes from a campaign is escaped in Python, or enters the page as JSON that the script
puts into text nodes only.
"""

from __future__ import annotations

from harness.html.collecting import Pages
from harness.html.page import page

__all__ = ["Pages", "page"]
