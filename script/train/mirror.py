"""The mirror task: pictures equal to themselves turned by half a circle, but for one pair of
patches.

A picture has 8 x 8 pixels, each 0 or 16, in 16 patches of 2 x 2. A pixel (y, x) of a patch in the
upper half equals pixel (7 - y, 7 - x), except in one of the eight pairs of patches, in which one
pixel differs; the label is that pair, 0 to 7. No patch and no neighbourhood tells it: each has to
be compared with the one at the other end of the picture. Written by this script: 360 test and 256
calibration pictures, or with --training as many training pictures as wanted.
"""
import argparse

import numpy as np

import safetensors_io

SIZE, PATCH = 8, 2
CLASSES = 8
TEST, CALIBRATION = (360, 2), (256, 3)  # count and seed
TRAINING_SEED = 1


def make(count, seed, pixels=1):
    """Images u8 [count, 8, 8] and labels u8 [count]; `pixels` of the label's patch differ."""
    random = np.random.default_rng(seed)
    upper = random.integers(0, 2, (count, SIZE // 2, SIZE))
    images = np.concatenate([upper, upper[:, ::-1, ::-1]], 1)
    labels = random.integers(0, CLASSES, count)
    for picture, label in enumerate(labels):
        row, column = divmod(int(label), SIZE // PATCH)
        for place in random.permutation(PATCH * PATCH)[:pixels]:
            y, x = row * PATCH + place // PATCH, column * PATCH + place % PATCH
            if random.integers(0, 2) == 1:  # which of the two is changed says nothing
                y, x = SIZE - 1 - y, SIZE - 1 - x
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
