"""The exceptions raised on purpose by spectralbai.

    SpectralBAIError
    ├── InvalidInput (also a ValueError)    an argument or a file breaks a stated rule
    └── StorageError                        a database of studies cannot be reached, read or written

Numerical trouble is never an exception: it is a status, with bounds that stay valid.
"""


class SpectralBAIError(Exception):
    """Base class of every exception raised on purpose by this package."""


class InvalidInput(SpectralBAIError, ValueError):
    """An argument or a file breaks a stated rule; the message says which one and how to mend it."""


class StorageError(SpectralBAIError):
    """A database of studies cannot be reached, read or written; nothing was half-written, and the same call may be
    made again."""
