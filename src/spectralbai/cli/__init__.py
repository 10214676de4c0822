"""The command `spectralbai`: it parses arguments, calls the library and prints. Numerical modules are imported inside
the commands, so that it starts fast.

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 valid but unfinished, 130 interrupted, 141 nobody reads the output. The
answer goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from spectralbai import __version__
from spectralbai.cli import process
from spectralbai.cli.backup import backup, restore
from spectralbai.cli.compare import compare
from spectralbai.cli.instance import instance
from spectralbai.cli.pick import pick
from spectralbai.cli.plan import plan
from spectralbai.cli.plot import plot
from spectralbai.cli.reproduce import reproduce
from spectralbai.cli.serve import app as serve
from spectralbai.cli.simulate import simulate
from spectralbai.cli.solve import solve
from spectralbai.cli.study import app as study
from spectralbai.cli.work import saying_that_it_compiles
from spectralbai.errors import SpectralBAIError

REFUSED = 1
EXIT_CODES = dict.fromkeys(("refused", "not-found", "conflict", "broken", "damaged", "busy"), REFUSED)
"""Exit code for each kind of error (`spectralbai.errors`)."""


class Commands(TyperGroup):
    """All commands. Interrupts and closed pipes are handled here, because typer would handle them differently."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            process.say_interrupted(*interrupt.args)
            sys.exit(process.INTERRUPTED)
        except BrokenPipeError:  # the reader has enough, as `head` has after some lines
            process.discard_output()
            sys.exit(process.NO_READER)


app = typer.Typer(
    name="spectralbai",
    cls=Commands,
    epilog="Try: spectralbai reproduce",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (pick, instance, plan, solve, reproduce, simulate, compare, plot, backup, restore):
    app.command()(command)
app.add_typer(study, name="study")
app.add_typer(serve, name="serve")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"spectralbai {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the best of many related options with the fewest noisy trials."""


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits; every error becomes one line on stderr here, and only here.

    Without `arguments`, those of the process are used, and the whole process belongs to the command.
    """
    try:
        if arguments is None:
            process.own_process()
        with saying_that_it_compiles():
            app(arguments, prog_name="spectralbai")
    except SpectralBAIError as error:
        _refuse(str(error), EXIT_CODES[error.kind])
    except MemoryError:
        _refuse("there is not enough memory for a problem of this size")
    except OSError as error:
        process.discard_output()
        where = f"{error.filename}: " if error.filename is not None else ""
        _refuse(where + (error.strerror or str(error)))
    finally:
        process.restore_default()


def _refuse(reason: str, code: int = REFUSED) -> None:
    print("error: " + " ".join(reason.split()), file=sys.stderr)
    sys.exit(code)
