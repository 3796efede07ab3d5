"""`caliber reaccount`: the layout-conversion accounting of a finished campaign, derived again under a named rule.

From the sealed files only, nothing is measured. The published verdicts stay as they are: what a rule makes of them is
written beside, to `reaccount/<rule>.json`, and may only take claims back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import codec, receipts, store
from harness.accounting import RULES, Account, Change, Rule, Topology, account, published, stand
from harness.findings import OpVerdict, Verdict
from harness.grid import grid
from harness.records import CellEvidence, ExitCode, Refusal

SCHEMA = 1


class RuleUnknown(Refusal):
    """A rule name that the registry does not have."""


class EvidenceChanged(Refusal):
    """A fingerprint is not what its runner left; nothing is derived from it."""

    code = ExitCode.CALIBER


@dataclass(frozen=True)
class Workload:
    """One op: what its verdict claimed, what the rule counts, and what stands."""

    op: str
    verdict: Verdict  # of the op's latency; no accounting changes it
    published: Account
    found: Account
    stands: Topology
    change: Change
    why: str


@dataclass(frozen=True)
class Reaccount:
    """`reaccount/<rule>.json`. Every workload in plan order; those without a verdict on file by name only."""

    schema: int
    campaign: str
    rule: str
    text: str
    workloads: tuple[Workload, ...]
    without_verdict: tuple[str, ...]


def reaccount(directory: Path, name: str) -> Reaccount:
    """Derive the accounting of a campaign under rule `name` and write it. The same files give the same bytes."""
    rule = _rule(name)
    plan = store.read_plan(directory)
    judged = [op for op in store.ops(plan) if (directory / op / "verdict.json").exists()]
    found = Reaccount(
        schema=SCHEMA,
        campaign=plan.campaign,
        rule=rule.name,
        text=rule.text,
        workloads=tuple(_workload(directory, op, store.op_evidence(directory, plan, op), rule) for op in judged),
        without_verdict=tuple(op for op in store.ops(plan) if op not in judged),
    )
    codec.write(directory / "reaccount" / f"{name}.json", found)
    return found


def table(found: Reaccount) -> str:
    """For the terminal: the rule in its own words, what changed and why, then every workload."""
    demoted = [item for item in found.workloads if item.change == "demoted"]
    lines = [
        f"{found.campaign}: {len(found.workloads)} workloads under {found.rule}: {len(demoted)} demoted, "
        f"{sum(item.change == 'not promoted' for item in found.workloads)} not promoted",
        found.text,
        *(f"  {item.op}: {item.published.topology.value} -> {item.stands.value}: {item.why}" for item in demoted),
        *(f"  {op}: no verdict on file, nothing to account for" for op in found.without_verdict),
    ]
    rows = [
        (item.op, item.verdict.value, item.published.topology.value, item.found.topology.value, item.stands.value,
         item.change, item.found.reason)
        for item in found.workloads
    ]  # fmt: skip
    titles = ("op", "latency", "published", "under this rule", "stands", "change", "counts A -> B")
    return "\n".join(lines) + "\n\n" + grid(titles, rows) + "\n"


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise RuleUnknown(f"no rule {name!r}; the registry has {', '.join(RULES)}")
    return RULES[name]


def _workload(directory: Path, op: str, cells: Sequence[CellEvidence], rule: Rule) -> Workload:
    _check(directory, cells)
    verdict = codec.read(OpVerdict, directory / op / "verdict.json")
    before, now = published(verdict.metrics), account(cells, rule)
    stands, change, why = stand(before, now)
    return Workload(op, verdict.verdict, before, now, stands, change, why)


def _check(directory: Path, cells: Sequence[CellEvidence]) -> None:
    """Every fingerprint that is read must be the one its runner hashed."""
    for item in cells:
        if item.status is None or "fingerprint.json" not in item.status.evidence_sha256:
            continue
        path = store.attempt_directory(directory / item.cell.key, item.status.attempt) / "fingerprint.json"
        expected = item.status.evidence_sha256["fingerprint.json"]
        found = receipts.sha256(path) if path.exists() else "missing"
        if found != expected:
            raise EvidenceChanged(
                f"!!! [caliber] {path}: is {found}, its runner left {expected}; restore it, or see `caliber verify`"
            )
