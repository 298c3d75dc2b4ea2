"""A supernet and the search of its networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from systole.architecture import Candidate, Evaluator, Search, Shape, Space, search
from systole.architecture.search import table_of
from systole.architecture.supernet import (
    Network,
    Weights,
    checkpoint,
    part_of,
    random_weights,
    weights_of,
)
from systole.architecture.training import (
    Digits,
    accuracy,
    augmented,
    by_logits,
    load_digits,
    load_network,
    load_weights,
    patches_of,
    save_weights,
    shares,
    train,
)
from systole.errors import InputError
from systole.machine import Machine

ROOT = Path(__file__).resolve().parents[2]
SMALL = Space(depths=(1, 2), widths=(16, 24), heads=(1, 2), ratios=(1, 2))


def _whole() -> Weights:
    return load_network(ROOT / "traces" / "models" / "vit17.safetensors", Space().largest)


def _digits() -> tuple[Digits, Digits]:
    return load_digits(ROOT / "traces" / "data" / "digits.safetensors")


@pytest.mark.parametrize("shape", [Shape(2, 24, 2, 2), Shape(1, 16, 1, 1), Shape(2, 16, 2, 1)])
def test_gradients_are_those_of_finite_differences(shape: Shape) -> None:
    random = np.random.default_rng(3)
    start = random_weights(SMALL.largest, 4, 17, 1)
    weights = {
        name: (value + 0.1 * random.standard_normal(value.shape)).astype(np.float64)
        for name, value in start.items()
    }
    learn, _ = _digits()
    inputs = patches_of(learn.images[:6]).astype(np.float64)
    wanted = shares(random.standard_normal((6, 10)))

    def loss() -> float:
        network = Network(weights, shape)
        return by_logits(network.logits(inputs), wanted)[0]

    network = Network(weights, shape)
    _, gradient = by_logits(network.logits(inputs), wanted)
    gradients = network.backward(gradient)
    assert set(gradients) == set(part_of(weights, shape))
    for name, found in gradients.items():
        at = tuple(int(random.integers(size)) for size in found.shape)
        kept = weights[name][at]
        weights[name][at] = kept + 1e-5
        above = loss()
        weights[name][at] = kept - 1e-5
        below = loss()
        weights[name][at] = kept
        assert found[at] == pytest.approx((above - below) / 2e-5, rel=2e-3, abs=2e-6), name


def test_a_part_does_not_depend_on_what_is_outside_of_it() -> None:
    weights = random_weights(SMALL.largest, 4, 17, 1)
    shape = Shape(1, 16, 2, 1)
    inputs = patches_of(_digits()[0].images[:3])
    before = Network(weights, shape).logits(inputs)
    for name, value in weights.items():
        if name.startswith("1."):
            value += 1
        elif value.shape[-1] == SMALL.largest.width:
            value[..., 16:] += 1
    assert np.array_equal(Network(weights, shape).logits(inputs), before)


def test_augmented_pictures_stay_pictures() -> None:
    images = _digits()[0].images
    moved = augmented(images, np.random.default_rng(1))
    assert moved.shape == images.shape
    assert moved.min() >= 0 and moved.max() <= 16
    assert abs(moved.mean() - images.mean()) < 0.05 * images.mean()
    assert np.abs(moved - images).mean() > 0.5


def test_the_embedded_network_is_a_supernet() -> None:
    whole = _whole()
    _, check = _digits()
    assert accuracy(whole, Space().largest, check) == pytest.approx(0.983, abs=0.005)
    tensors = checkpoint(whole, Space().largest, 2, 8)
    again = weights_of(tensors)
    assert all(np.array_equal(again[name], value) for name, value in whole.items())
    with pytest.raises(InputError, match="found another shape, expected a pre-norm network of 4"):
        load_network(ROOT / "traces/models/vit17-post.safetensors", Space().largest)


def test_networks_learn_together(tmp_path: Path) -> None:
    learn, check = _digits()
    space = Space(depths=(2, 4), widths=(48, 64), heads=(2, 4), ratios=(2, 4))
    whole = _whole()
    before = accuracy(whole, space.smallest, check)
    losses: list[float] = []
    weights = train(learn.images, whole, space, 15, 1, lambda _, loss: losses.append(loss))
    assert len(losses) == 15
    assert np.mean(losses[-3:]) < 0.85 * np.mean(losses[:3])
    assert accuracy(weights, space.smallest, check) > max(before, 0.4), "a tenth is guessing"
    assert all(np.array_equal(whole[name], value) for name, value in _whole().items())
    save_weights(tmp_path / "w.safetensors", weights)
    again = load_weights(tmp_path / "w.safetensors", whole)
    assert all(np.array_equal(again[name], value) for name, value in weights.items())
    with pytest.raises(InputError, match="found other tensors, expected those of a supernet"):
        load_weights(tmp_path / "w.safetensors", random_weights(SMALL.largest, 4, 17, 1))


def _cost(shape: Shape) -> Candidate:
    """Wider and deeper is better and dearer; a head costs and brings nothing."""
    size = shape.depth * shape.width * (3 + 2 * shape.ratio)
    return Candidate(shape, 1 / size, 100.0 * size + shape.heads, 1e-6 * size)


def test_the_search_finds_the_front() -> None:
    space = Space()
    found = search(_cost, space, trials=400, seed=1)
    front = found.pareto()
    assert front == sorted(front, key=lambda one: one.cycles)
    for one in front:
        assert not any(other.dominates(one) for other in found.candidates)
    for one in found.candidates:
        assert one in front or any(other.dominates(one) for other in front)
    assert len(front) > 10
    assert sum(one.shape.heads == 1 for one in front) > len(front) / 2, "heads cost"
    assert search(_cost, space, trials=40, seed=2) == search(_cost, space, trials=40, seed=2)
    cheap = found.best(error=1.0)
    assert cheap is not None and cheap.edp == min(one.edp for one in found.candidates)
    assert found.best(error=0.0) is None
    largest = _cost(space.largest)
    shares_of = {one.shape: 0.5 for one in [*front, largest]}
    table = table_of(found, largest, shares_of)
    assert len(table.splitlines()) == 1 + len({one.shape for one in [*front, largest]})
    assert " 50.0%" in table.splitlines()[1]


def test_candidates_are_what_the_program_says(tmp_path: Path) -> None:
    weights = _whole()
    smallest, largest = Shape(2, 48, 2, 2), Space().largest
    evaluate = Evaluator(weights, Machine("transformer"), tmp_path, 40)
    small, large = evaluate(smallest), evaluate(largest)
    assert large.error <= 0.05, "it is the embedded network"
    assert 0 <= small.error <= 1
    assert small.error * 40 == pytest.approx(round(small.error * 40))
    assert small.cycles < large.cycles and small.energy_joules < large.energy_joules
    assert evaluate(smallest) is small, "each network runs once"
    wrong = round(320 * evaluate.error_of_others(smallest))
    reals = round(40 * (1 - accuracy(weights, smallest, Digits(*_first(40)))))
    assert 0 <= wrong <= 320
    assert abs(round(40 * small.error) - reals) <= 4, "integers answer nearly as real numbers do"


def _first(count: int) -> tuple[np.ndarray, np.ndarray]:
    _, check = _digits()
    return check.images[:count], check.labels[:count]


def test_an_empty_search_has_no_front() -> None:
    assert Search().pareto() == []
    assert Search().best(1.0) is None
