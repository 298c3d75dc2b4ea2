"""Space files: which points they mean, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from systole import InputError, Program, Space
from systole.exploration import load_space
from systole.exploration.command import main

HEAD = 'machine = "transformer"\nmodel = "vit17"\n'
AXIS = '[axes]\n"array.rows" = [8, 16]\n'

BAD = {
    "no file": (None, "No such file", ""),
    "no TOML": ("machine = ", "no TOML", ""),
    "no UTF-8": ("\udcff", "no TOML", ""),
    "unknown key": (HEAD + "axis = 3\n", "axis: unknown key, did you mean axes?", ""),
    "no machine": (AXIS, "machine: found None", "expected the name"),
    "machine of none": (
        'machine = "big"\nmodel = "vit17"\n' + AXIS,
        'machine: found "big"',
        "expected",
    ),
    "no model": ('machine = "transformer"\n' + AXIS, "model: found None", "expected the name"),
    "model twice": (
        HEAD + '[axes]\nmodel = ["vit17"]',
        "model: found 'vit17'",
        "beside axes.model",
    ),
    "no axes": (HEAD, "axes: found {}", "at least one axis"),
    "axes no table": (HEAD + "axes = 3", "axes: found 3", "a table"),
    "unknown axis": (
        HEAD + '[axes]\n"array.row" = [8]',
        "axes.array.row: unknown key",
        "array.rows?",
    ),
    "empty axis": (HEAD + '[axes]\n"array.rows" = []', "axes.array.rows: found []", "not empty"),
    "axis of tables": (
        HEAD + '[axes]\n"array.rows" = [[8]]',
        "axes.array.rows: found [[8]]",
        "list",
    ),
    "axis no list": (
        HEAD + '[axes]\n"array.rows" = 8',
        "axes.array.rows: found 8",
        "from, to, step",
    ),
    "value twice": (HEAD + '[axes]\n"array.rows" = [8, 16, 8]', "axes.array.rows: found 8", "once"),
    "no step": (HEAD + '[axes]\n"array.rows" = { from = 1, to = 2 }', "axes.array.rows", "step"),
    "step zero": (
        HEAD + '[axes]\n"array.rows" = { from = 1, to = 2, step = 0 }',
        "axes.array.rows.step: found 0",
        "more than 0",
    ),
    "times one": (
        HEAD + '[axes]\n"array.rows" = { from = 1, to = 2, times = 1 }',
        "axes.array.rows.times: found 1",
        "more than 1",
    ),
    "times from zero": (
        HEAD + '[axes]\n"array.rows" = { from = 0, to = 2, times = 2 }',
        "axes.array.rows.times",
        "from more than 0",
    ),
    "from nan": (
        HEAD + '[axes]\n"array.rows" = { from = nan, to = 2, step = 1 }',
        "axes.array.rows.from: found nan",
        "a number",
    ),
    "range backwards": (
        HEAD + '[axes]\n"array.rows" = { from = 3, to = 2, step = 1 }',
        "axes.array.rows.to: found 2",
        "at least",
    ),
    "endless range": (
        HEAD + '[axes]\n"array.rows" = { from = 1, to = 2, step = 1e-9 }',
        "axes.array.rows: found",
        "at most 100000 values",
    ),
    "unknown option": (
        HEAD + AXIS + "[options]\nlenght = 3",
        "options.lenght",
        "did you mean length?",
    ),
    "option of a list": (
        HEAD + AXIS + "[options]\nlength = [3]",
        "options.length: found [3]",
        "number",
    ),
    "file option": (
        HEAD + AXIS + '[options]\nstats = "a"',
        "options.stats: unknown key",
        "did you mean strategy?",
    ),
    "derived unknown": (
        HEAD + AXIS + '[derived]\n"array.col" = "1"',
        "derived.array.col",
        "array.cols?",
    ),
    "derived axis": (
        HEAD + AXIS + '[derived]\n"array.rows" = "1"',
        "derived.array.rows",
        "no axis",
    ),
    "derived bad": (
        HEAD + AXIS + '[derived]\n"array.cols" = "array.rows +"',
        "derived.array.cols: found",
        "an expression",
    ),
    "constraint no list": ('constraints = "1"\n' + HEAD + AXIS, "constraints: found '1'", "a list"),
    "constraint no text": (
        "constraints = [1]\n" + HEAD + AXIS,
        "constraints[0]: found 1",
        "quotes",
    ),
    "constraint code": (
        "constraints = [\"open('x') == 1\"]\n" + HEAD + AXIS,
        "constraints[0]: found \"open('x')\"",
        "expected numbers",
    ),
    "constraint name": (
        'constraints = ["rows < 3"]\n' + HEAD + AXIS,
        "constraints[0]: rows: unknown name",
        "expected an axis",
    ),
    "constant word": (HEAD + AXIS + '[constants]\na = "b"', "constants.a: found 'b'", "a number"),
    "search key": (HEAD + AXIS + "[search]\nmethods = 1", "search.methods", "did you mean method?"),
    "method": (HEAD + AXIS + '[search]\nmethod = "magic"', "search.method: found 'magic'", "grid"),
    "points": (HEAD + AXIS + "[search]\npoints = -1", "search.points: found -1", "from 0"),
    "points missing": (
        HEAD + AXIS + '[search]\nmethod = "tpe"',
        "search.points: found 0",
        "from 1",
    ),
    "points true": (HEAD + AXIS + "[search]\npoints = true", "search.points: found True", "whole"),
    "seed": (HEAD + AXIS + "[search]\nseed = 1.5", "search.seed: found 1.5", "whole number"),
    "objectives": (
        HEAD + AXIS + "[search]\nobjectives = []",
        "search.objectives: found []",
        "list",
    ),
    "objective": (
        HEAD + AXIS + '[search]\nobjectives = ["1 +"]',
        "search.objectives[0]",
        "expression",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line_and_exit_code_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, found, expected = BAD[name]
    file = tmp_path / "space.toml"
    if text is not None:
        file.write_bytes(text.encode(errors="surrogateescape"))
    assert main(f'{{"space": "{file}"}}') == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"systole: {file}: ") and err.count("\n") == 1, err
    assert found in err and expected in err
    assert not (tmp_path / "space.sqlite").exists()


def test_an_objective_that_no_result_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "space.toml"
    file.write_text(HEAD + '[axes]\n"array.rows" = [8]\n[search]\nobjectives = ["cycle"]')
    assert main(f'{{"space": "{file}"}}') == 2
    assert "search.objectives[0]: cycle: cycle: unknown name" in capsys.readouterr().err


def space_of(program: Program, **more: Any) -> Space:
    return Space({"machine": "transformer", "model": "vit17"} | more, program=program)


def test_ranges(program: Program) -> None:
    axes = {
        "scratchpad.kib": {"from": 64, "to": 200, "step": 32},
        "array.rows": {"from": 4, "to": 70, "times": 2},
        "length": [16, 32],
        "mapper": {"fusion": ["all", "none"]},
    }
    space = space_of(program, axes=axes)
    assert space.axes == {
        "scratchpad.kib": (64, 96, 128, 160, 192),
        "array.rows": (4, 8, 16, 32, 64),
        "length": (16, 32),
        "mapper.fusion": ("all", "none"),
    }
    assert space.size == len(list(space.grid())) == 100


def test_constraints_and_derived_keys(program: Program) -> None:
    space = space_of(
        program,
        axes={"array.rows": [8, 16], "scratchpad.kib": [64, 128, 256]},
        derived={"array.cols": "256 / array.rows", "accumulator.kib": "320 - scratchpad.kib"},
        constants={"most": 9000},
        constraints=["array.cols * scratchpad.kib < most", "accumulator.kib >= 192"],
    )
    points = list(space.grid())
    assert [point.axes for point in points] == [
        {"array.rows": 8, "scratchpad.kib": 64},
        {"array.rows": 8, "scratchpad.kib": 128},
        {"array.rows": 16, "scratchpad.kib": 64},
        {"array.rows": 16, "scratchpad.kib": 128},
    ]
    assert points[0].settings["array.cols"] == 32
    assert isinstance(points[0].settings["array.cols"], int)
    assert points[1].settings["accumulator.kib"] == 192
    assert points[0].options == {"functional": False, "limit": 1}


def test_a_derived_key_sees_those_before_it(program: Program) -> None:
    space = space_of(
        program,
        axes={"array.rows": [8]},
        derived={"array.cols": "array.rows * 2", "postop.lanes": "array.cols"},
    )
    assert next(space.grid()).settings["postop.lanes"] == 16


def test_a_file_and_a_mapping_are_one_space(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text(HEAD + "[axes]\narray.rows = [8, 16]\n[options]\nfunctional = true\n")
    space = load_space(file, program=program)
    assert space.axes == {"array.rows": (8, 16)}
    assert next(space.grid()).options["functional"] is True


def test_division_by_zero_in_a_constraint_names_it(program: Program) -> None:
    space = space_of(program, axes={"array.rows": [8]}, constraints=["1 / (array.rows - 8) > 1"])
    with pytest.raises(InputError, match=r"space: constraints\[0\]: .*divides by zero"):
        list(space.grid())


def test_area_is_what_the_program_says_of_each_machine(program: Program) -> None:
    space = Space(
        {
            "machine": "transformer",
            "model": "vit17",
            "axes": {"array.rows": [8, 16, 33, 64], "scratchpad.kib": [64, 512]},
            "derived": {"array.cols": "array.rows", "postop.lanes": "16"},
            "constraints": ["area_mm2 <= 6", "area_mm2.array < 2 * area_mm2.scratchpad"],
        }
    )
    kept = {(p.settings["array.rows"], p.settings["scratchpad.kib"]) for p in space.grid()}
    expected = {(33, 64), (33, 512)}  # which the program refuses when it runs
    for rows in (8, 16, 64):
        for kib in (64, 512):
            keys = {"array.rows": rows, "array.cols": rows, "scratchpad.kib": kib}
            settings = [f"--set={key}={value}" for key, value in keys.items()]
            costs = program.json(["machine", "transformer", *settings, "--costs"])
            area = costs["area"]
            if costs["area_mm2"] <= 6 and area["array"] < 2 * area["scratchpad"]:
                expected.add((rows, kib))
    assert kept == expected
    assert 2 < len(kept) < 8
