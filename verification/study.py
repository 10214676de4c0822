"""Two hundred kills of workers at random instants of ask and tell, on SQLite and on PostgreSQL, and as many of workers
on a list of items: nothing told is lost, and no pair counts twice.

`python -m verification.study [--kills N]`. After the kills, and after the workers that were left have brought the study
to its decision, every acknowledged result must be there exactly once, and state and decision must be those of an
undisturbed replay of the same observations, bit for bit.
"""

from __future__ import annotations

import argparse
import random
import secrets
import tempfile
import time
from pathlib import Path

import spectralbai as sb
from verification.postgres import postgres
from verification.workers import INSTANCE, LISTED, check, start


def kill(url: str, kills: int, seed: int, folder: Path, delta: float = 0.05, instance: sb.Instance = INSTANCE) -> int:
    """Runs studies of an instance at a risk of `delta` with two workers, one of which is killed at random instants,
    `kills` times; returns the number of results."""
    rng = random.Random(seed)
    done = total = 0
    while done < kills:
        name, acknowledged = f"study {secrets.token_hex(4)}", str(folder / secrets.token_hex(4))
        sb.Study.create(name, instance, delta, url).close()
        steady = start(url, name, rng.randrange(10**9), acknowledged)
        while done < kills and steady.is_alive():
            victim = start(url, name, rng.randrange(10**9), acknowledged)
            victim.join(rng.uniform(0.0, 0.5))
            if victim.exitcode is None:
                victim.kill()
                done += 1
            victim.join()
        steady.join()
        if steady.exitcode != 0:
            raise SystemExit(f"a worker that was not killed ended with {steady.exitcode}")
        total += check(url, name, Path(acknowledged))
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    kills = parser.parse_args().kills
    with tempfile.TemporaryDirectory() as name, postgres() as database:
        folder = Path(name)
        for kind, url in (("SQLite", f"sqlite:///{folder / 'studies.db'}"), ("PostgreSQL", database())):
            for what, instance in (("options", INSTANCE), ("options on items", LISTED)):
                begin = time.monotonic()
                results = kill(url, kills, 0, folder, instance=instance)
                seconds = time.monotonic() - begin
                print(
                    f"{kind}, {what}: {kills} kills, {results:,} results, none lost, none twice, state as in a "
                    f"replay; {seconds:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
