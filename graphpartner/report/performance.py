"""The performance page: tables and plots of what ``gpnn bench`` measured, from its JSON files alone."""

import json
from pathlib import Path
from typing import Any

from graphpartner.bench.scale import Point
from graphpartner.bench.timing import Row
from graphpartner.graph.packed import write_atomically
from graphpartner.report.performance_figures import draw_ratios, draw_scale, ratios_text, scale_text
from graphpartner.report.style import STYLE

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


def line(measured: Row | Point) -> str:
    """One result for a terminal."""
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
    """Write the Markdown page from all ``bench-*.json`` files of a folder, with a plot of each beside it."""
    import matplotlib

    (page.parent / "figures").mkdir(parents=True, exist_ok=True)
    parts = ["# Performance", INTRODUCTION]
    with matplotlib.rc_context(STYLE):
        for path in sorted(folder.glob("bench-*.json")):
            parts += _section(json.loads(path.read_text()), page.parent / "figures" / f"{path.stem}.svg")
    write_atomically(page, ("\n\n".join(parts) + "\n").encode())


def _section(content: dict[str, Any], plot: Path) -> list[str]:
    """What one suite measured: its title, its plot, which is drawn, and its tables."""
    place = "GPU" if content["machine"]["gpu"] else "CPU"
    title = SUITE_TITLES.get(content["suite"], content["suite"]).format(place=place)
    head = f"## {title}\n\n{_machine(content['machine'])}, `gpnn bench --suite {content['suite']}`"
    if content["suite"] == "scale":
        joins = [point for point in content["results"] if point["curve"].startswith("join")]
        others = [point for point in content["results"] if point not in joins]
        draw_scale(others, joins, plot)
        tables = [_scale_table(others), *([_join_table(joins)] if joins else [])]
        return [head, f"![{scale_text(others, joins)}](figures/{plot.name})", *tables]
    rows = [Row(**row) for row in content["results"]]
    draw_ratios(rows, plot)
    return [head, f"![{ratios_text(rows)}](figures/{plot.name})", _markdown(rows)]


def _markdown(rows: list[Row]) -> str:
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


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
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
