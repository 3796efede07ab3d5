"""What a console log says besides its tables: markers, failures, skips. Owns their wording.

A table is printed after all its shapes have run, so a marker belongs to the next table of its file; one that no table
follows concerns the whole run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from harness.foreign.entries import dtype_text
from harness.foreign.reading import Text
from harness.foreign.tables import TITLE
from harness.records import Marker

#: Printed by a run that tuned itself and wrote down what it chose.
RECORDED = "AUTOTUNE_RECORDED"
NAMES = (
    RECORDED,
    Marker.AUTOTUNE_REPLAY_FALLBACK.value,
    Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH.value,
    Marker.BENCHMARK_CAPTURE_POISONED.value,
)
#: `NAME=0` is a count of none, and `--expect NAME` an option.
MARK = re.compile(rf"(?<![\w-])({'|'.join(NAMES)})\b(?!\s*[=:]\s*0\b)")
OP_FAILED = re.compile(r"FAILED: Operator=(?P<op>\S+) (?P<rest>.*)")
TEST_FAILED = re.compile(r"(?:FAILED|ERROR) (?P<node>\S+\.py\S*)(?: - (?P<reason>.*))?$")
TEST_SKIPPED = re.compile(r"SKIPPED \[\d+\] (?P<reason>.*)$")
COUNTED = re.compile(r"=+ .*?\b(?P<count>\d+) (?:failed|error)s?\b.* in [\d.]+s.*=+$")

REPEAT = re.compile(r"\brepeat=(\d+)\b")


@dataclass
class Marks:
    """Markers by (op, dtype) of their table, and those without one; repeat counts they tell; failures; skips."""

    placed: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unplaced: Counter[str] = field(default_factory=Counter)
    repeats: set[int] = field(default_factory=set)
    failed_ops: dict[str, str] = field(default_factory=dict)
    failed_tests: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def total(self) -> Counter[str]:
        """Every marker of the run."""
        return sum(self.placed.values(), Counter(self.unplaced))

    def of(self, op: str, dtype: str) -> Counter[str]:
        """The markers that rows of one table must be judged by."""
        return self.unplaced + self.placed.get((op, dtype), Counter())


def scan(text: Text, found: Marks) -> None:
    """Add what one file says to `found`."""
    pending: Counter[str] = Counter()
    for number, line in enumerate(text.lines, 1):
        title = TITLE.match(line)
        if title and pending:
            found.placed[title["op"], dtype_text(title["dtype"])] += pending
            pending = Counter()
        marker = MARK.search(line)
        if marker:
            pending[marker[1]] += 1
            found.repeats |= set(map(int, REPEAT.findall(line)))
        _ended(line, text.place(number), found)
    found.unplaced += pending


def _ended(line: str, place: str, found: Marks) -> None:
    operator, test, skip = OP_FAILED.match(line), TEST_FAILED.match(line), TEST_SKIPPED.match(line)
    if operator:
        found.failed_ops.setdefault(operator["op"], f"{operator['rest'].strip()} ({place})")
    elif test:
        found.failed_tests[test["node"]] = f"{test['reason'] or 'no reason given'} ({place})"
    elif COUNTED.match(line) and not found.failed_tests and not found.failed_ops:
        found.failed_tests["pytest"] = f"{line.strip('= ')} ({place})"
    elif skip:
        found.skipped.append(skip["reason"])
