"""Measure the structure of the package, so that two states of it can be compared by the same definitions.

    python tools/house.py --json > before.json            # static measures, in seconds
    python tools/house.py --walks --list --before before.json

Uses the standard library only; ``--walks`` runs three commands under a tracer, on a copy of the package, and needs
what the package needs.
"""

import argparse
import ast
import fnmatch
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = "graphpartner"
BACKENDS = ("_numba", "_triton")

OLD_ROOMS = (
    "graph", "smoothness", "enhance", "model", "train", "execute", "baselines", "fit", "experiments", "bench", "report",
    "estimator", "cli",
)  # fmt: skip
NEW_ROOMS = (
    "system", "graph", "smoothness", "kernels", "enhance", "model", "training", "execute", "tables", "report",
    "fitting", "serve", "sklearn", "lab", "cli",
)  # fmt: skip
FREE = ("compiled", "errors", "progress")  # of the old house: what is `system` in the new one
SHELVES = ("free", "system", "kernels")  # rooms of tools, which a walk may reach back to

BASELINES = (
    "appnp", "dagnn", "dgi", "dropedge", "gat", "gcn", "gcnii", "grace", "grand", "jknet", "label_propagation",
    "logistic", "mlp", "mvgrl", "sgc",
)  # fmt: skip
# A choice earns a file of its own, even with a single importer. Modules with a `_numba` or `_triton` file beside them
# are kernels wherever they lie.
CHOICES = {
    "kernel": ("kernels/*", "*_numba.py", "*_triton.py", "enhance/*_join.py"),
    "command": ("cli/*",),
    "baseline": tuple(f"{folder}/{name}.py" for folder in ("baselines", "lab/baselines") for name in BASELINES),
    "reader": (
        "graph/text_tables.py", "graph/wide_tables.py", "graph/json_lines.py", "graph/in_memory.py",
        "graph/planetoid.py", "graph/benchmark_npz.py", "graph/npz.py",
        "tables/text*.py", "tables/wide*.py", "tables/json*.py", "tables/in_memory*.py", "tables/parquet*.py",
        "tables/arrow*.py",
    ),
    "transform": ("enhance/transform*.py", "*/transforms/*.py"),
}  # fmt: skip

WALKS = {
    "train": "train citeseer --preset paper --seeds 1 --set epochs=3 --device cpu --out out",
    "fit": "fit --nodes nodes.csv --edges edges.csv --label topic --out model --budget 4s --device cpu",
    "reproduce": "reproduce table1 --quick --graphs citeseer --methods mlp,gpnn --device cpu --out results",
}
QUICK_EPOCHS = 3  # of the preview, in the copy of the package that is traced: as shipped, it takes minutes
WALK_LIMIT = 900  # seconds

STRICT = (
    "file names in two rooms",
    "classes named twice",
    "imports against the order",
    "imports of lab outside commands",
)
Measures = dict[str, float]
Lists = dict[str, list[str]]


@dataclass(frozen=True)
class Module:
    """Hold one file of the package, as text and as syntax.

    Attributes:
        path: relative to the package.
        text: what the file says.
    """

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Parse the file."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """Count lines as ``wc -l`` does."""
        return self.text.count("\n")

    @property
    def name(self) -> str:
        """Return the dotted name; of ``__init__.py``, the package's."""
        parts = [PACKAGE, *self.path.with_suffix("").parts]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def special(self) -> bool:
        """Tell whether the file is ``__init__.py`` or ``__main__.py``."""
        return self.path.stem in ("__init__", "__main__")

    @property
    def folder(self) -> str:
        """Return the room a file name must be unique among: its folder, however deep."""
        return self.path.parent.as_posix()


