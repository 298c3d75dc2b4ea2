"""Types, style and notebooks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import systole
from conftest import SOURCE
from systole import Program

NOTEBOOKS = sorted((SOURCE / "docs/notebooks").glob("*.ipynb"))


def output_of(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=SOURCE, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    assert output_of("mypy", f"--cache-dir={tmp_path}") == ""


def test_style() -> None:
    pytest.importorskip("ruff")
    assert output_of("ruff", "check", "-q", "--no-cache", "python", "tests/python") == ""
    assert (
        output_of("ruff", "format", "--check", "-q", "--no-cache", "python", "tests/python") == ""
    )


def test_the_version_is_the_programs(program: Program) -> None:
    with (SOURCE / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["tool"]["scikit-build"]["metadata"]["version"]
    found = re.search(version["regex"], (SOURCE / version["input"]).read_text())
    assert found is not None and found["value"] == program.version


def test_the_core_needs_no_other_library(tmp_path: Path) -> None:
    """A sweep over a grid included: -S leaves site-packages out."""
    code = (
        "import systole; s = systole.sweep({'machine': 'tiny', 'model': 'vit17', 'axes': "
        "{'array.rows': [4]}}, store='a.sqlite'); print(len(s.csv().splitlines()))"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE / "python")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("2\n", "")
    code = "import systole; systole.map('tiny', 'vit17').to_frame()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == (
        "systole.errors.InputError: pandas: not installed, expected: pip install '.[frame]' in "
        "Systole's checkout"
    )


def test_what_is_exported_is_documented() -> None:
    page = (SOURCE / "docs/python.md").read_text() + (SOURCE / "docs/sweep.md").read_text()
    for name in systole.__all__:
        assert re.search(rf"\b{name}\b", page), name


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(SOURCE / "python"))
    shutil.copy(notebook, tmp_path)
    document = nbformat.read(notebook, as_version=4)
    assert all(not cell.get("outputs") for cell in document.cells), "expected no stored outputs"
    client.NotebookClient(
        document, timeout=60, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert any(cell.get("outputs") for cell in document.cells)


def test_there_are_four_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "design_space",
        "first_run",
        "llm_decode",
        "own_rtl",
    ]
