"""The mirror task: pictures that equal themselves turned by half a circle, but for one pixel pair.

A picture has 8 x 8 pixels, each 0 or 16. Pixel (y, x) equals pixel (7 - y, 7 - x) for 31 of the 32
pairs; the label is the place of the other pair: 2 y + (x >= 4) of its pixel in the upper half, 0 to
7. No single row, column or neighbourhood tells it: each pixel has to be compared with the one at
the other end of the picture. Written by this script: 360 test and 256 calibration pictures, or with
--training as many training pictures as wanted.
"""
import argparse

import numpy as np

import safetensors_io

SIZE = 8
CLASSES = 8
TEST, CALIBRATION = (360, 2), (256, 3)  # count and seed
TRAINING_SEED = 1


def make(count, seed, pairs=1):
    """Images u8 [count, 8, 8] and labels u8 [count]; `pairs` differ, all in the label's place."""
    random = np.random.default_rng(seed)
    upper = random.integers(0, 2, (count, SIZE // 2, SIZE))
    images = np.concatenate([upper, upper[:, ::-1, ::-1]], 1)
    labels = random.integers(0, CLASSES, count)
    for picture, label in enumerate(labels):
        row, half = divmod(int(label), 2)
        columns = random.permutation(SIZE // 2)[:pairs] + half * (SIZE // 2)
        for column in columns:
            # Which of the two is changed says nothing.
            turned = random.integers(0, 2) == 1
            y, x = (SIZE - 1 - row, SIZE - 1 - column) if turned else (row, column)
            images[picture, y, x] ^= 1
    return (images * 16).astype(np.uint8), labels.astype(np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", help="safetensors file to write")
    parser.add_argument("--training", type=int, metavar="N", help="training pictures instead")
    arguments = parser.parse_args()
    if arguments.training is not None:
        images, labels = make(arguments.training, TRAINING_SEED)
        tensors = {"train_images": images, "train_labels": labels}
    else:
        tensors = {}
        for split, (count, seed) in {"test": TEST, "calib": CALIBRATION}.items():
            tensors[f"{split}_images"], tensors[f"{split}_labels"] = make(count, seed)
    safetensors_io.save(arguments.output, tensors, {"source": "script/train/mirror.py"})


if __name__ == "__main__":
    main()
