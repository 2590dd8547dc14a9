"""``gpnn inspect``: a look at a graph before training."""

import json
from typing import Annotated

import typer

from graphpartner.cli.options import DataOption, GraphArgument, JsonOption


def inspect(
    graph: GraphArgument,
    k: Annotated[int, typer.Option(help="maximum number of hops between nodes that become neighbours")] = 3,
    threshold: Annotated[float, typer.Option(help="minimum cosine of nodes that become neighbours")] = 0.4,
    root: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at a graph before training: statistics, the cost of its enhancement, advice from training labels."""
    from graphpartner.enhance.quality import inspect_graph
    from graphpartner.graph.datasets import load_graph
    from graphpartner.graph.splits import with_split
    from graphpartner.report.terminal import bullets, facts, show

    record = with_split(load_graph(graph, root), 0)
    found = inspect_graph(record, record.train_mask, k, threshold)
    if as_json:
        print(json.dumps(found.asdict()))
        return
    show(facts(found.facts()), bullets(found.advice))
