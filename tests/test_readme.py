"""Everything the README shows is run as written."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphpartner.cli import main
from graphpartner.training.presets import preset, preset_names

GRAPHS = ("cora", "citeseer", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo")
REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
SHELL = [code for language, code in BLOCKS if language in ("bash", "console", "sh")]
# These two install the package anew and run this very test: what they run is tested below instead.
MAKE = [code for code in SHELL if code.startswith("make ")]


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the tests run beside each other
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
@pytest.mark.usefixtures("one_thread")
def test_python(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHPARTNER_DATA", raising=False)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [line for code in SHELL if code not in MAKE for line in code.splitlines()], ids=lambda line: line[:40]
)
def test_shell(line, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "GRAPHPARTNER_DATA"}
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "gpnn").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphpartner.cli "$@"\n')
    (commands / "gpnn").chmod(0o755)
    environment |= {"PATH": f"{commands}:{environment['PATH']}", "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [shutil.which("bash"), "-euc", line], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    made = re.search(r"> (\S+)|--out (\S+)", line)
    assert done.stdout or made
    if made:
        assert (tmp_path / (made[1] or made[2])).exists()


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_own_graph(tmp_path, monkeypatch):
    """The commands for files of one's own, on the files of the example."""
    lines = [line for language, code in BLOCKS if language == "text" for line in code.splitlines()]
    lines = [line for line in lines if line.split()[1] in ("fit", "predict")]
    assert [line.split()[1] for line in lines] == ["fit", "predict", "predict"]
    runpy.run_path(str(REPOSITORY / "examples" / "own_csv.py"))["write_files"](tmp_path)
    monkeypatch.chdir(tmp_path)
    for line in lines:
        monkeypatch.setattr(sys, "argv", [*line.split(), *(["--budget", "4s"] if " fit " in line else [])])
        main()
        assert (tmp_path / line.split("--out ")[1]).exists()


LONG = [line for language, code in BLOCKS if language == "text" for line in code.splitlines() if "predict" not in line]


@pytest.mark.parametrize("line", LONG)
def test_commands_that_take_long_are_spelt_right(line, monkeypatch, capsys):
    """An option that does not exist is refused before a device that does not."""
    monkeypatch.setattr(sys, "argv", [*line.partition("#")[0].split(), "--device", "none"])
    with pytest.raises(SystemExit):
        main()
    assert "none" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_make_run_runs_a_command_that_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHPARTNER_DATA", raising=False)
    makefile = (REPOSITORY / "Makefile").read_text()
    command = re.search(r"^run:.*\n\t\$\(BIN\)/(gpnn .*)$", makefile, re.MULTILINE)[1].split()
    assert command[:3] == ["gpnn", "train", "citeseer"]
    monkeypatch.setattr(sys, "argv", [*command, "--set", "epochs=2"])
    main()
    assert "test accuracy" in capsys.readouterr().out
    assert (tmp_path / "runs/citeseer/predictions.csv").exists()


def test_make_targets():
    makefile = (REPOSITORY / "Makefile").read_text()
    assert len(MAKE) == 1
    for target in re.findall(r"^make (\w+)", MAKE[0], re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r'src="([^"]+)"', README)
    assert "docs/figures/depth.svg" in links
    for link in links:
        assert (REPOSITORY / link).exists(), link


def test_the_example_is_short_and_the_page_begins_with_it():
    lines = [line for line in PYTHON[0].splitlines() if line.strip()]
    assert len(lines) <= 10
    assert README.index("make run") < README.index("```python") < README.index("depth.svg") < README.index("## ")


def test_the_map_names_every_room():
    rooms = [path.name for path in (REPOSITORY / "graphpartner").iterdir() if (path / "__init__.py").exists()]
    for room in rooms:
        assert f"| `{room}/` |" in README


def test_honest_about_presets():
    peeked = [name for name in preset_names() if preset(name).saw_test]
    assert peeked == []  # otherwise this page must say which
    sentence = "began at, which had once been picked with a look at test accuracy"
    assert [name for name in preset_names() if sentence in preset(name).provenance] == ["citeseer/views"]
    assert f"CiteSeer's `views` is the setting its search {sentence}" in " ".join(README.split())
    assert not [name for name in preset_names() if "not searched" in preset(name).provenance]


def test_accuracies_are_those_of_the_results():
    cells = json.loads((REPOSITORY / "results" / "table1.json").read_text())
    found = {(cell["row"], cell["graph"]): cell for cell in cells if cell["mean"] is not None}
    rows = re.findall(r"^\| (GPNN \(\w+\)|published) \| (.*) \|$", README, re.MULTILINE)
    assert [name for name, _ in rows] == ["published", "GPNN (paper)", "GPNN (tuned)", "GPNN (best)"]
    for name, numbers in rows:
        for graph, number in zip(GRAPHS, numbers.split(" | "), strict=True):
            cell = found["GPNN (best)" if name == "published" else name, graph]
            mean, sd = ("published", "published_sd") if name == "published" else ("mean", "sd")
            assert number == f"{cell[mean]:.1f} ± {cell[sd]:.1f}", (name, graph)
