"""Write the performance page from the JSON files of ``gpnn bench`` alone: tables, figures and their alt texts."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphpartner.lab.bench.claims import Claim
from graphpartner.lab.bench.growth import Point
from graphpartner.lab.pages.figures import (
    COLOURS,
    GRAPH,
    GREY,
    INK,
    LINES,
    MARKS,
    PAPER,
    SMALL,
    STYLE,
    WHOLE,
    WIDTH,
    save,
)
from graphpartner.system.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PLAN = "A^l H"


def draw_ratios(rows: list[Claim], path: Path) -> None:
    """Draw the ratio of each claim beside the minimum it has to reach; one line per graph."""
    lines: list[Claim | str] = []
    shown = folded(rows)
    for what in dict.fromkeys(row.what for row in shown):  # named once, above its graphs
        lines += [what, *(row for row in shown if row.what == what)]
    figure = _figure(0.9 + 0.2 * len(lines))
    axes = figure.subplots()
    measured = [(place, row) for place, row in enumerate(lines) if isinstance(row, Claim)]
    axes.hlines([place for place, _ in measured], 1, [row.ratio for _, row in measured], color="0.75", linewidth=1)
    for holds, color, mark, label in ((True, WHOLE, "o", "measured"), (False, GRAPH, "X", "below its bar")):
        points = [(row.ratio, place) for place, row in measured if row.holds is holds]
        if points:
            axes.plot(*zip(*points, strict=True), mark, color=color, label=label)
    bars = [(row.bar, place) for place, row in measured if row.bar is not None]
    axes.plot([bar for bar, _ in bars], [place for _, place in bars], "|", color=INK, markersize=11, label="at least")
    for place, claim in enumerate(lines):
        if isinstance(claim, str):
            text = re.sub(r"\b([klt]) = ", r"$\1$ = ", claim.replace(PLAN, "$A^l H$"))
            box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}  # the grid stays behind the letters
            across = axes.get_yaxis_transform()
            axes.text(0.01, place + 0.1, text, transform=across, fontsize=SMALL, va="center", color=GREY, bbox=box)
    axes.set_yticks([place for place, _ in measured], [row.graph for _, row in measured], fontsize=SMALL)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set(xscale="log", xlabel="times as fast as the peer or the limit")
    axes.xaxis.set_major_formatter(_plain)
    axes.grid(axis="x")
    figure.legend(loc="outside lower right", ncols=3)
    save(figure, path)


def folded(rows: list[Claim]) -> list[Claim]:
    """Replace all rows that chose the best plan of A^l H, with a ratio of 1, by one."""
    best = [row for row in rows if row.what.startswith(PLAN) and row.ratio == 1 and row.holds]
    if len(best) < 2:
        return rows
    what = f"{PLAN} of {len(best)} sizes: the chosen plan is the best"
    one = replace(best[0], what=what, graph=", ".join(dict.fromkeys(row.graph for row in best)))
    return [one if row is best[0] else row for row in rows if row is best[0] or row not in best]


def ratios_text(rows: list[Claim]) -> str:
    """Return the alt text of the figure of ratios."""
    ratios, barred = [row.ratio for row in rows], [row for row in rows if row.bar is not None]
    text = f"The claims of the table, {min(ratios):,.1f} to {max(ratios):,.1f} times as fast as their peer or limit"
    return f"{text}; {sum(row.holds for row in barred)} of {len(barred)} that have a bar reach it" if barred else text


def draw_scale(points: list[dict[str, Any]], joins: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds over the amount of work, beside linear growth; memory over steps and replicas; joins."""
    figure = _figure(4.2)
    panels = figure.subplots(1, 3 if joins else 2)
    time, memory = panels[:2]
    styles = dict(zip(("nodes", "steps", "replicas"), _styles(), strict=False))
    for curve, style in styles.items():
        own = _of(points, curve)
        time.loglog([point["work"] for point in own], _seconds(own), label=f"more {curve}", **style)
    ends = [min(point["work"] for point in points), max(point["work"] for point in points)]
    slope = min(point["seconds"] / point["work"] for point in points)
    time.loglog(ends, [slope * end for end in ends], ":", color=GREY, label="linear")
    time.set(xlabel="entries × steps × columns", ylabel="seconds, forward and backward", title="Time")
    time.yaxis.set_major_formatter(_plain)
    for curve in ("steps", "replicas"):
        own = _of(points, curve)
        first = own[0]["value"]
        scaled = [point["value"] / first for point in own]
        memory.plot(scaled, [point["bytes"] / 1e6 for point in own], label=f"{curve}, from {first}", **styles[curve])
    memory.set(xlabel="times as many", ylabel="extra memory, MB", title="Memory at 100,000 nodes", ylim=(0, None))
    for curve, style in zip(dict.fromkeys(point["curve"] for point in joins), _styles(), strict=False):
        own = _of(joins, curve)
        panels[2].loglog([point["value"] for point in own], _seconds(own), label=curve.partition(", ")[2], **style)
    if joins:
        panels[2].set(xlabel="nodes, ten edges each", ylabel="seconds", title="The k-hop cosine join")
        panels[2].xaxis.set_major_formatter(_plain)
        panels[2].yaxis.set_major_formatter(_plain)
    for axes in panels:
        axes.tick_params(labelsize=SMALL)
        axes.grid(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2))
    save(figure, path)


