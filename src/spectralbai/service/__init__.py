"""Studies over HTTP: an API for programs in any language, and a page for the browser."""

try:
    import fastapi as _fastapi  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ModuleNotFoundError:
    from spectralbai.errors import SpectralBAIError

    raise SpectralBAIError(
        "the service needs FastAPI and uvicorn, which are not installed; run: pip install 'spectralbai[serve]'"
    ) from None

from spectralbai.service.access import Access
from spectralbai.service.app import make_app
from spectralbai.service.server import Server

__all__ = ["Access", "Server", "make_app"]
