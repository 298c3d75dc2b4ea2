"""Which points a sweep asks for: all of a grid, random ones, or those of an optimiser.

A search is a generator: it yields a batch of points and is sent their objectives. Batches do not
depend on the number of workers, so that a search that is begun anew with the same seed asks for the
same points; what is already in the file answers at once.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

from systole.errors import InputError
from systole.exploration.space import Point, Space
from systole.extras import require
from systole.machine import KeyValue

Objectives = list[float] | None
"""None of a point that failed."""
Batches = Generator[list[Point], list[Objectives], None]

_GRID_BATCH = 4096
_PATIENCE = 100  # infeasible choices in a row per point of a batch, before a search gives up


def batches(space: Space) -> Batches:
    match space.search.method:
        case "grid":
            return _grid(space)
        case "random":
            return _random(space)
    return _optimise(space)


def _grid(space: Space) -> Batches:
    batch: list[Point] = []
    left = space.search.points or space.size
    for point in space.grid():
        batch.append(point)
        left -= 1
        if len(batch) == _GRID_BATCH or left == 0:
            yield batch
            batch = []
        if left == 0:
            return
    if batch:
        yield batch


def _random(space: Space) -> Batches:
    """Without repetition; a grid that is not much larger is shuffled."""
    wanted, axes = space.search.points, space.axes
    generator = random.Random(space.search.seed)
    points: list[Point] = []
    if space.size <= 4 * wanted:
        points = list(space.grid())
        generator.shuffle(points)
        points = points[:wanted]
    else:
        seen: set[tuple[KeyValue, ...]] = set()
        for _ in range(_PATIENCE * wanted):
            chosen = tuple(generator.choice(values) for values in axes.values())
            if len(points) == wanted:
                break
            if chosen in seen:
                continue
            seen.add(chosen)
            point = space.point(dict(zip(axes, chosen, strict=True)))
            if point is not None:
                points.append(point)
    if points:
        yield points


def _choose(trial: Any, space: Space) -> dict[str, KeyValue]:
    """Numbers by their place in the list, so that the optimiser knows neighbours."""
    chosen: dict[str, KeyValue] = {}
    for key, values in space.axes.items():
        if any(isinstance(value, str) for value in values):
            chosen[key] = values[trial.suggest_categorical(key, list(range(len(values))))]
        else:
            chosen[key] = sorted(values)[trial.suggest_int(key, 0, len(values) - 1)]
    return chosen


def _optimise(space: Space) -> Batches:
    optuna = require("optuna", "sweep")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    search = space.search
    samplers = optuna.samplers
    sampler = (
        samplers.NSGAIISampler(population_size=search.batch, seed=search.seed)
        if search.method == "nsga2"
        else samplers.TPESampler(seed=search.seed, constant_liar=True, multivariate=False)
    )
    study = optuna.create_study(directions=["minimize"] * len(space.objectives), sampler=sampler)
    left = search.points
    while left > 0:
        trials: list[Any] = []
        points: list[Point] = []
        for _ in range(_PATIENCE * search.batch):
            if len(points) == min(left, search.batch):
                break
            trial = study.ask()
            point = space.point(_choose(trial, space))
            if point is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                continue
            trials.append(trial)
            points.append(point)
        if not points:
            raise InputError(
                f"{space.source}: constraints: none of {_PATIENCE * search.batch} choices meets "
                "them, expected derived keys in place of equations"
            )
        found = yield points
        for trial, values in zip(trials, found, strict=True):
            if values is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, values)
        left -= len(points)
