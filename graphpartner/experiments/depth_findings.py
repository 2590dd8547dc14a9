"""What the paper reads off its Figures 1, 3, 4 and 5, judged by the data behind ours."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from graphpartner.experiments.cells import Cell
from graphpartner.experiments.verdict import Verdict, curve, graphs_of, means, paired
from graphpartner.graph.catalogue import title

DEEP = 6  # "when the propagation step increases to 6"
SHALLOW = 4
COLLAPSE = 10.0  # points of accuracy lost
STABLE = 1.0  # points of accuracy that may be lost
KEPT = 0.8  # share of MADGap that stable means
SLIGHT = 1.0  # points of accuracy
ALMOST_ZERO = 0.01  # of the energy of the input


def fig1(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """Eight layers of GCN: vanishing energy, small singular values, bounds."""
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
    """GCN, GAT and GPNN over 2 … 15 steps."""
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
    told = "; ".join(
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
        told,
    )


def fig4(cells: Sequence[Cell]) -> Iterator[Verdict]:
    """GPNN without its partner, without rectification."""
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
    """The contrastive loss, energy and accuracy over steps."""
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


def _has_depth(accuracy: list[Cell], gap: list[Cell]) -> bool:
    steps = [cell.at["steps"] for cell in accuracy]
    return bool(gap) and bool(steps) and min(steps) <= DEEP < max(steps)


def _shallow_and_deep(accuracy: list[Cell], gap: list[Cell]) -> tuple[float, float, float, float]:
    """Best accuracy up to DEEP steps and mean accuracy past them; the same of MADGap."""
    parts = []
    for cells in (accuracy, gap):
        parts.append(max(means([cell for cell in cells if cell.at["steps"] <= DEEP])))
        parts.append(fmean(means([cell for cell in cells if cell.at["steps"] > DEEP])))
    return parts[0], parts[1], parts[2], parts[3]


def _at_depth(cells: list[Cell]) -> dict[float, float]:
    return {cell.at["steps"]: cell.mean for cell in cells if cell.mean is not None}


def _list(values: Sequence[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)
