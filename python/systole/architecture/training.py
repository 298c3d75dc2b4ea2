"""Trains all networks of a supernet together: they learn the answers of the network that all are
parts of, on pictures of its calibration, varied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from systole.architecture.supernet import Array, Network, Shape, Weights, weights_of
from systole.errors import InputError
from systole_convert.tensor_file import OutTensor, TensorFile, write

IMAGE, PATCH = 8, 2
INPUT_MAX = 127.0
"""Largest integer input of a model; the real value is integer / INPUT_MAX."""

_FORMAT = "systole-supernet"
_BETAS = (0.9, 0.98)
_DECAY = 1e-4
_WARMUP = 0.1


@dataclass(frozen=True)
class Space:
    """Values that a network may have."""

    depths: tuple[int, ...] = (1, 2, 3, 4)
    widths: tuple[int, ...] = (16, 24, 32, 48, 64)
    heads: tuple[int, ...] = (1, 2, 4)
    ratios: tuple[int, ...] = (1, 2, 4)

    @property
    def largest(self) -> Shape:
        return Shape(max(self.depths), max(self.widths), max(self.heads), max(self.ratios))

    @property
    def smallest(self) -> Shape:
        return Shape(min(self.depths), min(self.widths), min(self.heads), min(self.ratios))

    def draw(self, random: np.random.Generator) -> Shape:
        return Shape(
            int(random.choice(self.depths)),
            int(random.choice(self.widths)),
            int(random.choice(self.heads)),
            int(random.choice(self.ratios)),
        )

    def __len__(self) -> int:
        return len(self.depths) * len(self.widths) * len(self.heads) * len(self.ratios)


@dataclass(frozen=True)
class Digits:
    """Pictures [count, 8, 8] of 0 to 16, and their labels."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]


def patches_of(images: Array) -> Array:
    """Pictures of 0 to 16 as the model's inputs, [count, patches, PATCH x PATCH]."""
    values = np.minimum(np.asarray(images, np.float32) * 8, INPUT_MAX) / np.float32(INPUT_MAX)
    side = IMAGE // PATCH
    blocks = values.reshape(-1, side, PATCH, side, PATCH).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(blocks.reshape(len(values), side * side, PATCH * PATCH))


def augmented(images: npt.NDArray[np.uint8], random: np.random.Generator) -> Array:
    """Each picture turned, scaled, sheared and shifted at random, bilinearly; edges repeated."""
    count = len(images)

    def uniform(limit: float) -> Array:
        return random.uniform(-limit, limit, count).astype(np.float32)

    angle, shear = uniform(0.26), uniform(0.15)
    scale_x, scale_y = 1 + uniform(0.15), 1 + uniform(0.15)
    shift_x, shift_y = uniform(0.6), uniform(0.6)
    middle = np.float32((IMAGE - 1) / 2)
    grid = np.arange(IMAGE, dtype=np.float32) - middle
    row, column = grid[None, :, None], grid[None, None, :]
    cosine, sine = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    x = cosine * scale_x[:, None, None] * column + (shear[:, None, None] - sine) * row
    y = sine * column + cosine * scale_y[:, None, None] * row
    x = np.clip(x + shift_x[:, None, None] + middle, 0, IMAGE - 1)
    y = np.clip(y + shift_y[:, None, None] + middle, 0, IMAGE - 1)
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, bottom = np.minimum(left + 1, IMAGE - 1), np.minimum(top + 1, IMAGE - 1)
    part_x, part_y = x - left, y - top
    picture = np.arange(count)[:, None, None]
    upper = images[picture, top, left] * (1 - part_x) + images[picture, top, right] * part_x
    lower = images[picture, bottom, left] * (1 - part_x) + images[picture, bottom, right] * part_x
    result: Array = (upper * (1 - part_y) + lower * part_y).astype(np.float32)
    return result


class _Adam:
    def __init__(self, weights: Weights, rate: float) -> None:
        self._weights, self._rate, self._step = weights, rate, 0
        self._mean = {name: np.zeros_like(value) for name, value in weights.items()}
        self._square = {name: np.zeros_like(value) for name, value in weights.items()}

    def step(self, gradients: Weights, factor: float) -> None:
        self._step += 1
        first, second = _BETAS
        length = np.sqrt(sum(float((value * value).sum()) for value in gradients.values()))
        clip = 1 / max(1.0, float(length))
        unbias = np.sqrt(1 - second**self._step) / (1 - first**self._step)
        for name, weight in self._weights.items():
            gradient = gradients[name] * np.float32(clip)
            self._mean[name] += np.float32(1 - first) * (gradient - self._mean[name])
            self._square[name] += np.float32(1 - second) * (
                gradient * gradient - self._square[name]
            )
            change = self._mean[name] / (np.sqrt(self._square[name]) + np.float32(1e-8))
            weight *= np.float32(1 - self._rate * factor * _DECAY)
            weight -= np.float32(self._rate * factor * unbias) * change


