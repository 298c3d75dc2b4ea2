"""What `systole run --action-counts` writes, by the rules of Accelergy v0.3."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from systole import Program

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

# Actions of the primitive classes that docs/energy.md names, in Accelergy's
# share/primitive_component_libs/primitive_component.lib.yaml, version 0.3; `host` is a class of the
# user's.
ACTIONS = {
    "mac": {"mac_random", "mac_reused", "mac_gated", "idle"},  # intmac
    "postop": {"mult_random", "mult_reused", "mult_gated", "idle"},  # intmultiplier
    "scratchpad": {"read", "write", "idle"},  # SRAM
    "accumulator": {"read", "write", "idle"},
    "l2": {"read", "write", "idle"},
    "bus": {"transfer_random", "transfer_repeated", "idle"},  # wire
    "noc": {"transfer_random", "transfer_repeated", "idle"},  # wire
    "dram": {"read", "write", "idle"},  # DRAM
    "host": {"cycle"},
}


def check(text: str) -> dict[str, dict[str, int]]:
    """As Accelergy reads it: raw_inputs_2_dicts.py looks for the top key and its version, and takes
    `local` or `subtree`; action_counts_dict_2_obj.py takes `name` and `counts` of each action."""
    document = yaml.safe_load(text)
    assert list(document) == ["action_counts"]
    top = document["action_counts"]
    assert top["version"] in (0.2, 0.3)
    assert set(top) == {"version", "local"}
    counts: dict[str, dict[str, int]] = {}
    for component in top["local"]:
        assert set(component) == {"name", "action_counts"}
        assert re.fullmatch(r"system(\.\w+){1,2}", component["name"])
        assert component["name"] not in counts
        actions = counts.setdefault(component["name"], {})
        for action in component["action_counts"]:
            assert set(action) == {"name", "counts"}
            assert type(action["counts"]) is int and action["counts"] >= 0
            assert action["name"] in ACTIONS[component["name"].split(".")[-1]]
            actions[action["name"]] = action["counts"]
    return counts


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "transformer", "--model", "vit17"],
        ["-m", "gemmini", "--model", "vit17"],  # with an L2 cache and a host that computes
        ["-m", "transformer", "--model", "vit17", "--cores", "2"],
    ],
    ids=["one core", "with an L2 cache", "two cores"],
)
def test_action_counts_are_of_accelergy(arguments: list[str], tmp_path: Path) -> None:
    path = tmp_path / "counts.yaml"
    run = ["run", *arguments, "-n", "1", "--functional", "off", "--action-counts", str(path)]
    Program().call(run)
    counts = check(path.read_text())
    cores = {name.split(".")[1] for name in counts if name.count(".") == 2}
    assert len(cores) == (2 if "--cores" in arguments else 0)
    assert ("system.l2" in counts) == ("gemmini" in arguments)
    macs = sum(actions.get("mac_random", 0) for actions in counts.values())
    assert macs == Program().json([*run[:-2], "--json"])["macs"]


def test_other_documents_are_not_of_accelergy(tmp_path: Path) -> None:
    path = tmp_path / "counts.yaml"
    run = ["run", "-m", "transformer", "--model", "vit17", "-n", "1", "--functional", "off"]
    Program().call([*run, "--action-counts", str(path)])
    text = path.read_text()
    for good, bad in [
        ("version: 0.3", "version: 0.4"),
        ("name: mac_random", "name: multiply"),
        ("counts: ", "count: "),
        ("system.bus", "system.mac"),
    ]:
        with pytest.raises((AssertionError, KeyError)):
            check(text.replace(good, bad))
