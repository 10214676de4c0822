"""What a campaign costs beside its runs, and what a second core brings. `python -m benchmarks.campaign [--quick]`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from spectralbai.campaign import Results

CAMPAIGN = """
format = "spectralbai-campaign/2"
runs = {runs}
deltas = [0.1, 0.01]
[[instances]]
kind = "cliques"
n_cliques = 2
size = 10
[[instances]]
kind = "florentine_families"
lead = 0.5
[[policies]]
kind = "spectral-race"
[[policies]]
kind = "spectral-tas"
[[policies]]
kind = "top-two"
[[policies]]
kind = "lucb"
"""


def timed(folder: Path, jobs: int) -> tuple[float, float, int]:
    """Returns (seconds by the clock, seconds inside the runs, runs) of the whole command."""
    out = folder / f"jobs-{jobs}"
    arguments = ["simulate", str(folder / "campaign.toml"), "--out", str(out), "--jobs", str(jobs)]
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "spectralbai", *arguments], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    with Results.open(out) as results:
        runs = {(row.instance, row.policy, row.seed): row.seconds for row in results.rows()}
    return seconds, sum(runs.values()), len(runs)


def main() -> None:
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "campaign.toml").write_text(CAMPAIGN.format(runs=5 if "--quick" in sys.argv else 30))
        one, inside, runs = timed(folder, 1)
        two, inside_two, _ = timed(folder, 2)
    console.print(
        f"{runs} runs, one job: {one:.1f} s, of which {inside:.1f} s inside the policies: overhead "
        f"{one / inside - 1:.1%}"
    )
    console.print(
        f"two jobs: {two:.1f} s ({inside_two:.1f} s inside the policies): {one / two:.2f} times the throughput"
    )


if __name__ == "__main__":
    main()
