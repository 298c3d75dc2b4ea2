"""Tests of systole_convert. What needs a library that is not installed says NOT TESTED."""

from __future__ import annotations

import importlib.util
import os
import resource
import signal
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))
#: All of these tests need it; test_libraries.py says so where it is missing.
collect_ignore_glob = [] if importlib.util.find_spec("numpy") else ["test_[!l]*.py"]

_SECONDS = 20
#: Of the input, plus what Python's own objects take.
_TIMES, _PLUS = 10, 4 << 20


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {_SECONDS} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    yield
    signal.alarm(0)


def size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[Path], str]:
    """The line that refuses a source; no file is written, and memory stays in bounds."""

    from systole_convert.__main__ import read
    from systole_convert.errors import ConvertError

    def refuse(source: Path) -> str:
        out = tmp_path / "out.safetensors"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()
        try:
            with pytest.raises(ConvertError) as error:
                read(source, "hostile").write(out)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        text = str(error.value)
        assert "\n" not in text and len(text) < 500
        assert str(source) in text
        assert not out.exists()
        # An array that could not be had counts for the former, one never touched for neither.
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        assert min(peak, grown) <= _TIMES * size_of(source) + _PLUS
        return text

    return refuse


@pytest.fixture
def program() -> str:
    path = os.environ.get("SYSTOLE_PROGRAM", str(ROOT / "build/release/systole"))
    if not Path(path).is_file():
        pytest.skip("NOT TESTED: the program is not built (SYSTOLE_PROGRAM)")
    return path
