"""Fifty kills of a campaign at random instants, resumed each time: the same rows as an undisturbed run.

`python -m verification.kills [--kills N]`
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from spectralbai.campaign import Results, RunRow

CAMPAIGN = """
format = "spectralbai-campaign/2"
runs = 40
deltas = [0.1, 0.01]
[[instances]]
kind = "cliques"
n_cliques = 2
size = 5
[[instances]]
kind = "path"
n_arms = 4
lead = 0.5
[[policies]]
kind = "spectral-tas"
[[policies]]
kind = "top-two"
[[policies]]
kind = "lucb"
"""


def start(file: Path, out: Path) -> subprocess.Popen[bytes]:
    arguments = ["simulate", str(file), "--out", str(out), "--jobs", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "spectralbai", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def rows(directory: Path) -> list[RunRow]:
    with Results.open(directory) as results:
        return [replace(row, seconds=0.0) for row in results.rows()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    kills = parser.parse_args().kills
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "campaign.toml"
        file.write_text(CAMPAIGN)
        begin = time.monotonic()
        if start(file, folder / "undisturbed").wait() != 0:
            sys.exit("the undisturbed campaign failed")
        seconds = time.monotonic() - begin
        expected = rows(folder / "undisturbed")
        print(f"undisturbed: {len(expected)} rows in {seconds:.0f} s", flush=True)
        done, campaign = 0, 0
        while done < kills:  # killed until finished, then a new directory
            campaign += 1
            out = folder / f"killed-{campaign}"
            while done < kills:
                process = start(file, out)
                try:
                    process.wait(rng.uniform(0, 0.4 * seconds))
                    break  # finished first
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    done += 1
            if start(file, out).wait() != 0 or rows(out) != expected:
                sys.exit(
                    f"campaign {campaign}, killed at random instants, does not give the rows of an undisturbed run"
                )
            print(f"{done} kills, campaign {campaign}: the same {len(expected)} rows", flush=True)


if __name__ == "__main__":
    main()
