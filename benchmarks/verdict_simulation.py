"""How often the verdict engine is wrong, and how often it sees: campaigns with known effects, judged by the real code.

    python benchmarks/verdict_simulation.py [campaigns per line, default 200]

Every line is one world and one number of rounds. An op has 42 shapes whose noise (sd of a round delta, median 0.4 %)
differs from shape to shape. Columns, in per cent, but N:
  false    null shapes that were claimed FASTER or SLOWER        fdr   false claims among the claims of an op, mean
  power    shapes with the effect that were claimed, right way   same  null shapes called SAME
  op false, op power   the same for the op's own verdict, where no shape or every shape has the effect
  raw      null shapes with p < 0.05 before Benjamini-Hochberg: 5 if the p values are honest
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import statistics
from harness.decision import Bar, decide
from harness.findings import Verdict
from harness.statistics import Array

SHAPES = 42
ROUNDS = (4, 6, 8, 10)


@dataclass(frozen=True)
class World:
    """What is true. Sizes are log ratios; `jolt` hits all shapes of one cell, `wander` both cells of a round."""

    name: str
    effect: float = 0.0
    share: float = 1.0  # of the shapes that have the effect
    slot: float = 0.0
    jolt: float = 0.0
    wander: float = 0.0
    tails: bool = False
    margin: float = 0.005  # the user's; a claim of an effect that is no larger succeeds half the time at best


WORLDS = (
    World("null"),
    World("null, slot penalty 1 %", slot=0.01),
    World("null, shared drift 1 %", wander=0.01),
    World("null, heavy tails", tails=True),
    World("null, process jolts 0.5 %", jolt=0.005),
    World("1 % on all shapes", 0.01),
    World("1 % on a quarter", 0.01, 0.25),
    World("1 % on a quarter, jolts 0.5 %", 0.01, 0.25, jolt=0.005),
    World("1 % on a quarter, slot 1 %, drift 1 %, tails", 0.01, 0.25, slot=0.01, wander=0.01, tails=True),
    World("0.5 % on all shapes", 0.005),
    World("0.5 % on all shapes, margin 0.2 %", 0.005, margin=0.002),
    World("0.5 % on a quarter, margin 0.2 %", 0.005, 0.25, margin=0.002),
)


def levels(world: World, order: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Log latencies (S, N) of A and of B, and the true effect (S,)."""
    shape = (SHAPES, len(order))
    sd = 0.004 / math.sqrt(2) * np.sqrt(4 / rng.chisquare(4, (SHAPES, 1)))
    truth = np.where(np.arange(SHAPES) < round(world.share * SHAPES), world.effect, 0.0)
    shared = np.cumsum(rng.normal(0, world.wander, len(order)))
    sides = []
    for position in (-order, order):  # +1: this side runs second
        noise = sd * rng.normal(0, 1, shape)
        if world.tails:
            noise *= np.where(rng.random(shape) < 0.1, 10, 1) / math.sqrt(0.9 + 0.1 * 100)
        cell = rng.normal(0, world.jolt, len(order)) + world.slot * (position + 1) / 2
        sides.append(noise + shared + cell)
    return sides[0], sides[1] + truth[:, None], truth


def campaign(world: World, rounds: int, rng: np.random.Generator) -> dict[str, float]:
    """One op, judged; each column as a share of what it counts, nan where there is nothing to count."""
    order = np.where(rng.permutation(rounds) < rounds // 2, 1.0, -1.0)
    a, b, truth = levels(world, order, rng)
    deltas = b - a
    found = statistics.estimates(deltas, order)
    limit = Bar(math.log1p(world.margin), 0.0, q=0.05)
    adjusted = statistics.adjusted([each.p for each in found])
    verdicts = [decide(each, own, p, limit)[0] for each, own, p in zip(found, deltas, adjusted, strict=True)]
    claims = np.array([verdict.claims for verdict in verdicts])
    right = np.array([verdict is (Verdict.SLOWER if world.effect > 0 else Verdict.FASTER) for verdict in verdicts])
    null = truth == 0.0
    op = statistics.estimate(deltas.mean(axis=0), order)
    op_claims = decide(op, deltas.mean(axis=0), op.p, limit)[0].claims
    return {
        "false": claims[null].mean() if null.any() else math.nan,
        "fdr": (claims & null).sum() / max(1, claims.sum()),
        "power": right[~null].mean() if (~null).any() else math.nan,
        "same": np.mean([v is Verdict.SAME for v in itertools.compress(verdicts, null)]) if null.any() else math.nan,
        "raw": np.mean([each.p < 0.05 for each in itertools.compress(found, null)]) if null.any() else math.nan,
        "op false": float(op_claims) if null.all() else math.nan,
        "op power": math.nan if null.any() else float(op_claims),
    }


def main(campaigns: int) -> None:
    """Print one line per world and number of rounds."""
    columns = ("false", "fdr", "power", "same", "raw", "op false", "op power")
    print(f"{'world':46}{'N':>4}" + "".join(f"{column:>10}" for column in columns))
    for world, rounds in itertools.product(WORLDS, ROUNDS):
        rng = np.random.default_rng([rounds, WORLDS.index(world)])
        runs = [campaign(world, rounds, rng) for _ in range(campaigns)]
        means = (np.mean([run[column] for run in runs]) * 100 for column in columns)
        print(
            f"{world.name:46}{rounds:4}" + "".join(f"{'' if math.isnan(m) else f'{m:.1f}':>10}" for m in means),
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
