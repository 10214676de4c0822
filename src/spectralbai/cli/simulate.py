"""`spectralbai simulate`: run a campaign, here or on a cluster, from nothing or from where it stopped."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from spectralbai.cli.extensions import Import
from spectralbai.cli.files import read_instance, read_text
from spectralbai.cli.outputs import make_folder
from spectralbai.cli.process import between_steps
from spectralbai.cli.work import Jobs, check_jobs, cluster, processes, progress
from spectralbai.errors import InvalidInput, about

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from spectralbai.campaign import Campaign


def simulate(
    file: Annotated[Path, Argument(help="Campaign as TOML.", metavar="FILE")],
    out: Annotated[Path, Option(help="Directory for the results; one already begun goes on.", metavar="DIR")],
    jobs: Jobs = None,
    address: Annotated[
        str | None, Option("--cluster", help="A dask scheduler to use instead.", metavar="ADDRESS")
    ] = None,
    modules: Import = None,
) -> None:
    """Simulates a campaign: instances x policies x risks x runs.

    \b
    A campaign file:
      format = "spectralbai-campaign/2"
      runs = 100
      deltas = [0.1, 0.01]
      [[instances]]
      kind = "cliques"
      n_cliques = 2
      size = 10
      [[policies]]
      kind = "spectral-race"
      [[policies]]
      kind = "track-and-stop"

    The results do not depend on --jobs, --cluster or interruptions: the same command on the same directory goes on
    where it stopped. Look at them with "spectralbai compare DIR" and "spectralbai plot DIR".
    """
    if address is not None and jobs is not None:
        raise InvalidInput("--jobs and --cluster are both given; the workers of the cluster are its own")
    jobs = check_jobs(jobs)
    from spectralbai.campaign import Campaign
    from spectralbai.tables import Table

    source = read_text(file)
    with about(file):  # the files that it names are looked for beside it
        campaign = Campaign.from_toml(
            source,
            lambda name: read_instance(file.parent / name),
            lambda name, **columns: Table.from_csv(file.parent / name, **columns),
        )
    runs = _run(campaign, source, out, jobs, address)
    typer.echo(f"{runs} runs are in {out}; look at them with: spectralbai compare {out}")


def _run(campaign: Campaign, source: str, out: Path, jobs: int, address: str | None) -> int:
    """Runs what is missing of a campaign; returns how many runs it has."""
    from spectralbai.campaign import Results, run_campaign

    seen = (0, 0)
    executor: Executor | None
    with ExitStack() as stack:
        if address is not None:  # before anything is written
            executor, threads = stack.enter_context(cluster(address))
            slots = 2 * threads
        make_folder("--out", out)
        results = stack.enter_context(Results.begin(out, source, campaign))
        if len(set(map(str, results.sessions))) > 1:
            words = "the campaign was begun with other versions of python or packages; runs may differ in rounding"
            print(f"warning: {words}", file=sys.stderr)
        if address is None:
            executor, slots = stack.enter_context(processes(jobs)), 2 * jobs
        show = stack.enter_context(progress("simulated runs"))

        def on_run(there: int, total: int) -> None:
            nonlocal seen
            seen = (there, total)
            show(there, total)
            between_steps()

        try:
            run_campaign(campaign, results, executor, slots, on_run)
        except KeyboardInterrupt:
            kept = f"{seen[0]} of {seen[1]} runs are kept; the same command goes on from there"
            raise KeyboardInterrupt(kept) from None
    return seen[1]
