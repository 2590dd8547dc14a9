"""Judge the paper's findings, and our own, by the numbers of our runs.

One function per target yields a :class:`Verdict` on each finding that its cells allow. Most rest on a paired comparison
over seeds.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from graphpartner.graph.catalogue import CATALOGUE, title
from graphpartner.lab.experiments.experiment import load_experiments
from graphpartner.lab.experiments.results import Cell, curve, find_cell, graphs_of, means
from graphpartner.system.files import write_atomically

SIGNIFICANT = 0.05  # p below which a difference counts as more than chance
MIN_PAIRS = 3  # of runs; two cannot show a difference

ENSEMBLE = "ensemble of 16"
CORRECTED = "Corrected"
PAPER_ROW = "GPNN (paper)"
AHEAD_OF_ALL = "Our best preset is ahead of every baseline"
NEAR = 1.0  # points of accuracy
ROUNDING = 1e-6  # relative: energies are sums of float32 products
DEEP = 6  # "when the propagation step increases to 6"
SHALLOW = 4
COLLAPSE = 10.0  # points of accuracy lost
STABLE = 1.0  # points of accuracy that may be lost
KEPT = 0.8  # share of its MADGap that a stable model keeps
SLIGHT = 1.0  # points of accuracy
ALMOST_ZERO = 0.01  # of the energy of the input


@dataclass(frozen=True)
class Verdict:
    """Whether a finding holds.

    Attributes:
        target: the table or figure behind it.
        finding: the claim.
        rule: the condition under which it holds.
        holds: None where data is missing.
        numbers: those the verdict follows from, as text.
        ours: whether it is this project's claim rather than the paper's.
    """

    target: str
    finding: str
    rule: str
    holds: bool | None
    numbers: str
    ours: bool = False


class Paired(NamedTuple):
    """The mean difference of two rows over runs with the same seed, hence the same split."""

    mean: float
    p: float
    """Of a two-sided t-test that the mean is zero."""
    pairs: int

    @property
    def ahead(self) -> bool:
        """Whether the first row is significantly higher."""
        return self.mean > 0 and self.p < SIGNIFICANT

    def __str__(self) -> str:
        return f"{self.mean:+.2f} (p = {self.p:.2g}, {self.pairs} pairs)"


def paired(first: Sequence[Cell], second: Sequence[Cell]) -> Paired | None:
    """Compare cells pair by pair and seed by seed; None with fewer than :data:`MIN_PAIRS` pairs of runs."""
    differences = []
    for a, b in zip(first, second, strict=True):
        other = dict(zip(b.seeds, b.values, strict=False))
        differences += [value - other[seed] for seed, value in zip(a.seeds, a.values, strict=False) if seed in other]
    if len(differences) < MIN_PAIRS:
        return None
    if stdev(differences) == 0:
        return Paired(differences[0], 1.0 if differences[0] == 0 else 0.0, len(differences))
    from scipy import stats

    p = float(stats.ttest_1samp(differences, 0.0).pvalue)
    return Paired(fmean(differences), p, len(differences))


def nearly(difference: float) -> bool:
    """Return whether a difference is at most :data:`NEAR` below zero."""
    return difference >= -NEAR - 1e-9  # binary fractions


def table1(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Compare GPNN with baselines per graph: the paper's method with the paper's, the best preset with all."""
    # the rows of the files, not of the cells: one that was not run may be ahead
    files = load_experiments("table1")
    rows = {name: file for file in files for name, row in file.rows.items() if row.method != "gpnn"}
    in_paper = [name for name, file in rows.items() if file.published]
    for graph in graphs_of(cells):
        finding = f"GPNN is ahead of the paper's nine baselines on {title(graph)}"
        yield from _ahead(cells, PAPER_ROW, in_paper, graph, finding)
        yield from _ahead(cells, "GPNN (best)", list(rows), graph, f"{AHEAD_OF_ALL} on {title(graph)}", ours=True)
    differences: dict[str, dict[str, float]] = {}
    for cell in cells:
        if cell.mean is not None and cell.elsewhere is not None and CATALOGUE[cell.graph].has_public_split:
            differences.setdefault(cell.row, {})[cell.graph] = cell.mean - cell.elsewhere
    for row, by_graph in differences.items():
        yield Verdict(
            "table1",
            f"Our {row} reaches what is published elsewhere for it on the public splits",
            f"on none of them more than {NEAR:g} point below",
            nearly(min(by_graph.values())),
            ", ".join(f"{title(graph)} {value:+.2f}" for graph, value in by_graph.items()),
            ours=True,
        )


