"""The service as a process: it is bound to an address, and ends cleanly."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection
from functools import partial
from ipaddress import ip_address
from typing import Any

import uvicorn
from fastapi import FastAPI

from spectralbai.errors import InvalidInput, SpectralBAIError
from spectralbai.service.connections import BACKLOG, Connections, Guarded, log_sparingly
from spectralbai.threads import one_thread

PATIENCE = 30
"""Seconds that running requests have to end when the service is stopped."""


class Server(uvicorn.Server):
    """Serves an application at an address; when it is stopped, it finishes running requests first."""

    def __init__(self, app: FastAPI, host: str = "127.0.0.1", port: int = 8000, proxies: Collection[str] = ()) -> None:
        """`proxies` are the addresses whose X-Forwarded-For and X-Forwarded-Proto are believed."""
        self._connections = Connections(app.state.limits, proxies)
        log_sparingly()
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(Guarded, guard=self._connections),  # type: ignore[arg-type]  # it is called, only
                backlog=BACKLOG,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=sorted(proxies),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=PATIENCE,
            )
        )
        self._app = app
        self._socket = bound(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._socket.getsockname()[1]}"
        """The address of the page; addresses of the API start with it."""

    def serve_until_stopped(self) -> None:
        """Serves until it is stopped by Ctrl-C, SIGTERM, or `should_exit`."""
        with one_thread():  # requests have threads of their own
            self.run(sockets=[self._socket])

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # once a second
            self._connections.close_slow()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.events.close()  # open event streams would keep the server from ending
        await super().shutdown(sockets)


def check_address(name: str, given: str) -> str:
    """Returns an IP address as connections from it say it."""
    try:
        return str(ip_address(given))
    except ValueError:
        raise InvalidInput(f'{name} must be an IP address, such as 127.0.0.1, got "{given}"') from None


def is_loopback(host: str) -> bool:
    """Returns whether only programs of this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound to an address; it does not listen before the service starts."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise InvalidInput(f'--host must be an address or a name of this machine, got "{host}"') from None
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
    except OSError as error:
        made.close()
        raise _not_bound(error, host, port) from None
    made.set_inheritable(True)
    return made


def _not_bound(error: OSError, host: str, port: Any) -> SpectralBAIError:
    if error.errno == errno.EADDRINUSE:
        return SpectralBAIError(f"port {port} is taken by another program; choose another one: --port {port + 1}")
    if error.errno == errno.EACCES:
        return SpectralBAIError(f"port {port} is reserved for the administrator; choose one above 1023: --port 8000")
    if error.errno == errno.EADDRNOTAVAIL:
        return SpectralBAIError(f"{host} is no address of this machine; try --host 127.0.0.1, or 0.0.0.0 for all")
    return SpectralBAIError(f"{host}, port {port}: {error.strerror}")
