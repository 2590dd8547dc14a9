"""The rules of the house: what a room may import, what an import costs, what a file may be."""

import ast
import fnmatch
import importlib.util
import inspect
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import graphpartner

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "graphpartner"
SOURCES = sorted(PACKAGE.rglob("*.py"))
LARGEST = 600  # lines of a file
HEAVY = {
    "numba", "pandas", "sklearn", "yaml", "pydantic", "rich", "typer", "matplotlib", "safetensors", "pooch", "optuna",
    "pyarrow",
}  # fmt: skip


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The program that measures the structure of the package."""
    spec = importlib.util.spec_from_file_location("house", REPOSITORY / "tools" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_rooms_names_and_sizes(tool: ModuleType) -> None:
    measures, lists = tool.measure(tool.House.read(PACKAGE))
    for rule in tool.STRICT:
        assert lists[rule] == [], rule
    assert set(tool.STRICT) == {
        "file names in two rooms",
        "classes named twice",
        "imports against the order",
        "imports of lab outside commands",
    }
    assert measures["largest file"] <= LARGEST, lists["largest file"]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_imports_are_absolute(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.ImportFrom) or node.level == 0, f"line {node.lineno} has a relative import"


def modules_after(code: str) -> set[str]:
    """What Python has loaded after this code, in a process of its own."""
    program = f"import sys\n{code}\nprint('modules', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return {module.partition(".")[0] for module in done.stdout.splitlines()[-1].split()}


def test_importing_the_package_loads_nothing() -> None:
    assert not modules_after("import graphpartner, graphpartner.cli") & {"torch", "torch_geometric", "numpy", "scipy"}


@pytest.mark.parametrize("command", [["--help"], ["train", "--help"], ["reproduce", "--help"], ["data"]], ids=" ".join)
def test_a_command_that_computes_nothing_does_not_load_torch(command: list[str]) -> None:
    code = f"from graphpartner.cli import main\nsys.argv = ['gpnn', *{command}]\nmain()"
    assert not modules_after(code) & {"torch", "torch_geometric", "numpy", "scipy"}


def test_public_names_load_nothing_they_do_not_need() -> None:
    # PyTorch Geometric loads some of these itself where they are installed.
    needed = "import torch, numpy, scipy.sparse, torch_geometric.data, torch_geometric.transforms"
    names = set(graphpartner.__all__) - {"GPNNClassifier", "NodeGraph"}  # they need scikit-learn
    before, after = modules_after(needed), modules_after(f"{needed}\nfrom graphpartner import {', '.join(names)}")
    assert "graphpartner" in after
    assert (after - before) & HEAVY == set()


@pytest.mark.parametrize("public", graphpartner.__all__)
def test_public_names_are_described(public: str) -> None:
    value = getattr(graphpartner, public)
    assert inspect.getdoc(value)
    assert value.__doc__


def test_public_names_are_those_a_type_checker_sees() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    seen = {
        alias.asname: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("graphpartner.")
        for alias in node.names
    }
    assert seen == {public: (f"graphpartner.{place}", public) for public, place in graphpartner._PLACES.items()}
    assert set(dir(graphpartner)) >= set(graphpartner.__all__) == set(seen)
    for public, place in graphpartner._PLACES.items():
        assert getattr(graphpartner, public) is getattr(import_module(f"graphpartner.{place}"), public)
    with pytest.raises(AttributeError, match="module 'graphpartner' has no attribute 'trian'"):
        _ = graphpartner.trian  # type: ignore[attr-defined]


def test_no_public_name_is_a_module() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in SOURCES}
    assert not set(graphpartner.__all__) & rooms


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_is_described_and_safe(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a file has a docstring"
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: input is checked with InputError, not assert"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("pickle.load", "pickle.loads", "torch.load", "eval", "exec"), called
            for keyword in node.keywords:
                assert keyword.arg != "allow_pickle" or ast.unparse(keyword.value) == "False"


def test_everything_that_is_not_python_is_packaged() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["graphpartner"]
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    data = [name(path) for path in files if path.suffix not in (".py", ".md")]
    assert {"py.typed", "graph/builtin/citeseer.npz", "training/presets/citeseer.yaml"} <= set(data)
    for file in data:
        assert any(fnmatch.fnmatch(file, pattern) for pattern in patterns), f"{file} is not in package-data"


def test_make_test_checks_style_and_types() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    assert "\ntest: lint types\n" in makefile
    for command in ("ruff check .", "ruff format --check .", "mypy", "python -m pytest"):
        assert command in makefile
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert project["tool"]["mypy"]["strict"] is True


def test_versions_agree() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["version"] == graphpartner.__version__
    assert f"## [{graphpartner.__version__}]" in (REPOSITORY / "CHANGELOG.md").read_text()
    assert "MIT License" in (REPOSITORY / "LICENSE").read_text()
