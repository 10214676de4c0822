"""Writing files: a file of another kind is never replaced without --force, and no file is ever written in part."""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer import Option

from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from spectralbai.plot.files import Format

Force = Annotated[bool, Option("--force", help="Replace files that are there, whatever they hold.")]
Width = Annotated[
    float | None,
    Option(help="Width of the picture in inches, with text to match; 3.25 for a column of a paper.", metavar="INCHES"),
]

FORMATS: tuple[Format, ...] = ("png", "pdf", "svg")
NARROWEST, WIDEST = 2.0, 40.0

HEAD, TAIL = 2048, 65536
"""Numbers of bytes at the beginning and at the end of a file by which its kind is recognised."""
STANDARD = {"/dev/stdout": "/dev/fd/1", "/dev/stderr": "/dev/fd/2"}


class Kind(NamedTuple):
    """A kind of file."""

    name: str
    mark: bytes | None
    """Pattern that both ends of every such file match, put together; None if this kind cannot be recognised."""


def _json(name: str, format_: str) -> Kind:
    return Kind(name, rb'\s*\{\s*"format"\s*:\s*"' + format_.encode() + rb'/\d+"')


INSTANCE = _json("an instance", "spectralbai-instance")
EXPORT = _json("an exported study", "spectralbai-export")
REPORT = _json("a report as JSON", "spectralbai-report")
PAGE = Kind("a report of spectralbai", rb'(?s)<!DOCTYPE html>.*<meta name="generator" content="spectralbai">')
PICTURE = Kind(
    "a picture by spectralbai",
    rb"(?s)\x89PNG\r\n\x1a\n.*tEXtSoftware\x00spectralbai"
    rb"|%PDF-.*/Creator \(spectralbai\)"
    rb"|<\?xml .*<svg .*<dc:creator>\s*<cc:Agent>\s*<dc:title>spectralbai</dc:title>",
)
TABLE = Kind("a table", None)


@dataclass(frozen=True)
class Output:
    """A file that will be written. It is checked when this object is made, before any work is done."""

    option: str
    """The option that named the file."""
    path: Path
    kind: Kind
    force: bool

    def __post_init__(self) -> None:
        self._check()

    @property
    def is_stream(self) -> bool:
        """Whether it is a pipe or a device: it is written to directly, and no second file can be put next to it."""
        return _descriptor(self.path) is not None or (self.path.exists() and not self.path.is_file())

    def write(self, content: bytes) -> None:
        """Writes the file completely, or leaves the old one; writes the target of a link, or into a pipe or device."""
        self._check()  # another program may have made a file there meanwhile
        if not self.is_stream:
            _write_whole(self._target, content)
            return
        descriptor = _descriptor(self.path)
        with open(self.path if descriptor is None else os.dup(descriptor), "wb") as stream:
            stream.write(content)

    @property
    def _target(self) -> Path:
        """The file that the path leads to, if it is a link; otherwise the path."""
        return Path(os.path.realpath(self.path)) if self.path.is_symlink() else self.path

    def _check(self) -> None:
        try:
            descriptor = _descriptor(self.path)
            if descriptor is not None:
                os.fstat(descriptor)
                return
            mode = self._mode()
        except OSError as error:
            raise self._refusal(f"cannot be written to ({error.strerror}); choose another") from None
        if mode is not None and stat.S_ISDIR(mode):
            raise self._refusal("is a directory, where a file is to be written; choose another")
        if mode is not None and not stat.S_ISREG(mode):
            if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)) or not os.access(self.path, os.W_OK):
                raise self._refusal("is neither a file nor a pipe that can be written to; choose another")
            return
        check_folder(self.option, self._target.parent)
        if mode is not None and not self.force:
            self._check_own(mode)

    def _mode(self) -> int | None:
        """Returns the mode of the file that the path leads to; None if there is no such file yet."""
        try:
            return self.path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _check_own(self, mode: int) -> None:
        remedy = "choose another name, or replace it with --force"
        if self.kind.mark is None:
            raise self._refusal(f"is there already, and {self.kind.name} does not tell who made it; {remedy}")
        try:
            with self.path.open("rb") as file:
                ends = file.read(HEAD)
                file.seek(max(file.seek(0, os.SEEK_END) - TAIL, HEAD))
                known = re.match(self.kind.mark, ends + file.read()) is not None
        except OSError:
            known = False
        if not known:
            raise self._refusal(f"is there already, and is not {self.kind.name}; {remedy}")
        if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise self._refusal(f"is read-only; {remedy}")

    def _refusal(self, reason: str) -> InvalidInput:
        return InvalidInput(f"{self.option}: {self.path} {reason}")


def check_folder(option: str, folder: Path) -> None:
    """Raises InvalidInput if a folder does not exist, or if no files can be created in it."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileNotFoundError:
        raise InvalidInput(f"{option}: there is no folder {folder}; make it first, or choose another") from None
    except OSError as error:
        raise InvalidInput(
            f"{option}: {folder} is no directory that can be written to ({error.strerror}); choose another"
        ) from None


def make_folder(option: str, folder: Path) -> None:
    """Creates the folder that a command fills, if it does not exist, and says so; its parent folder must exist."""
    if not os.path.lexists(folder):
        check_folder(option, folder.parent)
        folder.mkdir()
        typer.echo(f"made the folder {folder}", err=True)
    check_folder(option, folder)


def _write_whole(path: Path, content: bytes) -> None:
    """Writes a new file and, when it is complete, replaces the old one by it; the permissions stay the same."""
    part = path.with_name(f".spectralbai-{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
        if path.exists():
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _descriptor(path: Path) -> int | None:
    """Returns the number of the open file that a path such as /dev/stdout refers to; None for other paths."""
    name = os.path.abspath(path)
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", STANDARD.get(name, name))
    return None if found is None else int(found[1])


def picture_format(option: str, path: Path) -> Format:
    """Returns the format of a picture by the suffix of its file; PNG without a suffix, as for a pipe."""
    suffix = path.suffix.lower().removeprefix(".") or "png"
    for form in FORMATS:
        if suffix == form:
            return form
    raise InvalidInput(f"{option} must end in .png, .pdf or .svg, which says the format, got {path}; choose one")


def check_width(width: float | None) -> None:
    """Raises InvalidInput for a width that no picture can have."""
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise InvalidInput(f"--width must be between {NARROWEST:g} and {WIDEST:g} inches, got {width:g}")