@dataclass(frozen=True)
class House:
    """Hold the modules of a package, and the order of its rooms."""

    modules: tuple[Module, ...]

    @classmethod
    def read(cls, package: Path) -> "House":
        """Read every Python file below the package's folder."""
        paths = sorted(package.rglob("*.py"))
        return cls(tuple(Module(path.relative_to(package), path.read_text(encoding="utf-8")) for path in paths))

    @cached_property
    def by_name(self) -> dict[str, Module]:
        """Map dotted names to modules."""
        return {module.name: module for module in self.modules}

    @cached_property
    def by_path(self) -> dict[str, Module]:
        """Map relative paths to modules."""
        return {module.path.as_posix(): module for module in self.modules}

    @cached_property
    def rooms(self) -> tuple[str, ...]:
        """Return the order of rooms: the new one as soon as one of its folders is there."""
        there = {module.path.parts[0] for module in self.modules if len(module.path.parts) > 1}
        return NEW_ROOMS if there & {"system", "kernels", "training", "tables", "fitting", "lab"} else OLD_ROOMS

    @property
    def rank(self) -> dict[str, int]:
        """Number the rooms in their order; free files come before all of them."""
        return {"free": -1} | {room: place for place, room in enumerate(self.rooms)}

    def room(self, module: Module) -> str:
        """Return the first folder; of a file that lies in none, its own name, or ``free``."""
        first = module.path.parts[0].removesuffix(".py")
        return "free" if self.rooms is OLD_ROOMS and first in FREE else first

    def operation(self, module: Module) -> Module:
        """Return X.py for X_numba.py and X_triton.py, where there is one; else the module itself."""
        for suffix in BACKENDS:
            if module.path.stem.endswith(suffix):
                path = module.path.with_name(f"{module.path.stem.removesuffix(suffix)}.py")
                return self.by_path.get(path.as_posix(), module)
        return module

    def choice(self, module: Module) -> str | None:
        """Return what kind of choice a module is, or None."""
        backends = (module.path.with_name(f"{module.path.stem}{suffix}.py").as_posix() for suffix in BACKENDS)
        if any(path in self.by_path for path in backends):
            return "kernel"
        path = module.path.as_posix()
        kinds = (kind for kind, globs in CHOICES.items() if any(fnmatch.fnmatch(path, glob) for glob in globs))
        return next(kinds, None)

    @cached_property
    def counted(self) -> list[Module]:
        """List the modules without ``__init__`` and ``__main__``, each operation once."""
        return [module for module in self.modules if not module.special and self.operation(module) is module]

    def imports(self, module: Module) -> Iterator[tuple[str, ast.AST]]:
        """Yield what a module imports from the package, by dotted name, with the statement or string that names it.

        ``from graphpartner.room import name`` is the module ``room.name`` if there is one, else the package. A string
        that is the whole name of a module counts too: tables of names loaded lazily are made of such strings.
        """
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = _base(module, node)
                names = [f"{base}.{alias.name}" for alias in node.names]
                found = [name if name in self.by_name else f"{base}:{name.rpartition('.')[2]}" for name in names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
                found = [node.value]
            else:
                continue
            for name in found:
                if name.partition(":")[0] in self.by_name and name != f"{PACKAGE}:__version__":
                    yield name.partition(":")[0], node

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Map each module to the other modules that import it; backends are their operation."""
        found: dict[str, set[str]] = defaultdict(set)
        for module in self.modules:
            here = self.operation(module).name
            for name, _ in self.imports(module):
                found[self.operation(self.by_name[name]).name].add(here)
        return {name: there - {name} for name, there in found.items()}


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = [PACKAGE, *module.path.parent.parts]
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def measure(house: House) -> tuple[Measures, Lists]:
    """Compute everything that can be read from the files, and the lists behind the numbers."""
    files = [module for module in house.modules if module.path.stem != "__init__"]
    largest = max(files, key=lambda module: module.lines)
    lists: Lists = {
        "largest file": [largest.path.as_posix()],
        "file names in two rooms": _names(house),
        "classes named twice": _classes(house),
        "imports against the order": _against(house),
        "imports of lab outside commands": _lab(house),
    }
    single = {module: there for module in house.counted if len(there := house.importers.get(module.name, ())) == 1}
    lists["one importer, choices left out"] = [
        f"{_short(module.name)} ← {_short(*there)}" for module, there in single.items() if not house.choice(module)
    ]
    lists["one importer, choices"] = [
        f"{_short(module.name)} ({kind})" for module in single if (kind := house.choice(module))
    ]
    measures: Measures = {
        "modules": len(house.counted),
        "files without __init__": len(files),
        "lines": sum(module.lines for module in house.modules),
        "median file": statistics.median(module.lines for module in files),
        "largest file": largest.lines,
        "one importer": len(single),
    }
    return measures | {name: len(found) for name, found in lists.items() if name not in measures}, lists


def _short(name: str) -> str:
    """Drop the package's name: ``room/module``."""
    return name.removeprefix(f"{PACKAGE}.").replace(".", "/")


def _names(house: House) -> list[str]:
    """List file names that occur in two rooms or more, commands left out."""
    folders: dict[str, set[str]] = defaultdict(set)
    for module in house.modules:
        if not module.special and house.room(module) != "cli":
            folders[module.path.stem].add(module.folder)
    return [f"{stem}: {', '.join(sorted(there))}" for stem, there in sorted(folders.items()) if len(there) > 1]


def _classes(house: House) -> list[str]:
    """List the names of top-level classes that two modules or more define."""
    places: dict[str, set[str]] = defaultdict(set)
    for module in house.modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(_short(module.name))
    return [f"{name}: {', '.join(sorted(there))}" for name, there in sorted(places.items()) if len(there) > 1]


def _against(house: House) -> list[str]:
    """List imports of rooms that come later, of what lies in no room, and of the package itself."""
    found = []
    for module in house.modules:
        here = house.room(module)
        if here == "__init__":
            continue
        own = house.rank.get(here)
        if own is None:
            found.append(f"{module.path}: {here} is no room")
        for name in sorted({name for name, _ in house.imports(module)}):
            there = house.room(house.by_name[name])
            other = house.rank.get(there)
            free = here == there == "free"  # of the old house: these import nothing of the package
            if free or (there != here and (own is None or other is None or other > own)):
                found.append(f"{module.path} imports {name}")
    return found


def _lab(house: House) -> list[str]:
    """List imports of the laboratory outside of itself and of commands, and those a command makes when it is loaded."""
    found = []
    for module in house.modules:
        here = house.room(module)
        late = _late(module.tree) if here == "cli" else set()
        for name, node in house.imports(module):
            if here != "lab" and house.room(house.by_name[name]) == "lab" and node not in late:
                found.append(f"{module.path}: {name}")
    return found


def _late(tree: ast.Module) -> set[ast.AST]:
    """Collect what is not run when a module is loaded: functions, and what only type checkers see."""
    late: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            body = list(node.body)
        else:
            continue
        late.update(inner for statement in body for inner in ast.walk(statement))
    return late


def trace(package: Path, arguments: Sequence[str], out: Path) -> None:
    """Run a command in this process, and write the files of the package in the order their functions are entered."""
    sys.path.insert(0, str(package.parent))
    inside, entered = f"{package}/", list[str]()
    done: set[str] = set()

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if file in done or event != "call":
            return
        if not file.startswith(inside):
            done.add(file)
        elif frame.f_code.co_flags & 1 and not _importing(frame, inside):  # 1: a function, no class or module
            done.add(file)
            entered.append(file.removeprefix(inside))

    run_command = import_module(f"{PACKAGE}.cli").main
    sys.argv = ["gpnn", *arguments]
    code: Any = 0
    threading.setprofile(on_event)
    sys.setprofile(on_event)
    try:
        run_command()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    out.write_text(json.dumps(entered))
    sys.exit(code)


def _importing(frame: FrameType, inside: str) -> bool:
    """Tell whether a module is being loaded, or numba compiles: what it runs then depends on what is cached."""
    at: FrameType | None = frame
    while at is not None:
        file = at.f_code.co_filename
        if (at.f_code.co_name == "<module>" and file.startswith(inside)) or "/site-packages/numba/" in file:
            return True
        at = at.f_back
    return False


def walk(root: Path, name: str) -> list[str]:
    """Trace a command on a copy of the package, in a process and a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="house-") as made:
        place = Path(made).resolve()
        package = place / "copy" / PACKAGE
        shutil.copytree(root / PACKAGE, package)  # with __pycache__: compiled loops need not be compiled again
        _shorten(package)
        if name == "fit":
            examples = root / "examples"
            code = f"import sys; sys.path[:0] = {[str(package.parent), str(examples)]}\nfrom pathlib import Path\n"
            _run([sys.executable, "-c", f"{code}from own_csv import write_files\nwrite_files(Path())"], place)
        out = place / "entered.json"
        script = str(Path(__file__).resolve())
        _run([sys.executable, script, "--trace", str(package), str(out), *WALKS[name].split()], place)
        return list(json.loads(out.read_text()))


def _shorten(package: Path) -> None:
    """Let the preview of experiments train for a few epochs: it enters the same files."""
    for path in package.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        short = re.sub(r"^(quick: *\{.*?epochs: *)\d+", rf"\g<1>{QUICK_EPOCHS}", text, flags=re.MULTILINE)
        if short != text:
            path.write_text(short, encoding="utf-8")


def _run(command: list[str], place: Path) -> None:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=WALK_LIMIT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def measure_walk(house: House, files: Sequence[str]) -> tuple[Measures, Lists]:
    """Count modules, changes of room, and steps back to earlier rooms."""
    modules = list(dict.fromkeys(house.operation(house.by_path[file]) for file in files))
    rooms = [_place(house, module) for module in modules]
    changes = sum(one != other for one, other in pairwise(rooms))
    inner = [module for module in modules if house.room(module) not in ("cli", "report")]
    plain = [module for module in inner if house.room(module) not in SHELVES and not _in_kernel(house, module)]
    back, back_plain = _steps_back(house, inner), _steps_back(house, plain)
    line = " → ".join(map(_label, modules))
    measures: Measures = {
        "modules entered": len(modules),
        "room changes": changes,
        "steps back": len(back),
        "steps back, shelves left out": len(back_plain),
    }
    return measures, {"walk": [line], "steps back": back, "steps back, shelves left out": back_plain}


def _place(house: House, module: Module) -> str:
    return module.folder if len(module.path.parts) > 1 else house.room(module)


def _label(module: Module) -> str:
    return module.path.with_suffix("").as_posix()


def _in_kernel(house: House, module: Module) -> bool:
    """Tell whether a module of the old house is one of those that became the room of kernels."""
    return house.rooms is OLD_ROOMS and house.choice(module) == "kernel"


def _steps_back(house: House, modules: Sequence[Module]) -> list[str]:
    return [
        f"{_label(one)} → {_label(other)}"
        for one, other in pairwise(modules)
        if house.rank.get(house.room(other), 0) < house.rank.get(house.room(one), 0)
    ]


def _table(measures: Measures, before: Measures | None) -> str:
    width = max(map(len, measures))
    rows = [f"{'':{width}}  {'value':>8}" + ("" if before is None else f"  {'before':>8}")]
    for name, value in measures.items():
        row = f"{name:{width}}  {value:>8,g}" if value < 1e6 else f"{name:{width}}  {value:>8.0f}"
        if before is not None:
            row += f"  {before[name]:>8,g}" if name in before else f"  {'':>8}"
        rows.append(row)
    return "\n".join(rows)


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the structure of the package.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="another checkout")
    parser.add_argument("--before", type=Path, metavar="JSON", help="what --json printed earlier, to compare with")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--list", action="store_true", help="print the names behind the numbers too")
    parser.add_argument("--walks", action=argparse.BooleanOptionalAction, default=False, help="trace three commands")
    parser.add_argument("--strict", action="store_true", help=f"fail unless zero: {', '.join(STRICT)}")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    """Print the measures; return 1 where ``--strict`` finds some that are not zero."""
    if given and given[0] == "--trace":
        trace(Path(given[1]), given[3:], Path(given[2]))
    options = _arguments(given)
    root = options.root.resolve()
    house = House.read(root / PACKAGE)
    measures, lists = measure(house)
    for name in WALKS if options.walks else ():
        print(f"walking: gpnn {WALKS[name]}", file=sys.stderr, flush=True)
        counted, found = measure_walk(house, walk(root, name))
        measures |= {f"{name}: {what}": value for what, value in counted.items()}
        lists |= {f"{name}: {what}": names for what, names in found.items()}
    if options.json:
        print(json.dumps({"measures": measures, "lists": lists}, indent=1, ensure_ascii=False))
    else:
        before = json.loads(options.before.read_text())["measures"] if options.before else None
        print(_table(measures, before))
        for name, names in lists.items() if options.list else ():
            print(f"\n{name}:", *names, sep="\n  ")
    return int(options.strict and any(measures[name] for name in STRICT))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
