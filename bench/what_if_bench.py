"""How far what `systole explain` predicts of a changed machine is from its simulation.

usage: script/python bench/what_if_bench.py [MACHINES] [SEED]    (default: 9 1; half an hour)

Every preset with every network below, then random machines: each key of explain's table is doubled
or halved, predicted, and simulated. Prints every change that is missed by more than 5 % in time, then
by key the number of changes, the mean and the worst miss, and the worst of all. Changes of short
programs, which explain simulates as a whole, are counted alone: there is nothing to predict.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from systole import InputError, Program

GOAL = 0.05
NETWORKS: list[list[str]] = [
    ["--model", "bert-base", "--layers", "4", "--length", "64"],
    ["--model", "gpt2", "--layers", "4", "--decode", "--past", "100"],
    ["--model", "deit-tiny"],
]
PRESETS = ["transformer", "gemmini", "gemmini-bare", "survey", "vitcod"]
AXES: dict[str, list[Any]] = {
    "array.rows": [8, 16, 32],
    "array.cols": [8, 16, 32],
    "scratchpad.kib": [64, 128, 256],
    "scratchpad.banks": [2, 4, 8],
    "accumulator.kib": [64, 128, 256],
    "postop.lanes": [8, 16, 32],
    "core.clock_mhz": [250, 500, 1000, 1500],
    "core.load_queue": [4, 8],
    "core.store_queue": [2, 4, 8],
    "dma.outstanding_reads": [2, 4, 8, 16],
    "dma.outstanding_writes": [2, 4, 8, 16],
    "bus.width_bytes": [8, 16, 32],
    "bus.clock_mhz": [250, 500, 1000],
    "bus.request_latency": [1, 4, 8],
    "dram.channels": [1, 2],
    "dram.mega_transfers": [800, 1600, 3200],
    "dram.controller_ns": [10, 20, 40],
}

Miss = tuple[float, str, str]


def cases(machines: int, seed: int) -> list[list[str]]:
    draw = random.Random(seed)
    fixed = [["-m", preset, *network] for preset in PRESETS for network in NETWORKS]
    drawn = []
    for i in range(machines):
        keys = [f"{key}={draw.choice(values)}" for key, values in AXES.items()]
        sets = [word for key in keys for word in ("--set", key)]
        drawn.append(["-m", "transformer", *NETWORKS[i % len(NETWORKS)], *sets])
    return fixed + drawn


def misses(program: Program, case: list[str]) -> list[Miss]:
    """Relative difference of predicted from simulated time, key with factor, and the case."""
    try:
        found = program.json(["explain", *case, "--confirm", "99"])
    except InputError as error:
        print(f"left out: {' '.join(case)}: {error}")
        return []
    result = []
    for each in found["what_if"]:
        if each["simulated"] is None:
            continue
        predicted = each["kept" if each["program"] == "kept" else "predicted"]
        text = f"{' '.join(case)}: of {found['cycles']} {predicted:.0f} for {each['simulated']:.0f}"
        result.append(
            (predicted / each["simulated"] - 1, f"{each['key']} x {each['factor']}", text)
        )
    return result


def main() -> None:
    machines = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    program = Program()
    by_key: dict[str, list[float]] = defaultdict(list)
    whole, worst_of_all = 0, (0.0, "", "")
    with ThreadPoolExecutor(1) as pool:
        for found in pool.map(lambda case: misses(program, case), cases(machines, seed)):
            for miss, key, text in found:
                if miss == 0:
                    whole += 1
                    continue
                by_key[key].append(miss)
                worst_of_all = max(worst_of_all, (miss, key, text), key=lambda each: abs(each[0]))
                if abs(miss) > GOAL:
                    print(f"{miss:+7.1%} {key:28} {text}", flush=True)
    every = [abs(miss) for each in by_key.values() for miss in each]
    print(f"{'key':28} changes   mean  worst  missed")
    for key, each in sorted(by_key.items()):
        worst = max(each, key=abs)
        over = sum(abs(miss) > GOAL for miss in each)
        mean = sum(map(abs, each)) / len(each)
        print(f"{key:28} {len(each):7} {mean:6.2%} {worst:+6.1%} {over:7}")
    over = sum(miss > GOAL for miss in every)
    print(f"simulated as a whole: {whole}")
    print(f"{'all':28} {len(every):7} {sum(every) / len(every):6.2%} {max(every):6.1%} {over:7}")
    print(f"worst: {worst_of_all[0]:+.1%} {worst_of_all[1]} {worst_of_all[2]}")


if __name__ == "__main__":
    main()
