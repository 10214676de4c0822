"""Reading the files that users write; every error message names the file and the place in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from typer import Argument

from spectralbai.errors import InvalidInput, about

if TYPE_CHECKING:
    from spectralbai.inputs.table import CsvTable
    from spectralbai.instance import Instance

InstanceFile = Annotated[str, Argument(help='Instance as JSON; "-" reads standard input.', metavar="FILE")]


def read_instance(file: str | Path, has_noise: bool = True) -> Instance:
    """Returns the instance in a JSON file; "-" reads standard input. With `has_noise`, a file that does not say how
    much outcomes vary is refused."""
    from spectralbai.instance import Instance

    content = _content(file)
    with about("standard input" if file == "-" else file):
        document = _parse(content)
        instance = Instance.from_dict(document)
        if has_noise and not {"sigma", "low", "noise"} & document.keys():  # 1 in Python, where it is a choice
            raise InvalidInput(
                '"sigma" is missing, the standard deviation of one outcome, which is not assumed; add "sigma": NUMBER, '
                'or "low" and "high" for outcomes in a range (spectralbai instance --observations FILE estimates it)'
            )
        return instance


def _content(file: str | Path) -> bytes:
    if file == "-":
        return read_stdin()
    try:
        return Path(file).read_bytes()
    except ValueError as error:  # a NUL in the name
        raise InvalidInput(f"{str(file)!r} is no name of a file: {error}") from None


def read_stdin() -> bytes:
    """Returns all of standard input."""
    if sys.stdin is None:
        raise InvalidInput('standard input is closed, and "-" reads it; give a file, or pipe something in')
    return sys.stdin.buffer.read()


def read_json(file: Path) -> Any:
    """Returns the document in a JSON file."""
    with about(file):
        return _parse(_content(file))


def read_text(file: Path) -> str:
    """Returns the content of a text file."""
    with about(file):
        return _text(_content(file))


def _text(content: bytes) -> str:
    try:
        # utf-8-sig, because some editors write a byte-order mark at the beginning
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"line {line}: not UTF-8 text; save the file as UTF-8") from None


@contextmanager
def read_table(file: Path | str) -> Iterator[CsvTable]:
    """Yields the table of a CSV file, or of standard input for "-"; errors raised inside the context name the file."""
    from spectralbai.inputs.table import CsvTable

    with about("standard input" if file == "-" else file):
        yield CsvTable.from_text(_text(_content(file)))


def read_names(file: Path) -> tuple[str, ...]:
    """Returns the names in a file: a name a line or, if it ends in .csv, its column "item" or else the first."""
    if file.suffix != ".csv":
        names = tuple(line.strip() for line in read_text(file).splitlines() if line.strip())
    else:
        with read_table(file) as table:
            names = tuple(table.filled("item" if "item" in table.columns else table.columns[0]))
    if not names:
        raise InvalidInput(f"{file}: there is no name; write one a line")
    return names


def _parse(content: bytes) -> Any:
    try:
        return json.loads(_text(content), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except InvalidInput:
        raise
    except (ValueError, RecursionError):  # numbers of thousands of digits, brackets nested thousands deep
        raise InvalidInput("not JSON that can be read: a number is too long or the nesting too deep") from None


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(f'"{repeated}" must be given once, got it {keys.count(repeated)} times; remove all but one')
    return unique


def _refuse_constant(constant: str) -> NoReturn:
    raise InvalidInput(f'{constant} is not JSON; numbers must be finite, except R, which may be "inf" (with quotes)')
