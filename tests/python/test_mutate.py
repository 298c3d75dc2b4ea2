"""The mutants of script/mutate: one build holds them all, each changes one thing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("clang.cindex", reason="libclang is not installed")
SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/mutation"))
import sites  # noqa: E402

# Every function prints a line; arguments are such that each of its mutants changes that line.
PROGRAM = """
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

constexpr int twice(int x) { return x * 2; }
static_assert(twice(4) == 8, "");
std::array<int, twice(3)> six;

template <typename T>
bool below(T a, T b) { return a < b; }

int relation(unsigned a, unsigned b) {
  return a  // the smaller
                 <
                 b ? 3 : 7;
}
int logic(bool a, std::optional<int> b) { return a && b ? 3 : 7; }
int sum(int a, int b) { return a + b; }
int bits(std::uint8_t a) { return a << 2; }
int least(long a) { return static_cast<int>(std::min<long>(a, 5)); }
int most(const std::vector<int>& all) {
  return std::max(all[0], *std::max_element(all.begin(), all.end() - 1));
}
bool truth(bool a) { return a; }
int branch(bool a) {
  if (truth(a)) return 3;
  return 7;
}
int statement() {
  int total = 3;
  total += 4;
  return total;
}
int choice(int a) {
  switch (a) {
    case 2: return 3;
    default: return 7;
  }
}

int main() {
  std::printf("relation %d\\n", relation(4, 4));
  std::printf("logic %d\\n", logic(true, {}));
  std::printf("sum %d\\nbits %d\\n", sum(3, 4), bits(7));
  std::printf("least %d\\nmost %d\\n", least(9), most({5, 4, 9, 1}));
  std::printf("branch %d\\nstatement %d\\n", branch(true), statement());
  std::printf("choice %d\\nbelow %d\\nsix %zu\\n", choice(2), below(2, 2), six.size());
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[sites.Site], Path]:
    folder = tmp_path_factory.mktemp("mutants")
    source = folder / "program.cpp"
    source.write_text(PROGRAM)
    found = sites.find_sites(source, ["-resource-dir", sites.resource_folder()])
    for number, site in enumerate(found, 1):
        site.number = number
    changed = folder / "mutated.cpp"
    changed.write_bytes(sites.mutated(source.read_bytes(), found))
    assert changed.read_bytes().count(b"\n") == source.read_bytes().count(b"\n")
    header = SOURCE / "tests/mutation/mutant.h"
    flags = ["-std=c++17", "-w", "-Wno-c++11-narrowing", "-include", str(header)]
    subprocess.run(["clang++", *flags, changed, "-o", folder / "program"], check=True)
    return found, folder / "program"


def output(program: Path, **variables: str) -> list[str]:
    run = subprocess.run([program], env={**os.environ, **variables}, capture_output=True, text=True)
    return run.stdout.splitlines()


def test_a_mutant_changes_the_function_that_it_is_in(built: tuple[list[sites.Site], Path]) -> None:
    found, program = built
    written = output(program)
    assert written == output(program, SYSTOLE_MUTANT="0")
    lines = {line.split()[0]: line for line in written}
    assert lines["relation"] == "relation 7" and lines["six"] == "six 6"
    unseen = []
    for site in found:
        if site.function in {"main", "truth"}:
            continue
        now = output(program, SYSTOLE_MUTANT=str(site.number))
        changed = [line.split()[0] for line, was in zip(now, written, strict=True) if line != was]
        if changed != [site.function]:
            unseen.append((site.function, site.kind, site.was, changed))
    # What the compiler computes, the branch that is not taken, an element that is not the largest.
    assert unseen == [
        ("twice", "arithmetic", "x * 2", []),
        ("twice", "literal", "2", []),
        ("relation", "literal", "3", []),
        ("logic", "literal", "3", []),
        ("most", "literal", "0", []),
        ("branch", "literal", "7", []),
        ("choice", "literal", "7", []),
    ]


def test_all_kinds_are_found(built: tuple[list[sites.Site], Path]) -> None:
    found, _ = built
    assert {site.kind for site in found} == {
        "relation",
        "logic",
        "arithmetic",
        "literal",
        "extreme",
        "condition",
        "statement",
    }


def test_a_recording_process_names_the_mutants_it_came_by(
    built: tuple[list[sites.Site], Path], tmp_path: Path
) -> None:
    found, program = built
    file = tmp_path / "reached"
    output(program, SYSTOLE_MUTANTS_REACHED=str(file))
    reached = {i for i, hit in enumerate(file.read_bytes()) if hit}
    by_function = {s.function for s in found if s.number in reached}
    assert "sum" in by_function and "twice" not in by_function
    assert reached <= {s.number for s in found}
