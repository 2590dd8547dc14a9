"""The command line, ``gpnn``: one file per command."""

import sys
from importlib import import_module
from typing import NoReturn

import typer

from graphpartner.cli.bench import bench
from graphpartner.cli.data import data
from graphpartner.cli.fit import fit
from graphpartner.cli.inspect import inspect
from graphpartner.cli.predict import predict
from graphpartner.cli.presets import presets
from graphpartner.cli.reproduce import reproduce
from graphpartner.cli.search import search
from graphpartner.cli.train import train
from graphpartner.system.errors import InputError

# Since 0.29 Typer has errors of its own; before, they were Click's.
UsageError: type[Exception] = getattr(typer, "TyperException", None) or import_module("click").ClickException

app = typer.Typer(
    help="Graph Partner Neural Networks: classify the nodes of a graph from a handful of labels.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (train, fit, predict, data, inspect, reproduce, search, bench):
    app.command()(command)
app.add_typer(presets, name="presets")

STOPPED = 130  # the exit code of a command that was interrupted


@app.callback(invoke_without_command=True)
def no_command(context: typer.Context) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run a command; wrong input ends it with one sentence and exit code 2."""
    try:
        if app(prog_name="gpnn", standalone_mode=False) == STOPPED:  # as Typer returns for Ctrl-C
            _end("stopped", STOPPED)
    except InputError as error:
        _end(str(error), 2)
    except UsageError as error:  # an unknown command or option, a value that is no number
        context = getattr(error, "ctx", None)
        message = error.format_message().rstrip(".") if hasattr(error, "format_message") else str(error)
        _end(f"{message}; see {context.command_path if context else 'gpnn'} --help", 2)
    except OSError as error:  # a disk that is full, a file that vanished
        _end(f"{error.filename or 'a file'}: {error.strerror or error}", 2)
    except (KeyboardInterrupt, typer.Abort):
        _end("stopped", STOPPED)


def _end(message: str, code: int) -> NoReturn:
    print(f"gpnn: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
