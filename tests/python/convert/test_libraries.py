"""What the tests of the converters need."""

from __future__ import annotations

import pytest


def test_numpy_is_installed() -> None:
    pytest.importorskip("numpy", reason="NOT TESTED: the converters, for want of numpy")
