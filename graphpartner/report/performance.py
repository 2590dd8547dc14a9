"""The performance page: tables and plots of what ``gpnn bench`` measured, from its JSON files alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphpartner.bench.scale import Point
from graphpartner.bench.timing import Row
from graphpartner.graph.packed import write_atomically
from graphpartner.report.figures import STYLE, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUITE_TITLES = {
    "cuda": "Training on a GPU",
    "cpu": "Training on a CPU",
    "join": "The k-hop cosine join",
    "scale": "How cost grows",
}


def line(measured: Row | Point) -> str:
    """One result for a terminal."""
    if isinstance(measured, Point) and measured.curve.startswith("join"):
        return (
            f"{measured.curve}, {measured.value:,} nodes: {_time(measured.seconds)}, {measured.work:,.0f} entries, "
            f"{measured.bytes / 1e6:,.0f} MB"
        )
    if isinstance(measured, Point):
        unit = measured.seconds / measured.work * 1e9
        return (
            f"{measured.curve} {measured.value:,}: {_time(measured.seconds)}, "
            f"{unit:.3g} ns per entry, step and column, {measured.bytes / 1e6:,.0f} MB"
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
    parts = [
        "# Performance",
        "Written by `gpnn bench`; every ratio is against a peer measured in the same run, and every row says whether "
        "both sides give the same answer. The floor is the larger of bytes over measured bandwidth and operations over "
        "measured rate.",
    ]
    with matplotlib.rc_context(STYLE):
        for path in sorted(folder.glob("bench-*.json")):
            parts += _section(json.loads(path.read_text()), page.parent / "figures" / f"{path.stem}.svg")
    write_atomically(page, ("\n\n".join(parts) + "\n").encode())


def _section(content: dict[str, Any], plot: Path) -> list[str]:
    """What one suite measured: its title, its plot, which is drawn, and its tables."""
    title = SUITE_TITLES.get(content["suite"], content["suite"])
    head = f"## {title}\n\n{_machine(content['machine'])}, `gpnn bench --suite {content['suite']}`"
    if content["suite"] == "scale":
        joins = [point for point in content["results"] if point["curve"].startswith("join")]
        others = [point for point in content["results"] if point not in joins]
        draw_scale(others, joins, plot)
        tables = [_scale_table(others), *([_join_table(joins)] if joins else [])]
        return [head, f"![time and memory over size](figures/{plot.name})", *tables]
    rows = [Row(**row) for row in content["results"]]
    draw_ratios(rows, plot)
    return [head, f"![ratios and bars](figures/{plot.name})", _markdown(rows)]


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
    return _time(row.ours), _time(row.theirs), f"{row.ratio:,.1f}×", bar, floor, "yes" if row.same_accuracy else "NO"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


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
        cells = f"{point['value']:,} | {point['seconds']:.3g} | {unit:.3g} | {point['bytes'] / 1e6:,.0f} MB"
        lines.append(f"| {point['curve']} | {cells} |")
    return "\n".join(lines)


def _join_table(points: list[dict[str, Any]]) -> str:
    lines = ["| graph | nodes | seconds | entries | extra memory |", "|---|--:|--:|--:|--:|"]
    for point in points:
        cells = f"{point['value']:,} | {point['seconds']:.3g} | {point['work']:,.0f} | {point['bytes'] / 1e6:,.0f} MB"
        lines.append(f"| {point['curve']} | {cells} |")
    return "\n".join(lines)


def draw_ratios(rows: list[Row], path: Path) -> None:
    """How many times as fast as its peer each claim is, beside the least it has to be."""
    figure = _figure(10, 0.9 + 0.24 * len(rows))
    axes = figure.subplots()
    places = range(len(rows))
    axes.hlines(places, 1, [row.ratio for row in rows], color="0.8", linewidth=1)
    for holds, color, label in ((True, "tab:blue", "measured"), (False, "tab:red", "below its bar")):
        own = [place for place in places if rows[place].holds is holds]
        if own:
            axes.plot([rows[place].ratio for place in own], own, "o", color=color, label=label)
    barred = [place for place in places if rows[place].bar is not None]
    axes.plot([rows[place].bar or 1.0 for place in barred], barred, "k|", markersize=11, label="at least")
    axes.set_yticks(places, [f"{row.what}, {row.graph}" for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="times as fast as the peer, in the same run")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def draw_scale(points: list[dict[str, Any]], joins: list[dict[str, Any]], path: Path) -> None:
    """Seconds over the work to be done, beside the straight line of theory; memory over steps and replicas; joins."""
    count = 3 if joins else 2
    figure = _figure(4.5 * count, 3.6)
    panels = figure.subplots(1, count)
    left, right = panels[:2]
    for curve in ("nodes", "steps", "replicas"):
        own = [point for point in points if point["curve"] == curve]
        left.loglog([point["work"] for point in own], [point["seconds"] for point in own], "o-", label=f"more {curve}")
    works = [point["work"] for point in points]
    slope = min(point["seconds"] / point["work"] for point in points)
    ends = [min(works), max(works)]
    left.loglog(ends, [slope * end for end in ends], "k:", label="linear")
    left.set(xlabel="entries × steps × columns", ylabel="seconds, forward and backward", title="Time")
    for curve in ("steps", "replicas"):
        own = [point for point in points if point["curve"] == curve]
        first = own[0]["value"]
        scaled = [point["value"] / first for point in own]
        right.plot(scaled, [point["bytes"] / 1e6 for point in own], "o-", label=f"{curve}, from {first}")
    right.set(xlabel="times as many", ylabel="extra memory, MB", title="Memory at 100,000 nodes", ylim=(0, None))
    for curve in dict.fromkeys(point["curve"] for point in joins):
        own = [point for point in joins if point["curve"] == curve]
        panels[2].loglog(
            [point["value"] for point in own], [point["seconds"] for point in own], "o-", label=curve.partition(", ")[2]
        )
    if joins:
        panels[2].set(xlabel="nodes, ten edges each", ylabel="seconds", title="The k-hop cosine join")
    for axes in panels:
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    save(figure, path)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
