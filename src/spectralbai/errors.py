"""The exceptions raised on purpose by spectralbai, by kind.

    SpectralBAIError
    ├── InvalidInput (also a ValueError)    refused: an argument or a file breaks a stated rule
    │   ├── NotFound                        not-found: there is no study, ticket, arm or file of that name
    │   └── Conflict                        conflict: it contradicts what is recorded, or what others are doing
    └── StorageError                        broken: a database of studies cannot be read or written
        └── Busy                            busy: it cannot be reached now, or others keep it locked; try again

Adapters turn a kind into a code of theirs in one table: the command line into an exit code, the service into an HTTP
status. Numerical trouble is never an exception: it is a status, with bounds that stay valid.
"""

from typing import ClassVar


class SpectralBAIError(Exception):
    """Base class of every exception raised on purpose by this package."""

    kind: ClassVar[str] = "refused"
    """What sort of trouble it is; see the top of this module."""


class InvalidInput(SpectralBAIError, ValueError):
    """An argument or a file breaks a stated rule; the message says which one and what to do instead."""


class NotFound(InvalidInput):
    """There is no study, ticket, arm or file of that name."""

    kind = "not-found"


class Conflict(InvalidInput):
    """What is asked for contradicts what is recorded, such as another outcome for a ticket or a name that is taken."""

    kind = "conflict"


class StorageError(SpectralBAIError):
    """A database of studies cannot be reached, read or written; nothing was half-written, and the same call may be
    made again."""

    kind = "broken"


class Busy(StorageError):
    """A database cannot be reached now, or others keep it locked; the same call may well succeed later."""

    kind = "busy"
