"""Services in threads of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import spectralbai as sb
from spectralbai.service import Access, Server, make_app


@contextmanager
def running() -> Iterator[Callable[..., str]]:
    """Yields a function that serves studies, and returns the address; all end with the context."""
    with ExitStack() as stack:

        def start(studies: sb.Studies, access: Access | None = None, port: int = 0, **choices: Any) -> str:
            server = Server(make_app(studies, access, **choices), port=port)
            thread = threading.Thread(target=server.serve_until_stopped, daemon=True)
            thread.start()
            stack.callback(_stop, server, thread)
            while not server.started:
                time.sleep(0.005)
            return server.url

        yield start


def _stop(server: Server, thread: threading.Thread) -> None:
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()
