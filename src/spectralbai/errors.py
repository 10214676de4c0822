"""The exceptions that spectralbai raises on purpose, by kind.

    SpectralBAIError
    ├── InvalidInput (also a ValueError)    refused: an argument or a file breaks a stated rule
    │   ├── NotFound                        not-found: there is no study, ticket, arm or file with that name
    │   └── Conflict                        conflict: it contradicts what is recorded, or what others are doing
    └── StorageError                        broken: a database of studies cannot be read or written
        ├── Damaged                         damaged: the records of one study are not as they were written
        └── Busy                            busy: it cannot be reached now, or others keep it locked; try again

The command line translates each kind into an exit code, and the service into an HTTP status, each in one table.
Numerical problems are never exceptions: results have a status, and bounds that stay valid.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class SpectralBAIError(Exception):
    """Base class of every exception raised on purpose by this package.

    Examples:
        >>> import spectralbai as sb
        >>> try:
        ...     sb.Problem(sb.Graph.from_edges(3, [(1, 2)]), R=-0.1)
        ... except sb.SpectralBAIError as error:
        ...     print(error)
        `R` must be non-negative (math.inf ignores the graph), got -0.1
    """

    kind: ClassVar[str] = "refused"
    """The kind of error; see the top of this module."""


class InvalidInput(SpectralBAIError, ValueError):
    """An argument or a file breaks a stated rule; the message says which one and what to do instead.

    Examples:
        >>> import spectralbai as sb
        >>> try:
        ...     sb.Graph.from_edges(3, [(1, 5)])
        ... except ValueError as error:
        ...     print(type(error).__name__)
        InvalidInput
    """


class NotFound(InvalidInput):
    """There is no study, ticket, arm or file with that name.

    Examples:
        >>> import spectralbai as sb
        >>> try:
        ...     sb.Studies("sqlite:///nowhere.db", create=False)
        ... except sb.NotFound as error:
        ...     print(error)
        there is no database nowhere.db; create a study first, or give the right storage
    """

    kind = "not-found"


class Conflict(InvalidInput):
    """The request contradicts what is recorded, such as a different outcome for a ticket or a name that is taken.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> with sb.Study.create("told", sb.Instance(problem, labels=["old", "new"])) as study:
        ...     ticket = study.ask()[0]
        ...     new = study.tell(ticket, 0.4)
        ...     try:
        ...         study.tell(ticket, 0.5)
        ...     except sb.Conflict as error:
        ...         print(error.kind)
        conflict
    """

    kind = "conflict"


class StorageError(SpectralBAIError):
    """A database of studies cannot be reached, read or written. Nothing was written in part, and it is safe to make the
    same call again.

    Examples:
        >>> import spectralbai as sb
        >>> with open("notes.db", "w") as notes:
        ...     length = notes.write("This is not a database. " * 10)
        >>> try:
        ...     sb.Study.open("doses", storage="sqlite:///notes.db")
        ... except sb.StorageError as error:
        ...     print("refused:", "notes.db" in str(error))
        refused: True
    """

    kind = "broken"


class Damaged(StorageError):
    """The records of one study are not as they were written: a part cannot be read, or was changed by hand. Other
    studies of the storage go on; `spectralbai study check` says what is wrong with this one.

    Examples:
        >>> import spectralbai as sb
        >>> issubclass(sb.Damaged, sb.StorageError), sb.Damaged.kind
        (True, 'damaged')
    """

    kind = "damaged"


class Busy(StorageError):
    """A database cannot be reached now, or others keep it locked; the same call may succeed later.

    Examples:
        >>> import spectralbai as sb
        >>> issubclass(sb.Busy, sb.StorageError), sb.Busy.kind
        (True, 'busy')
    """

    kind = "busy"


@contextmanager
def about(place: object) -> Iterator[None]:
    """Puts a place, such as the name of a file, before the message of InvalidInput that the `with` block raises; a
    NotFound or a Conflict remains one."""
    try:
        yield
    except InvalidInput as error:
        raise type(error)(f"{place}: {error}") from None
