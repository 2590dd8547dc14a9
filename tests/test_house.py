"""The rules of the house: who may import whom, what an import costs, what a file may be."""

import ast
import fnmatch
import inspect
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import graphpartner

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "graphpartner"
ROOMS = [
    "system", "graph", "smoothness", "kernels", "enhance", "model", "training", "execute", "tables", "report",
    "fitting", "serve", "sklearn", "lab", "cli",
]  # fmt: skip
LAZY = [
    "numba",
    "pandas",
    "sklearn",
    "yaml",
    "rich",
    "typer",
    "matplotlib",
    "safetensors",
    "pooch",
    "optuna",
    "pyarrow",
]
SOURCES = sorted(PACKAGE.rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The modules of this package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} has a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {module for module in found if module.partition(".")[0] == "graphpartner"}


@pytest.mark.parametrize("path", [path for path in SOURCES if room(path) != "__init__"], ids=name)
def test_a_room_imports_only_from_rooms_above(path):
    here = room(path)
    assert here in ROOMS, f"{here} is no room of the house"
    allowed = set(ROOMS[: ROOMS.index(here) + 1])
    if here == "cli":
        allowed.add("__version__")
    outside = {module for module in imports(path) if module.split(".")[1] not in allowed}
    assert not outside, f"{name(path)} imports {outside} from below"


@pytest.mark.parametrize("path", [path for path in SOURCES if room(path) != "lab"], ids=name)
def test_only_a_command_imports_the_laboratory_and_only_when_it_runs(path):
    laboratory = {module for module in imports(path) if module.split(".")[1] == "lab"}
    assert not laboratory or room(path) == "cli"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            assert not str(node.module).startswith("graphpartner.lab"), f"{name(path)} imports it at once"


def modules_after(code: str) -> set[str]:
    """What Python has loaded after this code, in a process of its own."""
    told = f"import sys\n{code}\nprint('modules', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return {module.partition(".")[0] for module in done.stdout.splitlines()[-1].split()}


def test_importing_the_package_loads_nothing():
    assert not modules_after("import graphpartner, graphpartner.cli") & {"torch", "torch_geometric", "numpy", "scipy"}


@pytest.mark.parametrize("command", [["--help"], ["train", "--help"], ["reproduce", "--help"], ["data"]], ids=" ".join)
def test_a_command_that_only_tells_does_not_wait_for_torch(command):
    code = f"from graphpartner.cli import main\nsys.argv = ['gpnn', *{command}]\nmain()"
    assert not modules_after(code) & {"torch", "torch_geometric", "numpy", "scipy"}


def test_public_names_load_nothing_they_do_not_need():
    # PyTorch Geometric loads some of these itself where they are installed.
    needed = "import torch, numpy, scipy.sparse, torch_geometric.data, torch_geometric.transforms"
    names = set(graphpartner.__all__) - {"GPNNClassifier", "NodeGraph"}  # they need scikit-learn
    before, after = modules_after(needed), modules_after(f"{needed}\nfrom graphpartner import {', '.join(names)}")
    assert "graphpartner" in after
    assert (after - before) & set(LAZY) == set()


@pytest.mark.parametrize("public", graphpartner.__all__)
def test_public_names_are_described(public):
    value = getattr(graphpartner, public)
    assert inspect.getdoc(value)
    assert value.__doc__


def test_public_names_are_those_a_type_checker_sees():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("graphpartner.")
        for alias in node.names
    }
    assert seen == graphpartner._PLACES
    assert set(dir(graphpartner)) >= set(graphpartner.__all__) == set(seen)
    for public, place in seen.items():
        assert getattr(graphpartner, public) is getattr(import_module(place), public)
    with pytest.raises(AttributeError, match="module 'graphpartner' has no attribute 'trian'"):
        _ = graphpartner.trian


def test_no_public_name_is_a_module():
    assert not set(graphpartner.__all__) & {room(path) for path in SOURCES}


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_is_described_and_safe(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 600
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a file says what it is about"
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: input is checked with InputError, not assert"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("pickle.load", "pickle.loads", "torch.load", "eval", "exec"), called
            for keyword in node.keywords:
                assert keyword.arg != "allow_pickle" or ast.unparse(keyword.value) == "False"


def test_everything_that_is_not_python_is_packaged():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["graphpartner"]
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    data = [name(path) for path in files if path.suffix not in (".py", ".md")]
    assert {"py.typed", "graph/builtin/citeseer.npz", "training/presets/citeseer.yaml"} <= set(data)
    for file in data:
        assert any(fnmatch.fnmatch(file, pattern) for pattern in patterns), f"{file} is not in package-data"


def test_make_test_checks_style_and_types():
    makefile = (REPOSITORY / "Makefile").read_text()
    assert "\ntest: lint types\n" in makefile
    for command in ("ruff check .", "ruff format --check .", "mypy", "python -m pytest"):
        assert command in makefile
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert project["tool"]["mypy"]["strict"] is True


def test_versions_agree():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["version"] == graphpartner.__version__
    assert f"## [{graphpartner.__version__}]" in (REPOSITORY / "CHANGELOG.md").read_text()
    assert "MIT License" in (REPOSITORY / "LICENSE").read_text()
