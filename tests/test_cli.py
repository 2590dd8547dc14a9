"""The command line as a user meets it: results, progress, and one sentence for everything that is wrong."""

import errno
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from graphpartner.cli import main
from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.report import terminal
from tests.graph.test_npz import npz, parts
from tests.lab.pages.toy import rings

REPOSITORY = Path(__file__).parents[1]
PHOTO = "amazon_electronics_photo.npz"
QUICK = ("train", "citeseer", "--device", "cpu", "--seeds", "1", "--set", "epochs=2")
FILES = ["history.csv", "predictions.csv", "runs.json", "weights.safetensors"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """In an empty folder, without a data root, on one core."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GRAPHPARTNER_DATA", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield folder
    torch.set_num_threads(threads)


@pytest.fixture
def gpnn(monkeypatch, capsys):
    """Runs a command in this process; gives its exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gpnn", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


def really(*arguments, **options):
    """Runs a command in a process of its own."""
    command = [sys.executable, "-m", "graphpartner.cli", *arguments]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, **options)


def assert_one_sentence(code, out, err):
    assert code == 2
    assert out == ""
    assert err.startswith("gpnn: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    assert not re.search(r"[.!?] [A-Z]", err.removeprefix("gpnn: ")), f"more than one sentence: {err}"


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


WRONG = [  # the command, and what its sentence must say: what is wrong, what would be right
    (["train", "imdb"], ["'imdb'", "citeseer, cora, pubmed"]),
    (["inspect", "imdb"], ["'imdb'", "citeseer, cora, pubmed"]),
    (["train", "citeseer", "--set", "alfa=1"], ["'alfa'", "alpha"]),
    (["train", "citeseer", "--set", "alpha=2"], ["alpha = 2", "between 0 and 1"]),
    (["train", "citeseer", "--set", "alpha=nan"], ["alpha = nan", "between 0 and 1"]),
    (["train", "citeseer", "--set", "alpha=lots"], ["alpha = 'lots'", "a number"]),
    (["train", "citeseer", "--set", "alpha"], ["--set alpha", "KEY=VALUE"]),
    (["train", "citeseer", "--set", "epochs=1.5"], ["epochs = '1.5'", "a whole number"]),
    (["train", "citeseer", "--set", "score=dot"], ["score = 'dot'", "inner, cosine"]),
    (["train", "citeseer", "--set", "separate_dropout=maybe"], ["separate_dropout = 'maybe'", "true or false"]),
    (["train", "citeseer", "--preset", "finest"], ["--preset finest", "paper, tuned, views, distilled or best"]),
    (["train", "citeseer", "--device", "tpu"], ["--device tpu", "auto, cpu or cuda"]),
    (["train", "citeseer", "--seeds", "0"], ["--seeds 0", "1 or more"]),
    (["train", "citeseer", "--seeds", "many"], ["--seeds", "integer"]),
    (["train", "citeseer", "--sedes", "3"], ["--sedes", "gpnn train --help"]),
    (["train"], ["graph", "gpnn train --help"]),
    (["learn"], ["learn", "gpnn --help"]),
    (["inspect", "citeseer", "--k", "-1"], ["k", "-1", "0 or more"]),
    (["inspect", "citeseer", "--threshold", "0"], ["threshold", "0"]),
    (["inspect", "citeseer", "--threshold", "2"], ["threshold", "2"]),
    (["train", "cora", "--data", "nowhere"], ["nowhere", "must be a folder"]),
    (["inspect", "cora", "--data", "nowhere"], ["nowhere", "must be a folder"]),
    (["data", "--data", "nowhere"], ["nowhere", "must be a folder"]),
    (["reproduce", "table9"], ["table9", "table1, table2"]),
    (["reproduce"], ["TARGET", "gpnn reproduce --help"]),
    (["reproduce", "table1", "--graphs", "cora,imdb"], ["--graphs imdb", "citeseer, cora"]),
    (["reproduce", "table1", "--methods", "bert"], ["--methods bert", "gcnii"]),
    (["reproduce", "table1", "--seeds", "0"], ["--seeds 0", "1 or more"]),
    (["reproduce", "table1", "--device", "tpu"], ["--device tpu", "auto, cpu or cuda"]),
    (["reproduce", "table2", "--data", "nowhere"], ["nowhere", "must be a folder"]),
    (["reproduce", "table1", "--seeds", "1000000000000"], ["--seeds 1000000000000", "100,000 at most"]),
    (["train", "citeseer", "--seeds", "2000000000"], ["--seeds 2000000000", "100,000 at most"]),
    (["search", "citeseer", "--splits", "999999999"], ["--splits 999999999", "at most"]),
    (["search", "citeseer", "--seconds", "-1"], ["--seconds -1", "more than 0"]),
    (["search", "citeseer", "--set", "epochs=5"], ["--set epochs=5", "--epochs"]),
    (["search", "citeseer", "--hold", "citeseer/finest"], ["--hold citeseer/finest", "citeseer/tuned"]),
    (["search", "citeseer", "--begin-at", "nope"], ["--begin-at nope", "cora"]),
]


@pytest.mark.parametrize(("command", "words"), WRONG, ids=[" ".join(command) for command, _ in WRONG])
def test_wrong_input(gpnn, elsewhere, command, words):
    code, out, err = gpnn(*command)
    assert_one_sentence(code, out, err)
    for word in words:
        assert word in err
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu(gpnn, elsewhere):
    code, out, err = gpnn("train", "citeseer", "--device", "cuda")
    assert_one_sentence(code, out, err)
    assert "no GPU" in err
    assert list(elsewhere.iterdir()) == []


def test_out_is_a_file(gpnn, elsewhere):
    Path("taken").write_text("precious")
    for out in ("taken", "taken/deeper"):
        code, said, err = gpnn(*QUICK, "--out", out)
        assert_one_sentence(code, said, err.splitlines(keepends=True)[-1])
        assert f"--out {out}" in err
    assert Path("taken").read_text() == "precious"
    assert files(elsewhere) == ["taken"]


def photo_root(content):
    folder = Path("root/Photo/raw")
    folder.mkdir(parents=True)
    if content is not None:
        (folder / PHOTO).write_bytes(content)
    return "root"


def altered(**changes):
    arrays = parts()
    for name, change in changes.items():
        arrays[name] = np.array(arrays[name], copy=True)
        if arrays[name].dtype.kind == "i" and isinstance(change, float):
            arrays[name] = arrays[name].astype(np.float32)
        arrays[name][0] = change
    return npz(arrays)


@pytest.mark.parametrize("command", ["train", "inspect"])
@pytest.mark.parametrize(
    ("content", "word"),
    [
        (lambda: None, "missing"),
        (lambda: b"not an archive", "npz"),
        (lambda: altered(), "restore"),
        (lambda: altered(labels=99), "restore"),
        (lambda: altered(attr_data=float("nan")), "restore"),
        (lambda: altered(adj_indices=99), "restore"),
    ],
    ids=["missing", "no archive", "another graph", "label 99", "NaN feature", "edge to nowhere"],
)
def test_a_data_root_with_a_wrong_file(gpnn, elsewhere, command, content, word):
    root = photo_root(content())
    before = files(elsewhere)
    code, out, err = gpnn(command, "amazon-photo", "--data", root)
    assert_one_sentence(code, out, err)
    assert PHOTO in err
    assert word in err
    assert files(elsewhere) == before
    assert not Path("runs").exists()


def test_a_planetoid_file_with_one_byte_changed(gpnn, elsewhere, data_root):
    shutil.copytree(data_root / "CiteSeer", "root/CiteSeer")
    file = Path("root/CiteSeer/raw/ind.citeseer.allx")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    code, out, err = gpnn("inspect", "citeseer", "--data", "root")
    assert_one_sentence(code, out, err)
    assert "ind.citeseer.allx" in err
    assert "restore the original file" in err


def broken(name):
    data = rings()
    if name == "label":
        data.y[5] = 7
    elif name == "feature":
        data.x[5, 1] = torch.nan
    else:
        data.edge_index[1, 3] = 480
    return data


@pytest.mark.parametrize("command", ["train", "inspect"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("label", ["7 at node 5", "from 0 to 1"]),
        ("feature", ["nan at node 5, feature 1", "finite"]),
        ("edge", ["3 → 480", "0 to 47"]),
    ],
)
def test_a_broken_graph(gpnn, elsewhere, monkeypatch, command, name, words):
    monkeypatch.setattr("graphpartner.graph.datasets.load_graph", lambda graph, root: broken(name))
    code, out, err = gpnn(command, "citeseer")
    assert_one_sentence(code, out, err.splitlines(keepends=True)[-1])
    for word in words:
        assert word in err
    assert files(elsewhere) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"])
def test_an_interrupted_write_leaves_nothing(gpnn, elsewhere, monkeypatch, error):
    def stop(source, target):
        if Path(target).parent.name == "kept":
            raise error
        replace(source, target)  # numba keeps compiled loops this way

    replace = os.replace
    monkeypatch.setattr(os, "replace", stop)
    code, out, err = gpnn(*QUICK, "--out", "kept")
    assert out == ""
    if isinstance(error, OSError):
        assert_one_sentence(code, out, err.splitlines(keepends=True)[-1])
        assert "--out kept: cannot be written (No space left on device)" in err
    else:
        assert code == 130
        assert err.endswith("gpnn: stopped\n")
    assert files(elsewhere) == []


def test_train(gpnn, elsewhere, monkeypatch):
    monkeypatch.setattr(terminal, "LINE_EVERY", 0.0)
    code, out, err = gpnn(*QUICK, "--out", "a/b")
    assert code == 0
    assert files(elsewhere) == [f"a/b/{name}" for name in FILES]
    assert re.search(r"^test accuracy +\d+\.\d %   1 seed$", out, re.MULTILINE)
    assert re.search(r"^published +76\.5 ± 0\.5 %", out, re.MULTILINE)
    assert "GPNN on CiteSeer: preset distilled, changed, 1 seed, cpu" in err
    assert "picked with a look at test accuracy" not in err
    assert re.search(r"^training: \d+%, .* taken, at most .* left$", err, re.MULTILINE)
    assert "\x1b" not in out + err  # no colours in a pipe


def test_settings_picked_with_a_look_at_test_accuracy_say_so(gpnn, elsewhere):
    text = "{graph: citeseer, family: tuned, provenance: picked, saw_test: true, settings: {alpha: 0.3}}"
    (elsewhere / "picked.yaml").write_text(text)
    code, _, err = gpnn(*QUICK, "--preset", "picked.yaml")
    assert code == 0
    assert "picked with a look at test accuracy" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["must hold keys and values", "graph, family, provenance, saw_test, settings"]),
        ("{graph: citeseer, family: tuned, provenance: p, saw_test: maybe, settings: {}}", ["saw_test = 'maybe'"]),
        ("{graph: citeseer, family: 3, provenance: p, saw_test: true, settings: {}}", ["family = 3", "text"]),
        ("{graph: citeseer, family: tuned, saw_test: true, settings: {}}", ["the key provenance is missing"]),
        ("{graph: citeseer, family: tuned, provenance: p, saw_test: true, settings: {foo: 3}}", ["'foo'"]),
        ("{graph: citeseer, family: tuned, provenance: p, saw_test: true, settings: {}, bogus: 1}", ["key bogus"]),
        ("{graph: nope, family: tuned, provenance: p, saw_test: true, settings: {}}", ["'nope'"]),
        ("a: [", ["must be a YAML file"]),
    ],
)
def test_mistakes_in_a_preset_file_name_it(gpnn, elsewhere, text, words):
    (elsewhere / "mine.yaml").write_text(text)
    code, out, err = gpnn(*QUICK, "--preset", "mine.yaml")
    assert_one_sentence(code, out, err)
    for word in ("mine.yaml", *words):
        assert word in err


