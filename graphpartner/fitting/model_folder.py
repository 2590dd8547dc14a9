"""The model folder: safetensors and JSON, no code, a digest of every file, written whole or not at all.

=======================  ==================================================================================
file                     content
=======================  ==================================================================================
model.json               version of the format, classes, members and their settings, calibration, the card
                         (scores, decisions), the encoder's plain part, the SHA-256 of every file and of itself
ids.json                 the user's names of the nodes, in the order of the file
weights.safetensors      W^(1) and W^(2) of every run
graph.safetensors        features, edges, labels
encoder.safetensors      the encoder's arrays
=======================  ==================================================================================
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphpartner.fitting.candidates import Candidate
from graphpartner.fitting.fitted_model import FittedModel, Member
from graphpartner.graph.adjacency import csr
from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError

FORMAT = 1
FILES = ("ids.json", "weights.safetensors", "graph.safetensors", "encoder.safetensors")


def save_model(model: FittedModel, folder: str | os.PathLike[str], card: dict[str, Any] | None = None) -> Path:
    """Write a model, with ``card`` added to its card: first beside its place, so that an older one is not lost."""
    folder = Path(folder).resolve()  # a link stays a link
    if folder.exists() and not is_replaceable(folder):
        raise InputError(f"{folder}: exists and holds no model; give another folder, or empty it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        for name, content in _contents(model, card or {}).items():
            with (beside / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        beside.chmod(0o755)
        _move(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return folder


def is_replaceable(folder: Path) -> bool:
    """Return whether a model may be written there: over nothing, an empty folder, or an older model."""
    if not folder.exists():
        return True
    return folder.is_dir() and ((folder / "model.json").exists() or not any(folder.iterdir()))


def _move(new: Path, folder: Path) -> None:
    """Move the new folder to its place; files there that do not belong to a model stay."""
    if not folder.exists():
        new.rename(folder)
        return
    old = folder.with_name(f".{folder.name}-before-{os.getpid()}")
    folder.rename(old)
    try:
        for path in old.iterdir():
            if path.name not in (*FILES, "model.json"):
                path.rename(new / path.name)
        new.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old)


def _contents(model: FittedModel, card: dict[str, Any]) -> dict[str, bytes]:
    from safetensors.numpy import save as save_arrays
    from safetensors.torch import save

    weights: dict[str, Tensor] = {}
    members = []
    for number, member in enumerate(model.members):
        weights[f"{number}.weight1"] = member.weight1.contiguous()
        weights[f"{number}.weight2"] = member.weight2.contiguous()
        weight, partner_weight = member.weight, member.partner_weight
        members.append({"candidate": member.candidate.asdict(), "weight": weight, "partner_weight": partner_weight})
    data = model.data
    graph = {"edge_index": data.edge_index.contiguous(), "y": data.y, "learned": model.learned}
    if data.get("edge_weight") is not None:
        graph["edge_weight"] = data.edge_weight.contiguous()
    if data.x.layout == torch.sparse_csr:
        x = data.x
        graph |= {"x.crow": x.crow_indices().long(), "x.col": x.col_indices().long(), "x.value": x.values().clone()}
    else:
        graph["x"] = data.x.contiguous()
    plain, arrays = model.encoder if model.encoder is not None else (None, {})
    contents = {
        "ids.json": json.dumps(model.ids, ensure_ascii=False).encode(),
        "weights.safetensors": save(weights),
        "graph.safetensors": save({name: part.clone() for name, part in graph.items()}),
        "encoder.safetensors": save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()}),
    }
    described = {
        "format": FORMAT,
        "graphpartner": _version(),
        "classes": model.classes,
        "num_nodes": int(data.num_nodes),
        "num_features": int(data.x.shape[1]),
        "members": members,
        "label_propagation": list(model.label_prop),
        "temperature": model.temperature,
        "shift": model.shift.tolist(),
        "partner_temperature": model.partner_temperature,
        "encoder": plain,
        "card": model.card | card,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    contents["model.json"] = json.dumps(described | {"own_sha256": _own_digest(described)}, indent=1).encode()
    return contents


def _own_digest(described: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("graphpartner")
    except PackageNotFoundError:
        return "unknown"


def load_model(folder: str | os.PathLike[str]) -> FittedModel:
    """Read a model; raise InputError with the name of a file that is missing, cut short or altered."""
    from safetensors.numpy import load as load_arrays
    from safetensors.torch import load

    folder = Path(folder)
    described = _described(folder)
    contents = {name: _checked(folder / name, digest) for name, digest in described["sha256"].items()}
    weights, graph = load(contents["weights.safetensors"]), load(contents["graph.safetensors"])
    members = [
        Member(
            Candidate.restore(each["candidate"]),
            weights[f"{number}.weight1"],
            weights[f"{number}.weight2"],
            each["weight"],
            each["partner_weight"],
        )
        for number, each in enumerate(described["members"])
    ]
    data = GraphRecord(edge_index=graph["edge_index"], y=graph["y"], num_nodes=described["num_nodes"])
    if "edge_weight" in graph:
        data.edge_weight = graph["edge_weight"]
    shape = described["num_nodes"], described["num_features"]
    data.x = graph["x"] if "x" in graph else csr(graph["x.crow"], graph["x.col"], graph["x.value"], shape)
    encoder = None
    if described["encoder"] is not None:
        encoder = (described["encoder"], load_arrays(contents["encoder.safetensors"]))
    alpha, weight = described["label_propagation"]
    return FittedModel(
        data, json.loads(contents["ids.json"]), described["classes"], members, graph["learned"], (alpha, weight),
        described["temperature"], described["partner_temperature"], encoder, described["card"],
        torch.tensor(described["shift"]),
    )  # fmt: skip


def _described(folder: Path) -> dict[str, Any]:
    path = folder / "model.json"
    try:
        described: dict[str, Any] = json.loads(path.read_bytes())
        own = described.pop("own_sha256")
        version = described["format"]
    except OSError as error:
        raise InputError(
            f"{folder}: is no model folder ({path.name}: {error.strerror}); make one with gpnn fit"
        ) from None
    except (ValueError, KeyError, AttributeError, TypeError):
        raise InputError(f"{path}: is cut short or altered; fit the model again, or copy it again") from None
    if version != FORMAT:
        raise InputError(f"{path}: has format {version}, this version reads format {FORMAT}; fit the model again")
    if own != _own_digest(described):
        raise InputError(f"{path}: has been altered; fit the model again, or copy it again")
    if missing := set(FILES) - set(described["sha256"]):
        raise InputError(f"{path}: does not name {min(missing)}; fit the model again")
    return described


def _checked(path: Path, digest: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); copy the whole model folder again") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise InputError(f"{path}: is cut short or altered; fit the model again, or copy it again")
    return content
