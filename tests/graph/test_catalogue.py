import re

import pytest

from graphpartner.graph.catalogue import CATALOGUE, GraphEntry, find_entry
from graphpartner.system.errors import InputError


def test_the_six_graphs() -> None:
    assert list(CATALOGUE) == ["citeseer", "cora", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo"]
    titles = [entry.title for entry in CATALOGUE.values()]
    assert titles == ["CiteSeer", "Cora", "PubMed", "Coauthor CS", "A-Computers", "A-Photo"]


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=list(CATALOGUE))
def test_an_entry_is_whole(entry: GraphEntry) -> None:
    assert len(entry.files) == (8 if entry.layout == "planetoid" else 1)
    for sha256 in [*entry.files.values(), entry.digest]:
        assert re.fullmatch("[0-9a-f]{64}", sha256)
    for file in entry.files:
        assert re.fullmatch(r"https://raw\.githubusercontent\.com/.*/[0-9a-f]{40}/data/[a-z/._]+", entry.url(file))
    assert entry.licence == "MIT"


def test_addresses() -> None:
    assert (
        find_entry("cora")
        .url("ind.cora.x")
        .endswith("/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/ind.cora.x")
    )
    (file,) = find_entry("amazon-photo").files
    assert find_entry("amazon-photo").url(file).endswith("/data/npz/amazon_electronics_photo.npz")


def test_unknown_name() -> None:
    with pytest.raises(InputError, match="graph = 'Cora': must be one of citeseer, cora, "):
        find_entry("Cora")
