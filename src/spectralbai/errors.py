"""The exceptions raised on purpose by spectralbai.

    SpectralBAIError
    ├── InvalidInput (also a ValueError)    an argument or a file breaks a stated rule
    └── StorageError                        a database of studies cannot be reached, read or written

Numerical trouble is never an exception: it is a status, with bounds that stay valid.
"""


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


class InvalidInput(SpectralBAIError, ValueError):
    """An argument or a file breaks a stated rule; the message says which one and how to mend it.

    Examples:
        >>> import spectralbai as sb
        >>> try:
        ...     sb.Graph.from_edges(3, [(1, 5)])
        ... except ValueError as error:
        ...     print(type(error).__name__)
        InvalidInput
    """


class StorageError(SpectralBAIError):
    """A database of studies cannot be reached, read or written; nothing was half-written, and the same call may be
    made again.

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