def test_a_preset_of_another_graph_says_so_and_the_published_number_is_of_the_graph(gpnn, elsewhere):
    text = "{graph: cora, family: tuned, provenance: elsewhere, saw_test: false, settings: {alpha: 0.3}}"
    (elsewhere / "mine.yaml").write_text(text)
    code, out, err = gpnn(*QUICK, "--preset", "mine.yaml")
    assert code == 0
    assert "chosen for Cora" in err
    assert re.search(r"^published +76\.5 ± 0\.5 %", out, re.MULTILINE)


@pytest.mark.parametrize("page", [".", "taken/page.md"])
def test_a_page_that_cannot_be_written_is_found_before_anything_runs(gpnn, elsewhere, page):
    Path("taken").write_text("precious")
    code, out, err = gpnn("reproduce", "table2", "--graphs", "citeseer", "--page", page)
    assert_one_sentence(code, out, err)
    assert f"--page {page.removesuffix('/page.md')}" in err
    assert files(elsewhere) == ["taken"]


def test_a_full_disk_is_one_sentence(gpnn, elsewhere, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device", "results/runs/table2.jsonl")

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = gpnn("reproduce", "table2", "--graphs", "citeseer")
    assert_one_sentence(code, out, err.splitlines(keepends=True)[-1])
    assert "table2.jsonl: No space left on device" in err


def test_train_json(gpnn, elsewhere):
    code, out, _ = gpnn("train", "citeseer", "--preset", "paper", "--seeds", "2", "--set", "epochs=2", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["preset"] == "paper, changed"
    assert found["saw_test"] is False
    assert len(found["test_accuracy"]) == 2
    assert found["test_mean"] == pytest.approx(np.mean(found["test_accuracy"]))
    assert found["files"] == [f"runs/citeseer/{name}" for name in (FILES[3], FILES[1], FILES[0], FILES[2])]
    written = json.loads(Path("runs/citeseer/runs.json").read_text())
    assert written["test_accuracy"] == found["test_accuracy"]
    assert written["settings"][0]["num_steps"] == 48


def test_a_graph_without_a_split_gets_one_a_seed(gpnn, monkeypatch):
    data = rings(n=60)
    del data.train_mask, data.val_mask, data.test_mask
    monkeypatch.setattr("graphpartner.graph.datasets.load_graph", lambda graph, root: data)
    code, out, _ = gpnn("train", "amazon-photo", "--seeds", "2", "--set", "epochs=2", "--json")
    assert code == 0
    assert len(json.loads(out)["test_accuracy"]) == 2


def test_data(gpnn):
    code, out, err = gpnn("data")
    assert (code, err) == (0, "")
    for entry in CATALOGUE.values():
        assert re.search(rf"^{entry.name} +{entry.num_nodes:,} +{entry.num_edges:,} ", out, re.MULTILINE)
        assert entry.source in out
        assert entry.licence in out
    assert "built in" in out
    code, out, _ = gpnn("data", "--json")
    rows = json.loads(out)["graphs"]
    assert [row["name"] for row in rows] == list(CATALOGUE)
    assert rows[0]["is_here"] is True


def test_data_tells_what_a_root_lacks(gpnn):
    code, out, _ = gpnn("data", "--data", photo_root(None))
    assert code == 0
    assert f"amazon-photo is missing root/Photo/raw/{PHOTO}" in out


def test_inspect(gpnn):
    code, out, err = gpnn("inspect", "citeseer")
    assert (code, err) == (0, "")
    for line in (r"nodes +3,327, 48 without an edge", r"homophily +25% of the 8 edges", r"  time +about .* m?s"):
        assert re.search(f"^{line}", out, re.MULTILINE)
    assert "• 15 nodes have no features" in out
    code, out, _ = gpnn("inspect", "citeseer", "--json")
    found = json.loads(out)
    assert found["statistics"]["num_nodes"] == 3327
    assert found["new_pairs"]["judged"] == 4


def test_advice_on_an_amazon_graph(gpnn, data_root):
    code, out, _ = gpnn("inspect", "amazon-photo", "--data", data_root)
    assert code == 0
    assert "would add mostly wrong-label edges" in out


def test_reproduce(gpnn, elsewhere):
    code, out, err = gpnn("reproduce", "table2", "--graphs", "citeseer,cora")
    assert code == 0
    assert re.search(r"^graph +citeseer +nodes +3,327 +3,327 +1 +\+0 +holds$", out, re.MULTILINE)
    assert re.search(r"^graph +citeseer +edges +4,732 +4,552 +1 +-180 +lower$", out, re.MULTILINE)
    assert "written to results" in err
    made = files(elsewhere)
    assert made == [
        "results/results.md", "results/runs/table2.jsonl.gz", "results/table2.json", "results/verdicts.json",
    ]  # fmt: skip
    before = Path("results/table2.json").read_bytes()
    code, _, _ = gpnn("reproduce", "table2", "--graphs", "citeseer")
    assert (code, Path("results/table2.json").read_bytes()) == (0, before)
    code, out, _ = gpnn("reproduce", "table2", "--quick", "--page", "page.md")
    assert code == 0
    assert "Nothing here is a result" in Path("page.md").read_text()
    assert "A preview" in out
    assert "results/quick/table2.json" in files(elsewhere)


def test_help(gpnn):
    for command in ([], ["--help"], ["train", "--help"]):
        code, out, err = gpnn(*command)
        assert (code, err) == (0, "")
        assert "Usage: gpnn" in out


@pytest.mark.slow
def test_a_process_of_its_own(elsewhere):
    done = really("train", "imdb")
    assert_one_sentence(done.returncode, done.stdout, done.stderr)
    done = really("train", "citeseer", "--set", "alpha=2", "--out", "new")
    assert_one_sentence(done.returncode, done.stdout, done.stderr)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.slow
def test_a_bar_on_a_terminal(elsewhere):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "graphpartner.cli", "train", "citeseer", "--seeds", "1", "--set", "epochs=20"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "TERM": "xterm-256color", "COLUMNS": "80"}
    process = subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # how Linux says that the other end was closed
            break
    os.close(ours)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert re.search(r"training ━+.* \d+% \d:\d\d:\d\d ends within \d:\d\d:\d\d", text)
    assert "test accuracy" in text
    assert max(len(line) for part in text.split("\n") for line in part.split("\r")) <= 80