def by_logits(logits: Array, wanted: Array) -> tuple[float, Array]:
    """Cross entropy with the shares of the classes that are wanted, [pictures, classes], the mean
    of all pictures, and its gradient."""
    found = shares(logits)
    count = np.float32(len(logits))
    loss = -float((wanted * np.log(found + np.float32(1e-30))).sum()) / len(logits)
    return loss, (found - wanted) / count


def shares(logits: Array) -> Array:
    """Softmax of each row."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def _add(total: Weights, part: Weights) -> None:
    """Gradients of a smaller network, to the first rows and columns of the largest one's."""
    for name, gradient in part.items():
        total[name][tuple(slice(size) for size in gradient.shape)] += gradient


def train(
    images: npt.NDArray[np.uint8],
    start: Weights,
    space: Space,
    steps: int,
    seed: int,
    progress: Callable[[int, float], None] | None = None,
) -> Weights:
    """Weights of the largest network, which begin with those of `start` and learn its answers.

    In each step the largest network, the smallest and two random ones see the same varied pictures
    ("sandwich"). `progress` gets the step and the loss of the smallest network.
    """
    random = np.random.default_rng(seed)
    weights = {name: value.copy() for name, value in start.items()}
    teacher = Network(start, space.largest)
    adam = _Adam(weights, 2e-3)
    batch = min(64, len(images))
    for step in range(steps):
        chosen = random.choice(len(images), batch, replace=False)
        inputs = patches_of(augmented(images[chosen], random))
        wanted = shares(teacher.logits(inputs))
        gradients = {name: np.zeros_like(value) for name, value in weights.items()}
        shapes = (space.draw(random), space.draw(random), space.largest, space.smallest)
        loss = 0.0
        for shape in shapes:
            network = Network(weights, shape)
            loss, gradient = by_logits(network.logits(inputs), wanted)
            _add(gradients, network.backward(gradient))
        warm = min(1.0, (step + 1) / (_WARMUP * steps))
        adam.step(gradients, warm * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * step / steps))))
        if progress is not None:
            progress(step + 1, loss)
    return weights


def accuracy(weights: Weights, shape: Shape, digits: Digits) -> float:
    """Share of the pictures that the network of real numbers classifies rightly."""
    logits = Network(weights, shape).logits(patches_of(digits.images))
    return float((logits.argmax(-1) == digits.labels).mean())


def save_weights(path: Path, weights: Weights) -> None:
    """Of the largest network, as a safetensors file."""
    tensors = {
        name: OutTensor("F32", value.shape, partial(_same, value))
        for name, value in weights.items()
    }
    write(path, tensors, {"format": _FORMAT})


def _same(value: Array) -> Array:
    return value


def load_weights(path: Path, like: Weights) -> Weights:
    """Raises InputError for a file that save_weights() did not write of such a network."""
    file = TensorFile(path)
    shapes = {name: entry.shape for name, entry in file.entries.items()}
    if shapes != {name: value.shape for name, value in like.items()}:
        raise InputError(f"{path}: found other tensors, expected those of a supernet")
    return {name: np.array(file.reals(name), np.float32) for name in like}


def load_network(path: Path, largest: Shape) -> Weights:
    """Of a checkpoint of real numbers. Raises InputError for one of another shape."""
    file = TensorFile(path)
    found = {key: file.metadata.get(key, "") for key in ("L", "d", "h", "ratio", "post", "ae")}
    wanted = {
        "L": largest.depth,
        "d": largest.width,
        "h": largest.heads,
        "ratio": largest.ratio,
        "post": 0,
        "ae": 0,
    }
    if found != {key: str(value) for key, value in wanted.items()}:
        raise InputError(f"{path}: found another shape, expected a pre-norm network of {largest}")
    return weights_of({name: file.reals(name) for name in file.entries})


def load_digits(path: Path) -> tuple[Digits, Digits]:
    """The labelled pictures for training, and those for tests, of data/digits.safetensors."""
    file = TensorFile(path)

    def part(name: str) -> Digits:
        return Digits(file.codes(f"{name}_images"), file.codes(f"{name}_labels"))

    return part("calib"), part("test")
