"""``gpnn data``."""

import dataclasses
import json

from graphpartner.cli.options import DataOption, JsonOption


def data(root: DataOption = None, as_json: JsonOption = False) -> None:
    """List the graphs: statistics, source, licence, and whether each is here."""
    from graphpartner.graph.catalogue import CATALOGUE
    from graphpartner.graph.location import locate
    from graphpartner.report.catalogue import catalogue_page
    from graphpartner.report.terminal import show

    found = [(entry, locate(name, root)) for name, entry in CATALOGUE.items()]
    if as_json:
        graphs = [
            dataclasses.asdict(entry) | {"is_here": location.is_here, "location": str(location)}
            for entry, location in found
        ]
        print(json.dumps({"graphs": graphs}))
        return
    for part in catalogue_page(found):
        show(part)
