"""Weights of MX that tests compare with: what NumPy and ml_dtypes make today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ml_dtypes", reason="NOT TESTED: the library ml_dtypes is not installed")
ROOT = Path(__file__).parents[2]


def test_goldens_are_those_of_the_library(tmp_path: Path) -> None:
    made = tmp_path / "mx_weights.safetensors"
    script = ROOT / "script/train/make_mx_goldens.py"
    subprocess.run([sys.executable, str(script), str(made)], check=True)
    assert made.read_bytes() == (ROOT / "tests/golden/mx_weights.safetensors").read_bytes()
