"""Runs and cells made up for tests."""

import dataclasses

from graphpartner.lab.experiments.experiment import load_experiments
from graphpartner.lab.experiments.jobs import Run
from graphpartner.lab.experiments.results import Cell


def run(seed=0, method="gpnn", graph="citeseer", measures=("accuracy",), **settings):
    return Run(method, graph, {"epochs": 2} | settings, seed, "cpu", measures=frozenset(measures))


def line(of, **measured):
    return of.identity | {"version": "0", "key": of.key, "measured": measured}


def cell(row, values, graph="cora", measure="accuracy", method="gpnn", **at):
    """A cell with these values, one a seed."""
    mean = sum(values) / len(values)
    sd = (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
    seeds = list(range(len(values)))
    return Cell("toy", row, method, graph, measure, at, mean, sd, len(values), seeds=seeds, values=list(values))


def baselines(values, graph="cora", published=81.5):
    """A cell with these values for every baseline of Table 1; those that the paper has are published."""
    return [
        dataclasses.replace(
            cell(name, values, graph, method=row.method), published=published if experiment.published else None
        )
        for experiment in load_experiments("table1")
        for name, row in experiment.rows.items()
        if row.method != "gpnn"
    ]


def curve(row, means, measure="accuracy", graph="cora", spread=0.1):
    """Cells over steps, three runs each, spread around their means alike."""
    return [cell(row, [mean - spread, mean, mean + spread], graph, measure, steps=step) for step, mean in means.items()]
