"""Trains a small vision transformer on the mirror task (mirror.py), writes an f16 checkpoint.

A token is a pixel. Pictures with more different pairs come first: with one pair alone training does
not find the task."""
import argparse
import math

import numpy as np
import torch

import digits
import mirror
import train_vit
from vit_model import VisionTransformer

WIDTH, HEADS, LAYERS = 32, 2, 2
PICTURES = 32768
LESSONS = (4, 2, 1)  # pairs that differ


def sinusoids(size, width):
    """Positions [size * size + 1, width]: sines and cosines of row and column; 0: class token."""
    waves = width // 4
    places = np.arange(size)
    angles = places[:, None] * (math.pi / size) * np.arange(1, waves + 1)[None] * 0.75
    axis = np.concatenate([np.sin(angles), np.cos(angles)], 1)  # [size, width / 2]
    table = np.zeros((size * size + 1, width), np.float32)
    for y in range(size):
        for x in range(size):
            table[1 + y * size + x] = np.concatenate([axis[y], axis[x]])
    return torch.from_numpy(table)


def tensors_of(pair):
    images, labels = pair
    integers = digits.preprocess(images, 1)
    inputs = torch.from_numpy(integers.astype(np.float32)).unsqueeze(1) / float(digits.INPUT_MAX)
    return inputs, torch.from_numpy(labels.astype(np.int64))


def unchanged(inputs, _generator):
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    train_vit.add_training_arguments(parser)
    arguments = parser.parse_args()
    train_vit.check_training_arguments(parser, arguments)
    generator = train_vit.start_random(arguments.seed)
    model = VisionTransformer(mirror.SIZE, 1, WIDTH, HEADS, LAYERS, classes=mirror.CLASSES)
    model.pos_embed.data[0] = 0.5 * sinusoids(mirror.SIZE, WIDTH)
    for block in model.blocks:
        block.dropout.p = 0.0
    test = tensors_of(mirror.make(*mirror.TEST))
    for pairs in LESSONS[:-1]:
        inputs, labels = tensors_of(mirror.make(PICTURES, mirror.TRAINING_SEED + pairs, pairs))
        train_vit.fit(model, inputs, labels, arguments.epochs, arguments.rate, generator,
                      vary=unchanged)
        print(f"{pairs} pairs: test {train_vit.accuracy(model, *test):.4f}", flush=True)
    inputs, labels = tensors_of(mirror.make(PICTURES, mirror.TRAINING_SEED))
    train_vit.train_and_write(arguments, model, (inputs, labels, *test), generator,
                              notes={"task": "mirror"}, vary=unchanged)


if __name__ == "__main__":
    train_vit.run(main)