def scale_text(points: list[dict[str, Any]], joins: list[dict[str, Any]]) -> str:
    """Return the alt text of the figure of growth."""
    nodes, steps, replicas = (_of(points, curve) for curve in ("nodes", "steps", "replicas"))
    parts = [
        f"Seconds of a propagation over its work, {_ends(nodes, 'seconds')} s for {_ends(nodes, 'value')} nodes, "
        "beside a straight line",
        f"extra memory, {_ends(steps, 'bytes', 1e-6)} MB for {_ends(steps, 'value')} steps and "
        f"{_ends(replicas, 'bytes', 1e-6)} MB for {_ends(replicas, 'value')} replicas",
    ]
    if joins:
        kinds = dict.fromkeys(point["curve"].partition(", ")[2] for point in joins)
        parts.append(f"seconds of the join over nodes ({'; '.join(kinds)})")
    return "; ".join(parts)


def _ends(points: list[dict[str, Any]], name: str, unit: float = 1) -> str:
    first, last = (_plain(points[end][name] * unit) for end in (0, -1))
    return f"{first} to {last}"


def _plain(value: float, _: float = 0) -> str:
    """Format with three digits or more, never as a power; the second argument is matplotlib's, for ticks."""
    return f"{value:,.0f}" if value >= 100 else np.format_float_positional(value, 3, fractional=False, trim="-")


def _of(points: list[dict[str, Any]], curve: str) -> list[dict[str, Any]]:
    return [point for point in points if point["curve"] == curve]


def _seconds(points: list[dict[str, Any]]) -> list[float]:
    return [point["seconds"] for point in points]


def _styles() -> list[dict[str, Any]]:
    """Return colour, mark and line style of each curve of a panel."""
    return [
        {"color": color, "marker": mark, "linestyle": line, "markersize": 5}
        for color, mark, line in zip(COLOURS, MARKS, LINES, strict=True)
    ]


