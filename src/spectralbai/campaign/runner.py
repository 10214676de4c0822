"""Running a campaign: one task per run, on any Executor; results are written while it runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from spectralbai import plugins, simulate
from spectralbai.campaign.definition import Campaign, NamedPolicy, Trajectory
from spectralbai.campaign.results import Results, RunRow
from spectralbai.drift import Drift
from spectralbai.instance import Instance
from spectralbai.noise import Drawing
from spectralbai.policy import Policy

CHUNK_SECONDS = 0.5
"""Rows are written this often; if the process is killed, at most the runs of this time are lost."""


class Task(NamedTuple):
    """One run, in plain values for any worker; only this process remembers which cell it belongs to."""

    instance: str
    """The instance as JSON."""
    kind: str
    settings: str
    """The settings of the policy as JSON."""
    deltas: tuple[float, ...]
    seed: int
    max_samples: int
    noise: Drawing | None
    drift: Drift | None
    outcomes: bytes | None
    """The entries of the table, row by row; None if outcomes are drawn from the means."""
    modules: tuple[str, ...]
    """What the worker has to import, to know the names above."""


Finished = tuple[list[simulate.Run], float]
"""The result from a worker: a run for each delta of the task, and the seconds they took together."""


def run_campaign(
    campaign: Campaign,
    results: Results,
    executor: Executor | None = None,
    slots: int = 1,
    on_run: Callable[[int, int], object] | None = None,
) -> None:
    """Simulates the runs that are missing in the results and writes them, at most `slots` tasks at a time.

    `on_run` is called with (runs done, runs in all): first with the runs done before, after each run, and also from
    time to time while no run finishes. If an interrupt or an error ends it, finished runs are still written, and
    running the same campaign again continues from there.
    """
    done = results.done()
    todo = [
        (trajectory, run)
        for run in range(campaign.runs)  # all cells in turn, so that a campaign stopped early has runs of each
        for trajectory in campaign.trajectories
        if (trajectory.instance.name, trajectory.policy.name, trajectory.deltas[0], run) not in done
    ]
    total = campaign.runs * len(campaign.trajectories)
    report = on_run or (lambda there, total: None)
    there = total - len(todo)
    report(there, total)
    rows: list[RunRow] = []
    last = time.monotonic()
    try:
        for done_now in _finish(campaign, todo, executor, slots):
            if rows and (done_now is None or time.monotonic() - last > CHUNK_SECONDS):
                results.write(rows)
                rows, last = [], time.monotonic()
            if done_now is None:
                report(there, total)
                continue
            trajectory, number, (watched, seconds) = done_now
            rows += [
                RunRow(
                    instance=trajectory.instance.name,
                    policy=trajectory.policy.name,
                    delta=run.delta,
                    run=number,
                    seed=run.seed,
                    rule=run.rule,
                    proved=run.proved,
                    status=run.status,
                    tau=run.tau,
                    arm=run.arm,
                    correct=run.correct,
                    counts=tuple(int(n) for n in run.counts),
                    seconds=seconds,
                )
                for run in watched
            ]
            there += 1
            report(there, total)
    finally:
        if rows:
            results.write(rows)


def _finish(
    campaign: Campaign, todo: list[tuple[Trajectory, int]], executor: Executor | None, slots: int
) -> Iterator[tuple[Trajectory, int, Finished] | None]:
    """Yields runs as they finish, and None if the next takes long, so that finished runs can be written meanwhile."""
    modules = plugins.loaded()
    texts = {each.name: json.dumps(each.instance.as_dict()) for each in campaign.instances}
    tables = {each.name: each.outcomes.tobytes() for each in campaign.instances if each.outcomes is not None}

    def task(trajectory: Trajectory, run: int) -> Task:
        policy, instance = trajectory.policy, trajectory.instance
        return Task(
            instance=texts[instance.name],
            kind=policy.kind,
            settings=json.dumps(policy.settings),
            deltas=trajectory.deltas,
            seed=campaign.seed_of(run),
            max_samples=campaign.max_samples,
            noise=instance.noise,
            drift=instance.drift,
            outcomes=tables.get(instance.name),
            modules=modules,
        )

    if executor is None:
        for trajectory, run in todo:
            yield trajectory, run, work(task(trajectory, run))
            yield None
        return
    ahead = iter(todo)
    waiting: dict[Future[Finished], tuple[Trajectory, int]] = {}
    try:
        while True:
            for trajectory, run in islice(ahead, slots - len(waiting)):
                waiting[executor.submit(work, task(trajectory, run))] = (trajectory, run)
            if not waiting:
                return
            finished = wait(waiting, timeout=CHUNK_SECONDS, return_when=FIRST_COMPLETED).done
            if not finished:
                yield None
            for future in finished:
                trajectory, run = waiting.pop(future)
                yield trajectory, run, future.result()
    finally:
        for future in waiting:
            future.cancel()


def work(task: Task) -> Finished:
    """Returns one simulated run, computed on a worker; all but its time depends only on the task."""
    plugins.load(task.modules)
    policy, mu = _policy(task.instance, task.kind, task.settings, task.deltas)
    begin = time.perf_counter()
    if task.outcomes is None:
        watched = simulate.watch(policy, mu, task.seed, task.max_samples, task.noise, task.drift)
    else:
        table = np.frombuffer(task.outcomes).reshape(policy.problem.n_arms, -1)
        watched = simulate.watch_table(policy, table, task.seed, task.max_samples)
    return watched, time.perf_counter() - begin


@lru_cache(maxsize=32)
def _policy(instance: str, kind: str, settings: str, deltas: tuple[float, ...]) -> tuple[Policy, Any]:
    parsed = Instance.from_dict(json.loads(instance))
    return NamedPolicy(kind, kind, json.loads(settings)).on(parsed, deltas), parsed.mu
