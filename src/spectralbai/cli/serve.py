"""`spectralbai serve`: studies over HTTP, and in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.process import held_back
from spectralbai.cli.study.common import Json, StorageUrl, read_time
from spectralbai.cli.tables import as_text, print_json, print_plain
from spectralbai.errors import InvalidInput

if TYPE_CHECKING:
    from spectralbai.service.access import TokenFile

app = typer.Typer(invoke_without_command=True)
token = typer.Typer(no_args_is_help=True, help="Who may call the service.")
app.add_typer(token, name="token")

LOCKED = 5.0
"""Seconds that a request waits for a database that others keep locked: fewer than its client waits for the answer."""
Tokens = Annotated[
    Path | None,
    Option(
        "--tokens",
        envvar="SPECTRALBAI_TOKENS",
        show_envvar=False,
        help="File of the tokens; if not given, $SPECTRALBAI_TOKENS, or spectralbai-tokens.json here.",
        metavar="FILE",
    ),
]


@app.callback()
def serve(
    context: typer.Context,
    storage: StorageUrl = None,
    host: Annotated[str, Option(help="Address to listen at; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen at; 0 for any that is free.")] = 8000,
    tokens: Tokens = None,
    sample: Annotated[
        bool, Option("--sample", help="Make a sample study, if there is none, and simulate its visitors.")
    ] = False,
    rate: Annotated[
        float, Option(help="Most requests per second of one client; 0 for any number.", metavar="N")
    ] = 500.0,
    most_options: Annotated[int, Option(help="Most options of an instance.", metavar="N")] = 20_000,
    proxy: Annotated[
        list[str] | None, Option(help="Address of a proxy, whose word on who calls is taken.", metavar="ADDRESS")
    ] = None,
    log: Annotated[bool, Option("--log", help="Write a line for each request to stderr.")] = False,
    modules: Import = None,
) -> None:
    """Serves studies over HTTP, to programs and to the browser.

    \b
    Examples:
      spectralbai serve --sample
      spectralbai serve --storage postgresql://USER:PASSWORD@HOST/DATABASE --port 8080
      spectralbai serve token create --read-write --label "lab 3"

    Only this machine can reach it, unless --host says otherwise; then everyone needs a token.
    """
    if context.invoked_subcommand is not None:
        return
    from spectralbai.checks import check_integer, check_number

    check_number("--rate", rate, "a number of requests per second", low=0.0, strict=False)
    if check_integer("--port", port, 0) > 65535:
        raise InvalidInput(f"--port must be at most 65535, got {port}")
    from spectralbai.service import Access, Server, make_app
    from spectralbai.service.limits import Limits
    from spectralbai.service.sample import visitors
    from spectralbai.service.server import check_address, is_loopback
    from spectralbai.study import Studies

    proxies = [check_address("--proxy", each) for each in proxy or ()]
    file = _tokens(tokens)
    if tokens is not None and not file.exists:
        raise InvalidInput(f"there is no file {tokens}, so nobody could get in; {_first_token(tokens)}")
    if file.exists and not any(each.valid for each in file.tokens):
        raise InvalidInput(f"{file.file} has no valid token, so nobody could get in; {_first_token(tokens)}")
    access = Access(file)
    if not access.needed and not is_loopback(host):
        raise InvalidInput(
            f"--host {host} lets other machines in, and there is no token; create one first: spectralbai serve token "
            "create --read-write"
        )
    if log:
        import logging

        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with Studies(storage, connections=40, patience=LOCKED) as studies:
        app_ = make_app(
            studies, access, Limits(rate=rate, burst=4 * rate, options=check_integer("--most-options", most_options, 2))
        )
        server = Server(app_, host, port, proxies)
        with held_back() as hold, visitors(studies if sample else None):
            hold()  # the server handles Ctrl-C: it finishes running requests first
            words = "" if access.needed else "; everyone who uses this machine may call it"
            typer.echo(f"Serving {studies.storage} at {server.url}{words}. Ctrl-C ends it", err=True)
            server.serve_until_stopped()


@token.command()
def create(
    writes: Annotated[bool, Option("--read-write/--read-only", help="Whether who has it may change studies.")] = False,
    label: Annotated[str, Option(help="What it is for; no two tokens have the same.", metavar="TEXT")] = "",
    study: Annotated[
        str | None, Option(help="The only study that it is for; all if not given.", metavar="NAME")
    ] = None,
    until: Annotated[str | None, Option(help="When it ends: 2026-05-31, or 2026-05-31T18:00.", metavar="DATE")] = None,
    tokens: Tokens = None,
) -> None:
    """Prints a new token. It is shown only once, because only its hash is stored."""
    file = _tokens(tokens)
    end = None if until is None else read_time(until)
    secret = file.create("read-write" if writes else "read-only", label, study, end)
    typer.echo(secret)
    typer.echo(f"Keep it secret: it is not shown again. {file.file} has its hash only", err=True)


@token.command()
def revoke(
    id_: Annotated[str, Argument(help="Id of the token, or its label.", metavar="ID")], tokens: Tokens = None
) -> None:
    """Makes a token invalid at once, also for a service that is running."""
    gone = _tokens(tokens).revoke(id_)
    typer.echo(f"The token {gone.id} is no longer valid")


@token.command("list")
def list_(tokens: Tokens = None, as_json: Json = False) -> None:
    """Lists the labels and rights of the tokens."""
    shown = ("id", "label", "access", "created", "study", "until")
    rows = [{key: getattr(each, key) for key in shown} for each in _tokens(tokens).tokens]
    if as_json:
        print_json(rows)
    else:
        print_plain(as_text(shown, [tuple(value or "" for value in row.values()) for row in rows]))


def _first_token(file: Path | None) -> str:
    named = "" if file is None else f" --tokens {file}"
    return f"create one: spectralbai serve token create --read-write{named}"


def _tokens(file: Path | None) -> TokenFile:
    from spectralbai.service.access import DEFAULT, TokenFile

    return TokenFile(DEFAULT if file is None else file)
