"""The subcommands as functions, each a process of the program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from systole.machine import Machine
from systole.program import Option, Program, option_arguments
from systole.result import Analysis, Explanation, Mapped, Reporter, Result

MachineLike = Machine | str | Path


def program_of(machine: MachineLike | None, program: Program | None) -> Program:
    if program is not None:
        return program
    return machine.program if isinstance(machine, Machine) else Program()


def arguments_of(
    program: Program,
    command: str,
    machine: MachineLike | None,
    model: str | Path | None,
    options: Mapping[str, Option],
) -> list[str]:
    """The command line of a subcommand, without `--json`."""
    arguments = [command]
    if isinstance(machine, Machine):
        arguments += machine.arguments()
    elif machine is not None:
        arguments.append(f"--machine={machine}")
    if model is not None:
        arguments.append(f"--model={model}")
    return arguments + option_arguments(program, command, options)


def reporter_of(program: Program, arguments: list[str]) -> Reporter:
    """Runs a command line again for its page."""

    def write(path: Path) -> None:
        program.call([*arguments, f"--report={path}"]).text()

    return write


def result_of(
    document: Mapping[str, Any],
    program: Program,
    machine: MachineLike,
    model: str | Path,
    options: Mapping[str, Option],
) -> Result:
    """A run's result, which explains itself when it is asked for operators."""
    known = program.options("explain")
    shared = {key: value for key, value in options.items() if key.replace("_", "-") in known}
    if shared.get("decode"):
        shared.pop("length", None)  # of the tokens to come; the first one is explained

    def explained() -> Explanation:
        return explain(machine, model, program=program, no_what_if=True, **shared)

    arguments = arguments_of(program, "run", machine, model, options)
    return Result(document, explained, reporter_of(program, arguments))


def run(
    machine: MachineLike, model: str | Path, *, program: Program | None = None, **options: Option
) -> Result:
    """Runs a model on a machine; options as of `systole run --help`, with `_` for `-`.

    >>> run("transformer", "bert-base", length=64, functional=False).cycles

    Raises InputError, CheckError (`check=True` and bytes differ), ProgramError or KilledError.
    """
    used = program_of(machine, program)
    document = used.json(arguments_of(used, "run", machine, model, options))
    return result_of(document, used, machine, model, options)


def matmul(
    machine: MachineLike,
    m: int,
    n: int,
    k: int,
    *,
    program: Program | None = None,
    **options: Option,
) -> Result:
    """Runs C[m x n] = A[m x k] B[k x n] and checks it; options as of `systole matmul --help`."""
    used = program_of(machine, program)
    arguments = [*arguments_of(used, "matmul", machine, None, options), f"{m}x{n}x{k}"]
    return Result(used.json(arguments), None, reporter_of(used, arguments))


def map(
    machine: MachineLike, model: str | Path, *, program: Program | None = None, **options: Option
) -> Mapped:
    """What the mapper makes of a model; options as of `systole map --help`."""
    used = program_of(machine, program)
    return Mapped(used.json(arguments_of(used, "map", machine, model, options)))


def analyse(
    model: str | Path,
    machine: MachineLike | None = None,
    *,
    program: Program | None = None,
    **options: Option,
) -> Analysis:
    """Operations, traffic, expected cycles; options as of `systole analyse --help`."""
    used = program_of(machine, program)
    return Analysis(used.json(arguments_of(used, "analyse", machine, model, options)))


def explain(
    machine: MachineLike, model: str | Path, *, program: Program | None = None, **options: Option
) -> Explanation:
    """Why a run takes its cycles, what would help; options as of `systole explain --help`."""
    used = program_of(machine, program)
    arguments = arguments_of(used, "explain", machine, model, options)
    return Explanation(used.json(arguments), reporter_of(used, arguments))
