"""Which network for this machine: NSGA-II over the networks of a supernet.

A network's accuracy is that of its integers, by the program, on pictures that neither trained nor
chose it; cycles and energy are those of the program's run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from systole.architecture.supernet import Array, Shape, Weights, checkpoint
from systole.architecture.training import IMAGE, PATCH, Space
from systole.commands import run
from systole.errors import InputError
from systole.extras import require
from systole.machine import Machine
from systole.result import Result
from systole_convert.tensor_file import OutTensor, write

OBJECTIVES = ("error", "cycles", "energy_joules")


@dataclass(frozen=True)
class Candidate:
    """A network on a machine: an inference, and wrong answers as a share."""

    shape: Shape
    error: float
    cycles: float
    energy_joules: float

    @property
    def edp(self) -> float:
        """Energy times cycles."""
        return self.energy_joules * self.cycles

    def objectives(self) -> tuple[float, float, float]:
        return self.error, self.cycles, self.energy_joules

    def dominates(self, other: Candidate) -> bool:
        ours, theirs = self.objectives(), other.objectives()
        return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


@dataclass
class Search:
    """Every network that was tried, and the front."""

    candidates: list[Candidate] = field(default_factory=list)

    def pareto(self) -> list[Candidate]:
        """Those that no other is better than in all three, the fastest first."""
        front = [
            one
            for one in self.candidates
            if not any(other.dominates(one) for other in self.candidates)
        ]
        return sorted(front, key=lambda one: (one.cycles, one.error, one.shape))

    def best(self, error: float) -> Candidate | None:
        """The least energy-delay product among those with at most that share of wrong answers."""
        good = [one for one in self.candidates if one.error <= error]
        return min(good, key=lambda one: (one.edp, one.shape), default=None)


class Evaluator:
    """Runs networks of a supernet on a machine, each once."""

    def __init__(
        self,
        weights: Weights,
        machine: Machine,
        folder: Path,
        pictures: int,
    ) -> None:
        """`folder`: for checkpoints; `pictures`: of the digits' test pictures, that choose."""
        self._weights, self._machine, self._folder = weights, machine, folder
        self._pictures = pictures
        self._program = machine.program
        self._known: dict[Shape, Candidate] = {}

    def write(self, shape: Shape) -> Path:
        """The network as a checkpoint of real numbers."""
        tensors = checkpoint(self._weights, shape, PATCH, IMAGE)
        path = (
            self._folder / f"d{shape.depth}w{shape.width}h{shape.heads}r{shape.ratio}.safetensors"
        )
        metadata = {
            "img": IMAGE,
            "patch": PATCH,
            "d": shape.width,
            "h": shape.heads,
            "L": shape.depth,
            "ratio": shape.ratio,
            "ncls": len(tensors["head.bias"]),
            "post": 0,
            "ae": 0,
            "up": 1,
            "task": "digits",
        }
        write(
            path,
            {
                name: OutTensor("F16", value.shape, partial(_same, value))
                for name, value in tensors.items()
            },
            {name: str(value) for name, value in metadata.items()},
        )
        return path

    def __call__(self, shape: Shape) -> Candidate:
        if shape not in self._known:
            result, accuracy = self._run(shape, self._pictures)
            self._known[shape] = Candidate(shape, 1 - accuracy, result.cycles, result.energy_joules)
        return self._known[shape]

    def error_of_others(self, shape: Shape) -> float:
        """Share of wrong answers to the pictures after those that chose."""
        result, accuracy = self._run(shape, None)
        images = int(result.json["images"])
        wrong = images * (1 - accuracy) - self._pictures * self(shape).error
        return round(wrong) / (images - self._pictures)

    def _run(self, shape: Shape, pictures: int | None) -> tuple[Result, float]:
        path = self.write(shape)
        integers = path.with_suffix(".int8.safetensors")
        machine = self._machine.arguments()
        self._program.call(["quantise", str(path), f"--out={integers}", *machine]).text()
        result = run(self._machine, integers, program=self._program, limit=pictures)
        if result.accuracy is None:
            raise InputError(f"{integers}: found no accuracy, expected labelled pictures")
        return result, result.accuracy


def _same(value: Array) -> Array:
    return value


def _axes(space: Space) -> dict[str, tuple[int, ...]]:
    return {
        "depth": space.depths,
        "width": space.widths,
        "heads": space.heads,
        "ratio": space.ratios,
    }


def _ask(trial: Any, space: Space) -> Shape:
    """By place in the list, so that the search knows neighbours."""
    chosen: dict[str, int] = {}
    for name, values in _axes(space).items():
        place: int = trial.suggest_int(name, 0, len(values) - 1)
        chosen[name] = values[place]
    return Shape(**chosen)


def search(
    evaluate: Callable[[Shape], Candidate],
    space: Space,
    trials: int,
    seed: int,
    population: int = 16,
    progress: Callable[[int], None] | None = None,
) -> Search:
    """NSGA-II, which begins with the largest network. One that is asked for again counts as a
    trial, too; `evaluate` knows it."""
    optuna = require("optuna", "sweep")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.NSGAIISampler(population_size=population, seed=seed)
    study = optuna.create_study(directions=["minimize"] * len(OBJECTIVES), sampler=sampler)
    study.enqueue_trial({name: len(values) - 1 for name, values in _axes(space).items()})
    found: dict[Shape, Candidate] = {}
    for number in range(trials):
        trial = study.ask()
        shape = _ask(trial, space)
        candidate = evaluate(shape)
        found[shape] = candidate
        study.tell(trial, list(candidate.objectives()))
        if progress is not None:
            progress(number + 1)
    return Search(list(found.values()))


def table_of(result: Search, largest: Candidate, others: Mapping[Shape, float]) -> str:
    """The front and, last, the largest network, each with its error on pictures that did not
    choose it, and how many times less energy times delay it takes than the largest."""
    lines = [
        f"{'network':28} {'error':>7} {'others':>7} {'cycles':>8} {'energy':>9} {'EDP gain':>9}"
    ]
    front = result.pareto()
    for one in front if largest in front else [*front, largest]:
        lines.append(
            f"{one.shape!s:28} {100 * one.error:6.1f}% {100 * others[one.shape]:6.1f}% "
            f"{one.cycles:8,.0f} {1e6 * one.energy_joules:6.1f} uJ {largest.edp / one.edp:8.2f}x"
        )
    return "\n".join(lines)
