"""Systole from Python: run models on machines, compare designs. See docs/python.md."""

from systole.commands import analyse, explain, map, matmul, run
from systole.errors import CheckError, InputError, KilledError, ProgramError, SystoleError
from systole.exploration import Space, Store, Sweep, sweep
from systole.machine import Key, Machine, machine_keys, presets
from systole.pool import Pool
from systole.program import Outcome, Program
from systole.result import Account, Analysis, Explanation, Mapped, Result

__all__ = [
    "Account",
    "Analysis",
    "CheckError",
    "Explanation",
    "InputError",
    "Key",
    "KilledError",
    "Machine",
    "Mapped",
    "Outcome",
    "Pool",
    "Program",
    "ProgramError",
    "Result",
    "Space",
    "Store",
    "Sweep",
    "SystoleError",
    "analyse",
    "explain",
    "machine_keys",
    "map",
    "matmul",
    "presets",
    "run",
    "sweep",
]
