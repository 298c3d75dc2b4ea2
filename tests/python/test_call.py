"""Calls of the program: arguments, results, errors, the pool."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import systole
from systole import InputError, KilledError, Machine, Pool, Program, ProgramError
from systole.program import Outcome, option_arguments


def printed(program: Program, *arguments: str) -> dict[str, object]:
    """What the program itself prints, without this package."""
    command = [str(program.path), *arguments, "--json"]
    document: dict[str, object] = json.loads(subprocess.check_output(command))
    return document


def test_run_is_the_programs_document(program: Program) -> None:
    result = systole.run("transformer", "vit17", limit=1, functional=False)
    wanted = printed(
        program, "run", "-m", "transformer", "--model", "vit17", "-n", "1", "--functional", "off"
    )
    timeless = {"wall_seconds", "cycles_per_second", "provenance"}
    assert {k: v for k, v in result.json.items() if k not in timeless} == {
        k: v for k, v in wanted.items() if k not in timeless
    }
    assert result.cycles == wanted["cycles"]
    assert result.bytes == wanted["dram_read_bytes"] + wanted["dram_write_bytes"]  # type: ignore[operator]
    assert result.over_bound == pytest.approx(result.cycles / (result.bound or 0))
    assert result.energy_joules == pytest.approx(sum(result.energy.values()))
    assert result.json["functional"] is False
    for account in result.accounts.values():
        assert account.busy + sum(account.stalled.values()) + account.idle == account.total


def test_operators_explain_the_whole_run() -> None:
    pytest.importorskip("pandas")
    result = systole.run("transformer", "vit17", limit=1, functional=False)
    assert sum(operator["cycles"] for operator in result.operators) == result.cycles
    frame = result.to_frame()
    assert len(frame) == len(result.operators)
    causes = [name for name in frame.columns if "." in name]
    assert (frame[causes].sum(axis=1) == frame["cycles"]).all()


def test_matmul_map_analyse_explain() -> None:
    pytest.importorskip("pandas")
    assert systole.matmul("tiny", 16, 8, 24, bias=True).json["k"] == 24
    with pytest.raises(TypeError, match="matrix product"):
        _ = systole.matmul("tiny", 16, 8, 24).operators
    mapped = systole.map("transformer", "vit17")
    assert mapped.expected_cycles > 0
    assert mapped.to_frame()["name"].iloc[0] == "patch_embed"
    analysis = systole.analyse("vit17", "transformer")
    assert analysis.to_frame()["macs"].sum() == analysis.json["mapped_total"]["macs"]
    assert systole.analyse("bert-base", length=64).json["length"] == 64
    explained = systole.explain("transformer", "vit17", no_what_if=True)
    assert not explained.what_if and explained.cycles == explained.json["critical_path_cycles"]
    assert explained.bound_by in ("array", "memory", "postop", "latency", "host")


def test_a_machine_is_checked_by_the_program() -> None:
    machine = Machine("transformer", **{"array.rows": 32, "array.overlap": "none"})
    assert machine["array.rows"] == 32
    assert machine["array.overlap"] == "none"
    assert machine["array.cols"] == 16
    assert machine == Machine("transformer", {"array.overlap": "none"}).with_keys(
        {"array.rows": 32}
    )
    assert machine != Machine("transformer")
    assert "rows = 32" in machine.toml()
    assert (
        systole.run(machine, "vit17", limit=1, functional=False).cycles
        != systole.run("transformer", "vit17", limit=1, functional=False).cycles
    )
    for settings, line in [
        ({"array.rowz": 32}, "did you mean array.rows?"),
        ({"array.rows": 33}, 'found "33", expected a power of two'),
        ({"dram.t_ras_ns": 10.0}, "expected at least dram.t_rcd_ns"),
    ]:
        with pytest.raises(InputError, match=line.replace("?", r"\?")) as error:
            Machine("transformer", settings)
        assert "\n" not in str(error.value)
        assert not str(error.value).startswith("systole")


def test_keys_and_presets_are_the_programs() -> None:
    keys = {key.key: key for key in systole.machine_keys()}
    assert keys["array.rows"].default == 16 and keys["array.rows"].unit == "PEs"
    assert "transformer" in systole.presets()


def test_a_machine_file(tmp_path: Path) -> None:
    file = tmp_path / "wide.toml"
    file.write_text('base = "transformer"\nname = "wide"\n[array]\nrows = 32\n')
    assert Machine(file)["array.rows"] == 32
    assert systole.run(file, "vit17", limit=1, functional=False).machine == "wide"
    file.write_text("[array]\nrows = 33\n")
    with pytest.raises(InputError, match=r"wide\.toml:2:8: array\.rows: found 33"):
        Machine(file)


def test_options_become_a_command_line(program: Program) -> None:
    def line(**options: object) -> list[str]:
        return option_arguments(program, "run", options)  # type: ignore[arg-type]

    assert line(functional=False, check=True, min_accuracy=0.5) == [
        "--functional=off",
        "--check",
        "--min-accuracy=0.5",
    ]
    assert line(functional=True, check=False, limit=None) == ["--functional=on"]
    assert line(set=["a.b=1", "c.d=2"]) == ["--set=a.b=1", "--set=c.d=2"]
    with pytest.raises(InputError, match=r"found option 'lenght', expected one of .*length"):
        line(lenght=3)
    with pytest.raises(InputError, match="check: found 'yes', expected True or False"):
        line(check="yes")


def test_exit_codes_are_exceptions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        systole.run("nowhere", "vit17")
    with pytest.raises(systole.CheckError) as failed:
        systole.run(
            "transformer", "vit17", limit=5, input=str(_wrong_labels(tmp_path)), min_accuracy=1.0
        )
    assert "accuracy" in str(failed.value)
    assert failed.value.document is not None and failed.value.document["accuracy"] == 0
    with pytest.raises(ProgramError, match="no such thing"):
        Outcome(3, "", "systole: internal error: no such thing\n").document()
    with pytest.raises(ProgramError, match="SIGSEGV"):
        Outcome(-signal.SIGSEGV, "", "").document()
    with pytest.raises(KilledError, match="SIGKILL"):
        Outcome(-signal.SIGKILL, "", "").document()
    with pytest.raises(InputError, match="one\ntwo"):
        Outcome(2, "", "systole: one\nsystole: two\n").document()


def _wrong_labels(tmp_path: Path) -> Path:
    """Five black pictures that the network takes for something else than 9."""
    pictures, labels = bytes(5 * 64), bytes([9] * 5)
    header = json.dumps(
        {
            "test_images": {"dtype": "U8", "shape": [5, 8, 8], "data_offsets": [0, 320]},
            "test_labels": {"dtype": "U8", "shape": [5], "data_offsets": [320, 325]},
        }
    ).encode()
    file = tmp_path / "black.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + pictures + labels)
    return file


def test_a_program_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSTOLE_PROGRAM", str(tmp_path))
    with pytest.raises(InputError, match=r"SYSTOLE_PROGRAM: found .* expected an executable"):
        Program()
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    with pytest.raises(InputError, match="expected the program systole"):
        Program(text).call([])


def test_the_pool_returns_what_run_returns() -> None:
    wanted = systole.run("tiny", "vit17", limit=1, functional=False).cycles
    with Pool(2) as pool:
        futures = [pool.run("tiny", "vit17", limit=1, functional=False) for _ in range(4)]
        refused = pool.run("nowhere", "vit17")
        assert {future.result().cycles for future in futures} == {wanted}
        with pytest.raises(InputError, match="nowhere"):
            refused.result()
    with pytest.raises(InputError, match="workers: found 0"):
        Pool(0)


def test_a_killed_process_is_told_from_a_refusal() -> None:
    with Pool(1) as pool:
        future = pool.run("transformer", "gpt2-large", functional=False, length=1024)
        while not pool.processes():
            assert not future.done()
        os.kill(pool.processes()[0], signal.SIGKILL)
        with pytest.raises(KilledError, match="SIGKILL"):
            future.result(timeout=20)


def test_an_exception_ends_the_processes_of_a_pool() -> None:
    with pytest.raises(ZeroDivisionError), Pool(1) as pool:
        futures = [
            pool.run("transformer", "gpt2-large", functional=False, length=1024) for _ in range(2)
        ]
        while not pool.processes():
            assert not futures[0].done()
        raise ZeroDivisionError
    assert not pool.processes()
    assert isinstance(futures[0].exception(), KilledError)
    assert futures[1].cancelled()
