"""How often the verdict engine is wrong, and how often it sees: campaigns with known effects, judged by the real code.

    python benchmarks/verdict_simulation.py [ops per null line, default 1000]

Every line is one world and one number of rounds. An op has 42 shapes whose noise (sd of a round delta, median 0.4 %)
differs from shape to shape. Null worlds are judged with a margin of 0.01 %, so that the statistics alone keep the
claims down; effects with the margin named. Columns, in per cent, +- one Monte-Carlo standard error where it matters:
  any     ops of which a null shape is claimed FASTER or SLOWER, where no shape has an effect: at most q = 5
  plain   the same with a plain t test and Benjamini-Hochberg
  op      null ops whose own verdict is a claim: at most 5
  claims  null shapes that were claimed
  raw     null shapes with p < 0.05 unadjusted: 5 if the p values are honest
  power   shapes with the effect that were claimed, right way     (plain)  with plain t, same margin
  fdr     false claims among the claims of an op, mean            same     shapes called SAME
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special, stats

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import statistics
from harness.decision import weigh
from harness.findings import Verdict
from harness.margin import Bar
from harness.rules import decide
from harness.statistics import Array

SHAPES = 42
ROUNDS = (4, 6, 8, 10)
Q = 0.05
#: Effect worlds are there for power, which needs fewer ops than a rate of 5 %.
SHARE_OF_EFFECTS = 10


@dataclass(frozen=True)
class World:
    """What is true. Sizes are log ratios; `jolt` hits all shapes of one cell, `wander` both cells of a round."""

    name: str
    effect: float = 0.0
    share: float = 1.0  # of the shapes that have the effect
    slot: float = 0.0
    jolt: float = 0.0
    wander: float = 0.0
    tails: bool = False  # one value in ten is ten times as far off
    modes: float = 0.0  # distance of two modes that each cell of each shape falls into at random
    alike: bool = False  # all shapes equally noisy
    shapes: int = SHAPES
    margin: float = 0.0001

    @property
    def null(self) -> bool:
        return self.effect == 0.0


WORLDS = (
    World("null"),
    World("null, 12 shapes", shapes=12),
    World("null, shapes alike", alike=True),
    World("null, slot penalty 1 %", slot=0.01),
    World("null, drift 1 % a round", wander=0.01),
    World("null, heavy tails", tails=True),
    World("null, bimodal 2 %", modes=0.02),
    World("null, process jolts 0.5 %", jolt=0.005),
    World("1 % on all shapes", 0.01, margin=0.005),
    World("1 % on a quarter", 0.01, 0.25, margin=0.005),
    World("1 % on a quarter, slot, drift, tails", 0.01, 0.25, slot=0.01, wander=0.01, tails=True, margin=0.005),
    World("1 % on a quarter, bimodal 2 %", 0.01, 0.25, modes=0.02, margin=0.005),
    World("0.5 % on all shapes", 0.005, margin=0.002),
    World("0.5 % on a quarter", 0.005, 0.25, margin=0.002),
    World("0.5 % on all, margin 0.5 %: SAME is wrong", 0.005, margin=0.005),
)
COLUMNS = ("any", "plain", "op", "claims", "raw", "power", "(plain)", "fdr", "same")


def levels(world: World, order: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Log latencies (S, N) of A and of B, and the true effect (S,)."""
    shape = (world.shapes, len(order))
    spread = 1.0 if world.alike else np.sqrt(4 / rng.chisquare(4, (world.shapes, 1)))
    truth = np.where(np.arange(world.shapes) < round(world.share * world.shapes), world.effect, 0.0)
    shared = np.cumsum(rng.normal(0, world.wander, len(order)))
    sides = []
    for position in (-order, order):  # +1: this side runs second
        noise = 0.004 / math.sqrt(2) * spread * rng.normal(0, 1, shape)
        if world.tails:
            noise *= np.where(rng.random(shape) < 0.1, 10, 1) / math.sqrt(0.9 + 0.1 * 100)
        noise += world.modes * (rng.random(shape) < 0.5)
        cell = rng.normal(0, world.jolt, len(order)) + world.slot * (position + 1) / 2
        sides.append(noise + shared + cell)
    return sides[0], sides[1] + truth[:, None], truth


def plain(deltas: Array, order: Array, limit: Bar) -> Array:
    """Claims (S,) of a plain t test per shape with Benjamini-Hochberg, slot term and margin alike."""
    model = statistics.fit(deltas, order)
    se = np.sqrt(np.sum(model.residuals**2, axis=1) / model.df * model.leverage)
    p = stats.false_discovery_control(2 * special.stdtr(model.df, -np.abs(model.delta) / se))
    return (p < Q) & (np.abs(model.delta) > limit.margin)  # type: ignore[no-any-return]


def judged(world: World, rounds: int, rng: np.random.Generator) -> dict[str, float]:
    """One op; each column as a share of what it counts, nan where there is nothing to count."""
    order = np.where(rng.permutation(rounds) < rounds // 2, 1.0, -1.0)
    a, b, truth = levels(world, order, rng)
    deltas, null = b - a, truth == 0.0
    limit = Bar(math.log1p(world.margin), 0.0, q=Q)
    weighed = weigh(deltas, order, [limit] * world.shapes)
    claims = np.array([verdict.claims for verdict in weighed.verdicts])
    right = claims & (np.array([each.delta for each in weighed.found]) * truth > 0)
    textbook = plain(deltas, order, limit)
    op = statistics.estimate(deltas.mean(axis=0), order)
    op_claims = decide(op, deltas.mean(axis=0), op.p, limit)[0].claims
    return {
        "any": float(claims.any()) if world.null else math.nan,
        "plain": float(textbook.any()) if world.null else math.nan,
        "op": float(op_claims) if world.null else math.nan,
        "claims": claims[null].mean() if null.any() else math.nan,
        "raw": np.mean([each.p < 0.05 for each in itertools.compress(weighed.found, null)]) if null.any() else math.nan,
        "power": math.nan if world.null else right[~null].mean(),
        "(plain)": math.nan if world.null else textbook[~null].mean(),
        "fdr": math.nan if world.null else (claims & null).sum() / max(1, claims.sum()),
        "same": np.mean([verdict is Verdict.SAME for verdict in weighed.verdicts]),
    }


def line(world: World, rounds: int, ops: int) -> str:
    """A world's rates over `ops` ops."""
    rng = np.random.default_rng([rounds, WORLDS.index(world)])
    runs = [judged(world, rounds, rng) for _ in range(ops)]
    cells = [_cell(np.array([run[column] for run in runs]), column == "any") for column in COLUMNS]
    return f"{world.name:42}{rounds:3}{ops:6}" + "".join(cells)


def _cell(values: Array, with_error: bool) -> str:
    if np.isnan(values).any():
        return f"{'':>12}" if with_error else f"{'':>9}"
    mean, error = 100 * values.mean(), 100 * values.std() / math.sqrt(len(values))
    return f"{f'{mean:.1f} +-{error:.1f}':>12}" if with_error else f"{mean:9.1f}"


def main(ops: int) -> None:
    """Print one line per world and number of rounds."""
    titles = "".join(f"{column:>12}" if column == "any" else f"{column:>9}" for column in COLUMNS)
    print(f"{'world':42}{'N':>3}{'ops':>6}{titles}")
    for world, rounds in itertools.product(WORLDS, ROUNDS):
        print(line(world, rounds, ops if world.null else max(1, ops // SHARE_OF_EFFECTS)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