def _figure(height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


SUITE_TITLES = {
    "cuda": "Training on a GPU",
    "cpu": "Training on a CPU",
    "join": "The k-hop cosine join on a {place}",
    "scale": "How cost grows on a {place}",
}
INTRODUCTION = (
    "Written by `gpnn bench`. A ratio is against a peer measured in the same run or, where the claim says so, against "
    "a fixed limit. The column *same answer* says whether both sides give the same results, or accuracies that do not "
    "differ beyond sampling error; – marks claims that compare seconds alone. The floor is the larger of bytes over "
    "measured bandwidth and operations over measured rate. Peers, the *plain loop* among them, are straightforward "
    "PyTorch and PyTorch Geometric code that trains one run at a time; how GPNN compares with this package's own "
    "GCNII is Table 4 of the [results](results.md#table-4-wall-time-against-gcnii)."
)


def line(measured: Claim | Point) -> str:
    """Return one result as text for a terminal."""
    if isinstance(measured, Point) and measured.curve.startswith("join"):
        return (
            f"{measured.curve}, {measured.value:,} nodes: {_time(measured.seconds)}, {measured.work:,.0f} entries, "
            f"{_megabytes(measured.bytes)}"
        )
    if isinstance(measured, Point):
        unit = measured.seconds / measured.work * 1e9
        return (
            f"{measured.curve} {measured.value:,}: {_time(measured.seconds)}, "
            f"{unit:.3g} ns per entry, step and column, {_megabytes(measured.bytes)}"
        )
    ours, theirs, ratio, bar, floor, same = _cells(measured)
    mark = "[green]ok[/] " if measured.holds else "[red]no[/] "
    parts = [f"{ours} against {theirs}", f"[bold]{ratio}[/]"]
    parts += [f"bar {bar}"] if bar else []
    parts += [f"floor {floor}"] if floor else []
    parts += [f"same answer: {same}"]
    return f"{mark} {measured.graph}: {measured.what}\n    {', '.join(parts)}; {measured.note}"


def write_page(folder: Path, page: Path) -> None:
    """Write the Markdown page from all ``bench-*.json`` files of a folder, and a figure of each beside it."""
    import matplotlib

    (page.parent / "figures").mkdir(parents=True, exist_ok=True)
    parts = ["# Performance", INTRODUCTION]
    with matplotlib.rc_context(STYLE):
        for path in sorted(folder.glob("bench-*.json")):
            parts += _section(json.loads(path.read_text()), page.parent / "figures" / f"{path.stem}.svg")
    write_atomically(page, ("\n\n".join(parts) + "\n").encode())


def _section(content: dict[str, Any], plot: Path) -> list[str]:
    """Return title, figure and tables of one suite, and draw the figure."""
    place = "GPU" if content["machine"]["gpu"] else "CPU"
    title = SUITE_TITLES.get(content["suite"], content["suite"]).format(place=place)
    head = f"## {title}\n\n{_machine(content['machine'])}, `gpnn bench --suite {content['suite']}`"
    if content["suite"] == "scale":
        joins = [point for point in content["results"] if point["curve"].startswith("join")]
        others = [point for point in content["results"] if point not in joins]
        draw_scale(others, joins, plot)
        tables = [_scale_table(others), *([_join_table(joins)] if joins else [])]
        return [head, f"![{scale_text(others, joins)}](figures/{plot.name})", *tables]
    rows = [Claim(**row) for row in content["results"]]
    draw_ratios(rows, plot)
    return [head, f"![{ratios_text(rows)}](figures/{plot.name})", _markdown(rows)]


def _markdown(rows: list[Claim]) -> str:
    lines = [
        "| claim | graph | ours | peer | ratio | bar | floor | same answer | note |",
        "|---|---|--:|--:|--:|--:|--:|---|---|",
    ]
    for row in rows:
        ratio = f"**{row.ratio:,.1f}×**" if row.holds else f"{row.ratio:,.1f}× (below the bar)"
        ours, theirs, _, bar, floor, same = _cells(row)
        lines.append(
            f"| {row.what} | {row.graph} | {ours} | {theirs} | {ratio} | {bar} | {floor} | {same} | {row.note} |"
        )
    return "\n".join(lines)


def _cells(row: Claim) -> tuple[str, str, str, str, str, str]:
    bar = "" if row.bar is None else f"{row.bar:.3g}×"
    floor = "" if row.floor is None else f"{_time(row.floor)} ({row.ours / row.floor:,.0f}×)"
    return _time(row.ours), _time(row.theirs), f"{row.ratio:,.1f}×", bar, floor, SAME[row.same_accuracy]


SAME = {True: "yes", False: "NO", None: "–"}
APART = "\u00a0"  # a number and its unit stay on one line


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g}{APART}{unit}"
    return f"{seconds / 1e-6:.3g}{APART}µs"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}{APART}MB"


def _machine(machine: dict[str, Any]) -> str:
    place = machine["gpu"] or f"{machine['cpu']}, {machine['threads']} threads"
    return f"Measured on {place}; torch {machine['torch']}, Python {machine['python']}"


def _scale_table(points: list[dict[str, Any]]) -> str:
    lines = [
        "| varied | value | seconds | nanoseconds per entry, step and column | extra memory |",
        "|---|--:|--:|--:|--:|",
    ]
    for point in points:
        unit = point["seconds"] / point["work"] * 1e9
        cells = f"{point['value']:,} | {point['seconds']:.3g} | {unit:.3g} | {_megabytes(point['bytes'])}"
        lines.append(f"| {point['curve']} | {cells} |")
    return "\n".join(lines)


def _join_table(points: list[dict[str, Any]]) -> str:
    lines = ["| graph | nodes | seconds | entries | extra memory |", "|---|--:|--:|--:|--:|"]
    for point in points:
        cells = f"{point['value']:,} | {point['seconds']:.3g} | {point['work']:,.0f} | {_megabytes(point['bytes'])}"
        lines.append(f"| {point['curve']} | {cells} |")
    return "\n".join(lines)
