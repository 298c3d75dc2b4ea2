"""`python3 -m systole.architecture`: trains a supernet if there is none, and searches it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from systole.architecture.plot import write_plot
from systole.architecture.search import Evaluator, search, table_of
from systole.architecture.training import (
    Space,
    load_digits,
    load_network,
    load_weights,
    save_weights,
    train,
)
from systole.errors import InputError, SystoleError
from systole.exploration.plot import check_picture
from systole.machine import Machine
from systole_convert.errors import ConvertError


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m systole.architecture",
        description="Searches networks for the digits by accuracy, cycles and energy on a machine.",
    )
    parser.add_argument("-m", "--machine", default="transformer", help="a preset or a file")
    parser.add_argument(
        "--weights", required=True, type=Path, help="the supernet; made if it does not exist"
    )
    parser.add_argument("--steps", type=int, default=800, help="of its training")
    parser.add_argument("--trials", type=int, default=96, help="networks asked for")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, help="the front, .html or .png")
    arguments = parser.parse_args(words)
    for name in ("steps", "trials"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name}: found {getattr(arguments, name)}, expected at least 1")
    if arguments.plot is not None:
        check_picture(arguments.plot)
    return arguments


def _show(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def run(words: list[str]) -> int:
    arguments = _arguments(words)
    space = Space()
    machine = Machine(arguments.machine)
    learn, check = load_digits(machine.program.data() / "data" / "digits.safetensors")
    whole = load_network(machine.program.data() / "models" / "vit17.safetensors", space.largest)
    if not arguments.weights.exists():
        weights = train(
            learn.images,
            whole,
            space,
            arguments.steps,
            arguments.seed,
            lambda step, loss: _show(f"training: {step}/{arguments.steps} steps, loss {loss:.3f}"),
        )
        save_weights(arguments.weights, weights)
    weights = load_weights(arguments.weights, whole)
    chosen = len(check.labels) // 2
    with tempfile.TemporaryDirectory() as folder:
        evaluate = Evaluator(weights, machine, Path(folder), chosen)
        found = search(
            evaluate,
            space,
            arguments.trials,
            arguments.seed,
            progress=lambda done: _show(f"search: {done}/{arguments.trials} networks"),
        )
        largest = evaluate(space.largest)
        shapes = {largest.shape, *(one.shape for one in found.pareto())}
        kept_out = {shape: evaluate.error_of_others(shape) for shape in shapes}
    _show("")
    print(
        f"{len(found.candidates)} of {len(space)} networks on {arguments.machine}; errors of the "
        f"{chosen} pictures that chose and of {len(check.labels) - chosen} others"
    )
    print(table_of(found, largest, kept_out))
    if arguments.plot is not None:
        write_plot(found, str(arguments.machine), arguments.plot)
    return 0


def main() -> int:
    try:
        return run(sys.argv[1:])
    except (SystoleError, ConvertError) as error:
        print(f"systole: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
