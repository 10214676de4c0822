"""Backups made while eight workers tell, and restored: `python -m verification.backups [--times N]`.

Each backup must restore to a prefix of what was acknowledged: every result whose acknowledgement came before the backup
was begun is there, and no result is there that was not told. Every study must pass its check.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from pathlib import Path

import spectralbai as sb
from spectralbai.study import backup, restore
from verification.postgres import postgres
from verification.workers import INSTANCE, start

WORKERS = 8


def campaign(storage: str, times: int, folder: Path) -> tuple[int, int]:
    """Makes so many backups of a storage in use, restores each, and checks it; returns the least and the largest number
    of results in them."""
    name, told = f"study {secrets.token_hex(4)}", folder / secrets.token_hex(4)
    told.touch()
    problem = sb.Problem(INSTANCE.problem.graph, INSTANCE.problem.R, sigma=100.0)  # nothing is decided for long
    sb.Study.create(name, sb.Instance(problem, INSTANCE.mu), 0.05, storage).close()
    workers = [start(storage, name, seed, str(told)) for seed in range(WORKERS)]
    sizes: list[int] = []
    try:
        while not told.read_text():
            time.sleep(0.05)
        for number in range(times):
            before = acknowledged(told)
            file, url = folder / f"{number}.db", f"sqlite:///{folder / f'restored {number}.db'}"
            checks = [*backup(storage, file), *restore(file, url)]
            if not all(check.sound for check in checks):
                raise SystemExit(f"a copy is not sound: {checks}")
            with sb.Study.open(name, url) as study:
                there = {each.ticket or "": each.outcome for each in study.records().observations}
            lost = [id_ for id_, outcome in before.items() if there.get(id_) != outcome]
            time.sleep(0.2)  # what was recorded before is acknowledged by now
            with sb.Study.open(name, storage) as study:
                numbers = {each.ticket or "": each.number for each in study.records().observations}
            if lost or sorted(numbers[id_] for id_ in there) != list(range(1, len(there) + 1)):
                raise SystemExit(f"{len(lost)} results acknowledged before the backup are not in it, or it has others")
            sizes.append(len(there))
            for each in folder.glob(f"*{number}.db*"):
                each.unlink()
        if not any(worker.is_alive() for worker in workers):
            raise SystemExit("the workers ended before the backups were made; let them work for longer")
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
    return min(sizes), max(sizes)


def acknowledged(told: Path) -> dict[str, float]:
    """Returns the results that were acknowledged so far; the last line may be half written."""
    lines = [line.split() for line in told.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return {id_: float(outcome) for id_, outcome in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, postgres() as database:
        folder = Path(name)
        for kind, storage in (("SQLite", f"sqlite:///{folder / 'used.db'}"), ("PostgreSQL", database())):
            begin = time.monotonic()
            least, most = campaign(storage, chosen.times, folder)
            print(
                f"{kind}, {WORKERS} workers: {chosen.times} backups restored, with {least:,} to {most:,} results, none "
                f"lost, all sound; {time.monotonic() - begin:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