def _ahead(
    cells: Sequence[Cell], row: str, others: Sequence[str], graph: str, finding: str, ours: bool = False
) -> Iterator[Verdict]:
    """Judge whether a row is ahead of all others on a graph."""
    own = find_cell(cells, row, graph)
    ahead: list[str] = []
    behind: list[str] = []
    unknown: list[str] = []
    for name in others:
        other = find_cell(cells, name, graph)
        difference = paired([own], [other]) if own is not None and other is not None else None
        if difference is None:
            unknown.append(name)
        else:
            (ahead if difference.ahead else behind).append(f"{name} {difference}")
    if own is None or not ahead + behind:
        return
    yield Verdict(
        "table1",
        finding,
        f"{row} less the baseline, over the same seeds and splits: above 0 with p < 0.05",
        False if behind else None if unknown else True,
        f"{own.mean:.1f}"
        + (f"; not ahead of {', '.join(behind)}" if behind else "")
        + f"; ahead of {', '.join(ahead) or 'none'}"
        + (f"; too few runs: {', '.join(unknown)}" if unknown else ""),
        ours,
    )


def table3(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Judge which graphs enhancement helps most, and whether new edges are better than the original ones."""
    gains: dict[str, Paired] = {}
    for graph in graphs_of(cells):
        on, off = (find_cell(cells, row, graph) for row in ("with enhancement", "without enhancement"))
        gain = paired([on], [off]) if on is not None and off is not None else None
        if gain is not None:
            gains[graph] = gain
    if {"coauthor-cs", "citeseer"} < set(gains):
        most = sorted(gains, key=lambda graph: -gains[graph].mean)[:2]
        yield Verdict(
            "table3",
            "Enhancement helps Coauthor CS and CiteSeer most",
            "their gains are the two largest, and above 0",
            set(most) == {"coauthor-cs", "citeseer"} and min(gains[graph].mean for graph in most) > 0,
            ", ".join(f"{title(graph)} {gain}" for graph, gain in gains.items()),
        )
    for graph in graphs_of(cells):
        pairs = [
            [find_cell(cells, "edges", graph, f"{kind}_{name}") for kind in ("new", "original")]
            for name in ("rate", "similarity")
        ]
        if any(cell is None for pair in pairs for cell in pair):
            continue
        (new_rate, old_rate), (new_cosine, old_cosine) = ([cell.mean for cell in pair if cell] for pair in pairs)
        better = (new_rate or 0) > (old_rate or 0), (new_cosine or 0) > (old_cosine or 0)
        yield Verdict(
            "table3",
            f"New edges are of higher quality than the original ones on {title(graph)}",
            "their same-label rate and their mean cosine are both higher",
            all(better),
            f"rate {old_rate:.1f} → {new_rate:.1f} %, cosine {old_cosine:.2f} → {new_cosine:.2f}",
        )


def table4(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Compare wall time and parameters with GCNII."""
    for how in ("one by one", "together"):
        faster, ratios = 0, []
        for graph in graphs_of(cells):
            ours, theirs = (find_cell(cells, f"{name}, {how}", graph, "seconds") for name in ("GPNN", "GCNII"))
            if ours is None or theirs is None or not ours.mean or theirs.mean is None:
                continue
            faster += ours.mean < theirs.mean
            ratios.append(f"{title(graph)} {theirs.mean / ours.mean:.2f}×")
        if ratios:
            yield Verdict(
                "table4",
                f"GPNN trains faster than GCNII on 5 of 6 graphs, runs {how}",
                "fewer seconds per run, everything included, on at least 5 of the 6 graphs",
                None if len(ratios) < 6 and faster < 5 else faster >= 5,
                f"faster on {faster} of {len(ratios)}: {', '.join(ratios)}",
            )
    counts, fewer = [], True
    for graph in graphs_of(cells):
        ours, theirs = (find_cell(cells, f"{name}, one by one", graph, "parameters") for name in ("GPNN", "GCNII"))
        if ours is not None and theirs is not None and ours.mean is not None and theirs.mean is not None:
            fewer &= ours.mean < theirs.mean
            counts.append(f"{title(graph)} {ours.mean:,.0f} against {theirs.mean:,.0f}")
    if counts:
        yield Verdict("table4", "GPNN has fewer parameters than GCNII", "on every graph", fewer, ", ".join(counts))


def fig1(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Judge the energy, singular values and bounds of an 8-layer GCN."""
    for graph in graphs_of(cells):
        energy = means(curve(cells, "GCN", graph, "layer_energy", "layer"))
        smallest = means(curve(cells, "GCN", graph, "layer_s_min", "layer"))
        lower, upper = (means(curve(cells, "GCN", graph, name, "layer")) for name in ("layer_lower", "layer_upper"))
        start = means([cell for cell in cells if (cell.graph, cell.measure) == (graph, "input_energy")])
        if not energy or not start:
            continue
        shares = [value / start[0] for value in energy[:SHALLOW]]
        yield Verdict(
            "fig1",
            f"On {title(graph)} the energy of an 8-layer GCN is almost zero in its first {SHALLOW} layers",
            f"each is below {ALMOST_ZERO:.0%} of the input's energy",
            max(shares) < ALMOST_ZERO,
            f"{_list(shares, '.2g')} of the input's {start[0]:.3g}",
        )
        yield Verdict(
            "fig1",
            f"On {title(graph)} its weight matrices have extremely small singular values",
            "the median over layers of the squared smallest one is below 0.01",
            sorted(smallest)[len(smallest) // 2] < 0.01,
            f"squared smallest singular values {_list(smallest, '.2g')}",
        )
        inside = sum(low <= value <= high for low, value, high in zip(lower, energy, upper, strict=True))
        yield Verdict(
            "fig1",
            f"On {title(graph)} the energy of every layer lies within the bounds of Eq. 6",
            "lower ≤ energy ≤ upper in every layer, as printed; a ReLU voids the lower bound, a bias both",
            inside == len(energy),
            f"{inside} of {len(energy)} layers do",
        )


def fig3(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Compare GCN, GAT and GPNN over 2 … 15 steps."""
    for graph in graphs_of(cells):
        rows = {row: curve(cells, row, graph) for row in ("GPNN", "GCN", "GAT")}
        gaps = {row: curve(cells, row, graph, "mad_gap") for row in rows}
        for row in ("GCN", "GAT"):
            if not _has_depth(rows[row], gaps[row]):
                continue
            best, deep, gap, deep_gap = _shallow_and_deep(rows[row], gaps[row])
            yield Verdict(
                "fig3",
                f"On {title(graph)} {row} collapses past {DEEP} steps",
                f"past {DEEP} steps its mean accuracy is {COLLAPSE:g} points below its best before, and its mean "
                "MADGap below half of the largest before",
                deep <= best - COLLAPSE and deep_gap < gap / 2,
                f"accuracy {best:.1f} → {deep:.1f}, MADGap {gap:.3f} → {deep_gap:.3f}",
            )
        if _has_depth(rows["GPNN"], gaps["GPNN"]):
            best, deep, gap, deep_gap = _shallow_and_deep(rows["GPNN"], gaps["GPNN"])
            yield Verdict(
                "fig3",
                f"On {title(graph)} GPNN does not collapse past {DEEP} steps",
                f"past {DEEP} steps its mean accuracy is at most {STABLE:g} point below its best before, and its mean "
                f"MADGap at least {KEPT:.0%} of the largest before",
                deep >= best - STABLE and deep_gap >= KEPT * gap,
                f"accuracy {best:.1f} → {deep:.1f}, MADGap {gap:.3f} → {deep_gap:.3f}",
            )
        yield from _shallow(graph, rows, gaps)


def _shallow(graph: str, rows: dict[str, list[Cell]], gaps: dict[str, list[Cell]]) -> Iterator[Verdict]:
    ours, theirs = (_at_depth(rows["GPNN"]), _at_depth(gaps["GPNN"])), {}
    for row in ("GCN", "GAT"):
        theirs[row] = _at_depth(rows[row]), _at_depth(gaps[row])
    depths = [
        step for step in ours[0] if step <= SHALLOW and all(step in part for pair in theirs.values() for part in pair)
    ]
    if not depths:
        return
    smaller = [step for step in depths if all(ours[1][step] < gap[step] for _, gap in theirs.values())]
    higher = [step for step in depths if all(ours[0][step] > accuracy[step] for accuracy, _ in theirs.values())]
    numbers = "; ".join(
        f"l = {step:g}: MADGap {ours[1][step]:.3f} against "
        + " and ".join(f"{gap[step]:.3f} ({row})" for row, (_, gap) in theirs.items())
        + f", accuracy {ours[0][step]:.1f} against "
        + " and ".join(f"{accuracy[step]:.1f}" for accuracy, _ in theirs.values())
        for step in depths
    )
    yield Verdict(
        "fig3",
        f"When shallow, GPNN has the smaller MADGap and the higher accuracy on {title(graph)}",
        f"smaller and higher than GCN and GAT at every depth up to {SHALLOW}",
        smaller == depths and higher == depths,
        numbers,
    )


def _has_depth(accuracy: list[Cell], gap: list[Cell]) -> bool:
    steps = [cell.at["steps"] for cell in accuracy]
    return bool(gap) and bool(steps) and min(steps) <= DEEP < max(steps)


def _shallow_and_deep(accuracy: list[Cell], gap: list[Cell]) -> tuple[float, float, float, float]:
    """Return the best accuracy up to :data:`DEEP` steps and the mean beyond; the same of MADGap."""
    parts = []
    for cells in (accuracy, gap):
        parts.append(max(means([cell for cell in cells if cell.at["steps"] <= DEEP])))
        parts.append(fmean(means([cell for cell in cells if cell.at["steps"] > DEEP])))
    return parts[0], parts[1], parts[2], parts[3]


def _at_depth(cells: list[Cell]) -> dict[float, float]:
    return {cell.at["steps"]: cell.mean for cell in cells if cell.mean is not None}


def fig4(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Compare GPNN with itself without partner and without rectification."""
    for graph in graphs_of(cells):
        full, alone, unrectified = (curve(cells, row, graph) for row in ("full", "w/o partner", "w/o rectification"))
        if len(full) > 1 and len(full) == len(alone):
            falls = [max(means(each)) - means(each)[-1] for each in (full, alone)]
            gap = paired(full[-1:], alone[-1:])
            yield Verdict(
                "fig4",
                f"Without the partner accuracy falls faster on {title(graph)}",
                "from its best to the deepest it loses more, and at the deepest the whole model is ahead (paired, "
                "p < 0.05)",
                None if gap is None else falls[1] > falls[0] and gap.ahead,
                f"at l = {full[-1].at['steps']:g} {falls[0]:.1f} points lost with the partner, {falls[1]:.1f} without; "
                f"difference there {gap}",
            )
        if full and len(full) == len(unrectified):
            helps = paired(full, unrectified)
            if helps is not None:
                yield Verdict(
                    "fig4",
                    f"Rectification helps slightly on {title(graph)}",
                    f"accuracy with it less accuracy without, over all depths, is above 0 (paired, p < 0.05) and below "
                    f"{SLIGHT:g} point",
                    helps.ahead and helps.mean < SLIGHT,
                    f"difference {helps}",
                )


def fig5(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Judge energy and accuracy over steps, with and without the contrastive loss."""
    for graph in graphs_of(cells):
        raised, plain = (curve(cells, row, graph, "energy") for row in ("with", "without"))
        accuracy = curve(cells, "with", graph)
        if raised and len(raised) == len(plain):
            ratios = [a / b for a, b in zip(means(raised), means(plain), strict=True)]
            yield Verdict(
                "fig5",
                f"The contrastive loss raises the energy of H^(l+1) at every depth on {title(graph)}",
                "energy with it above energy without it at every depth",
                min(ratios) > 1,
                f"{min(ratios):.3g} to {max(ratios):.3g} times as much over {len(ratios)} depths",
            )
        if len(raised) > 2 and len(accuracy) == len(raised):
            energies, values = means(raised), means(accuracy)
            falling = all(after < before for before, after in pairwise(energies))
            top = values.index(max(values))
            rise, fall = (paired([accuracy[top]], [accuracy[end]]) for end in (0, -1))
            yield Verdict(
                "fig5",
                f"Accuracy first rises, then falls with depth while energy only falls on {title(graph)}",
                "the best depth is ahead of the shallowest and of the deepest (paired, p < 0.05), and energy falls at "
                "every step",
                None if rise is None or fall is None else falling and rise.ahead and fall.ahead,
                f"accuracy {values[0]:.1f} → {values[top]:.1f} (l = {accuracy[top].at['steps']:g}) → {values[-1]:.1f}; "
                f"energy {energies[0]:.3g} → {energies[-1]:.3g}, {'' if falling else 'not '}falling at every step",
            )


def _list(values: Sequence[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def bounds(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Judge Propositions 1 and 2 on trained models, even and odd l apart."""
    for graph in graphs_of(cells):
        points: dict[tuple[float, ...], dict[str, list[float]]] = {}
        for cell in cells:
            if cell.graph == graph and cell.values:
                points.setdefault(tuple(cell.at.values()), {"steps": [cell.at["steps"]]})[cell.measure] = cell.values
        for claim, low, high in (
            ("Proposition 1: the partner raises the energy", "graph_energy", "mixed_energy"),
            ("Proposition 2: the energy is at least α² E(H^φ1)", "published_lower", "mixed_energy"),
            ("Proposition 2: the energy is at most E(H^φ1) [α² + (1 − λ₀)^l]", "mixed_energy", "published_upper"),
            (f"{CORRECTED}: the energy is at most E(H^φ1) [α² + (1 − α²) q^l]", "mixed_energy", "upper"),
            (f"{CORRECTED}: the energy is at least the lower bound for all l", "lower", "mixed_energy"),
        ):
            for parity, word in ((0, "even"), (1, "odd")):
                held = [
                    all(a <= b * (1 + ROUNDING) + 1e-12 for a, b in zip(point[low], point[high], strict=True))
                    for point in points.values()
                    if point["steps"][0] % 2 == parity and low in point and high in point
                ]
                if held:
                    rule = "at every α and l measured, in every run"
                    numbers = f"holds at {sum(held)} of {len(held)} points (α, l)"
                    ours = claim.startswith(CORRECTED)
                    yield Verdict("bounds", f"{claim}, {word} l, {title(graph)}", rule, all(held), numbers, ours)


def scores(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Compare scores of the contrastive loss."""
    for graph in graphs_of(cells):
        plain = find_cell(cells, "inner, self", graph)
        for row, finding, wanted in (
            ("softmax, self", "A softmax after the inner product harms", "behind"),
            ("cosine, neighbours", "Cosine scores with neighbours as positives do as well as inner products", "level"),
        ):
            other = find_cell(cells, row, graph)
            difference = paired([other], [plain]) if other is not None and plain is not None else None
            if difference is None:
                continue
            if wanted == "level" and graph == "citeseer":
                finding, wanted = "Cosine scores with neighbours as positives improve significantly", "ahead"
            behind = difference.mean < 0 and difference.p < 0.05
            holds = {"behind": behind, "ahead": difference.ahead, "level": abs(difference.mean) < 1.0}[wanted]
            rule = {
                "behind": "less the inner product below 0 (paired, p < 0.05)",
                "ahead": "less the inner product above 0 (paired, p < 0.05)",
                "level": "less than 1 point from the inner product (paired mean)",
            }[wanted]
            yield Verdict(
                "scores", f"{finding} on {title(graph)}", rule, holds, f"less the inner product: {difference}"
            )


def beyond(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Judge each step beyond the paper; an ensemble is compared with its own members."""
    steps = ("paper", "tuned", "views", "distilled", ENSEMBLE)
    for graph in graphs_of(cells):
        for before, after in pairwise(steps):
            b = find_cell(cells, after, graph)
            a = (
                find_cell(cells, after, graph, "member_accuracy")
                if after == ENSEMBLE
                else find_cell(cells, before, graph)
            )
            if a is None or b is None or (difference := paired([b], [a])) is None:
                continue
            finding, rule = f"{before} → {after} helps on {title(graph)}", "above 0 (paired, p < 0.05)"
            numbers = f"{a.mean:.2f} → {b.mean:.2f}: {difference}"
            yield Verdict("beyond", finding, rule, difference.ahead, numbers, ours=True)


FINDINGS: dict[str, Callable[[Sequence[Cell]], Iterator[Verdict]]] = {
    "table1": table1, "table3": table3, "table4": table4, "fig1": fig1, "fig3": fig3, "fig4": fig4, "fig5": fig5,
    "bounds": bounds, "scores": scores, "beyond": beyond,
}  # fmt: skip
"""By target: the verdicts that its cells allow."""


def verdicts(results: Mapping[str, Sequence[Cell]]) -> list[Verdict]:
    """Return a verdict on every finding whose data is there."""
    return [verdict for target, judge in FINDINGS.items() if target in results for verdict in judge(results[target])]


def write_verdicts(path: Path, judged: list[Verdict]) -> None:
    """Write verdicts as JSON."""
    text = json.dumps([asdict(verdict) for verdict in judged], indent=1, ensure_ascii=False)
    write_atomically(path, f"{text}\n".encode())
