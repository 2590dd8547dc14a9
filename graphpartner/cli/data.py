"""``gpnn data``: the graphs of the catalogue, with statistics, source, licence and location."""

import dataclasses
import json

from rich.table import Table

from graphpartner.cli.options import DataOption, JsonOption
from graphpartner.graph.catalogue import GraphEntry, Location

HERE = {"root": "yes", "cache": "in cache", "download": "no"}


def data(root: DataOption = None, as_json: JsonOption = False) -> None:
    """List the graphs: statistics, source, licence, and whether each is here."""
    from graphpartner.graph.catalogue import CATALOGUE, locate
    from graphpartner.report.terminal import show

    found = [(entry, locate(name, root)) for name, entry in CATALOGUE.items()]
    if as_json:
        graphs = [
            dataclasses.asdict(entry) | {"is_here": location.is_here, "location": str(location)}
            for entry, location in found
        ]
        print(json.dumps({"graphs": graphs}))
        return
    show(_statistics(found))
    for source, licence in dict.fromkeys((entry.source, entry.licence) for entry, _ in found):
        names = ", ".join(entry.name for entry, _ in found if entry.source == source)
        show(f"\n{names}\n  published under the {licence} licence at\n  {source}")
    if any(location.kind == "download" for _, location in found):
        show("\nA graph that is not here is downloaded when it is first used; --data ROOT takes it from a folder.")
    if missing := [f"{entry.name} is missing {place.path}" for entry, place in found if place.kind == "missing"]:
        show("", *missing)


def _statistics(found: list[tuple[GraphEntry, Location]]) -> Table:
    """Return a table of the graphs, one row each."""
    table = Table("graph", *("nodes", "edges", "features", "classes", "isolated"), "here", box=None, pad_edge=False)
    for column in table.columns[1:6]:
        column.justify = "right"
    for entry, location in found:
        counts = (entry.num_nodes, entry.num_edges, entry.num_features, entry.num_classes, entry.num_isolated)
        table.add_row(entry.name, *(f"{count:,}" for count in counts), HERE.get(location.kind, location.kind))
    return table
