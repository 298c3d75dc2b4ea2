"""Trains a small vision transformer on the mirror task (mirror.py), writes an f16 checkpoint.

Pictures whose odd pair of patches differs in more pixels come first."""
import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F

import digits
import mirror
import train_vit
from vit_model import VisionTransformer

WIDTH, HEADS, LAYERS = 32, 2, 2
PICTURES = 32768
LESSONS = (4, 2, 1)  # pixels that differ


def sinusoids(size, width):
    """Positions [size * size + 1, width] of patches: sines and cosines of row and column; 0: the
    class token's."""
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


class FirstLessons:
    """Added to the loss of the first lessons: how little the first layer's heads attend to the
    patch at the other end, and how badly a probe of that layer's outputs tells which patches
    differ. Without it training does not find the task."""

    def __init__(self, model):
        model.probe = torch.nn.Linear(WIDTH, 1)
        self._hooks = [
            model.register_forward_pre_hook(lambda _, inputs: self._keep("images", inputs[0])),
            model.blocks[0].attn.softmax.register_forward_hook(
                lambda _, __, attention: self._keep("attention", attention)),
            model.blocks[0].register_forward_hook(lambda _, __, out: self._keep("tokens", out)),
        ]

    def _keep(self, name, value):
        setattr(self, name, value)

    def __call__(self, model):
        partner = self.attention[:, :, 1:, 1:].flip(-1).diagonal(dim1=-2, dim2=-1)
        turned = (self.images - self.images.flip(-1, -2)).abs()
        differs = F.max_pool2d(turned, mirror.PATCH).flatten(1).gt(0.5).float()
        found = model.probe(self.tokens[:, 1:]).squeeze(-1)
        return (F.binary_cross_entropy_with_logits(found, differs)
                - partner.clamp_min(1e-6).log().mean())

    def end(self, model):
        for hook in self._hooks:
            hook.remove()
        del model.probe


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    train_vit.add_training_arguments(parser)
    arguments = parser.parse_args()
    train_vit.check_training_arguments(parser, arguments)
    generator = train_vit.start_random(arguments.seed)
    model = VisionTransformer(mirror.SIZE, mirror.PATCH, WIDTH, HEADS, LAYERS,
                              classes=mirror.CLASSES)
    model.pos_embed.data[0] = 0.5 * sinusoids(mirror.SIZE // mirror.PATCH, WIDTH)
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):  # larger than for the digits: patches are compared
            torch.nn.init.xavier_uniform_(module.weight)
    for block in model.blocks:
        block.dropout.p = 0.0
    test = tensors_of(mirror.make(*mirror.TEST))
    first = FirstLessons(model)
    for pixels in LESSONS[:-1]:
        inputs, labels = tensors_of(mirror.make(PICTURES, mirror.TRAINING_SEED + pixels, pixels))
        train_vit.fit(model, inputs, labels, arguments.epochs, arguments.rate, generator,
                      first, vary=unchanged)
        print(f"{pixels} pixels: test {train_vit.accuracy(model, *test):.4f}", flush=True)
    first.end(model)
    inputs, labels = tensors_of(mirror.make(PICTURES, mirror.TRAINING_SEED))
    train_vit.train_and_write(arguments, model, (inputs, labels, *test), generator,
                              notes={"task": "mirror"}, vary=unchanged)


if __name__ == "__main__":
    train_vit.run(main)
