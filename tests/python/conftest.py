"""The program of this checkout, and spaces that are quick to sweep."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from systole import Program

SOURCE = Path(__file__).resolve().parents[2]
os.environ.setdefault("SYSTOLE_PROGRAM", str(SOURCE / "build/release/systole"))


@pytest.fixture(scope="session")
def program() -> Program:
    return Program()


@pytest.fixture
def quick() -> dict[str, Any]:
    """A space of 200 points, 40 of which the program refuses; each takes some 15 ms."""
    return {
        "machine": "gemmini",
        "model": "vit17",
        "options": {"strategy": "gemmini"},
        "axes": {
            "bus.width_bytes": [8, 16, 24, 32, 64],
            "dma.outstanding_reads": {"from": 1, "to": 128, "times": 2},
            "bus.request_latency": [0, 4, 8, 16, 32],
        },
    }


def toml_of(space: dict[str, Any]) -> str:
    """Enough of TOML for the spaces of these tests."""

    def value(given: Any) -> str:
        if isinstance(given, dict):
            return "{ " + ", ".join(f"{k} = {value(v)}" for k, v in given.items()) + " }"
        if isinstance(given, list):
            return "[" + ", ".join(value(v) for v in given) + "]"
        if isinstance(given, bool):
            return str(given).lower()
        return f'"{given}"' if isinstance(given, str) else str(given)

    tables = {k: v for k, v in space.items() if isinstance(v, dict)}
    text = "".join(f"{k} = {value(v)}\n" for k, v in space.items() if k not in tables)
    for name, table in tables.items():
        text += f"[{name}]\n" + "".join(f'"{k}" = {value(v)}\n' for k, v in table.items())
    return text


def children_of(pid: int) -> list[int]:
    """Of a process, none of one that has ended."""
    with contextlib.suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def write_script(path: Path, lines: str, program: Program) -> None:
    """A program that is a script: `lines` before it becomes `program`, of a pool's calls too."""
    worker = f"{sys.executable} {Path(__file__).with_name('each_process.py')}"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = worker ] && exec {worker}\n{lines}exec {program.path} "$@"\n'
    )
    path.chmod(0o755)
