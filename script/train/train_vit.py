"""Trains a small vision transformer on the handwritten digits and writes an f16 checkpoint."""
import argparse
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import digits
import safetensors_io
from vit_model import VisionTransformer

BATCH = 64
WARMUP_EPOCHS = 5
FINAL_RATE = 0.02  # of the peak learning rate, at the end of the cosine
WEIGHT_DECAY = 0.05
LABEL_SMOOTHING = 0.05
GRADIENT_NORM = 1.0


def load_tensors(upscale):
    """Returns train inputs, train labels, test inputs, test labels; inputs f32 [count, 1, H, W]."""
    train_images, train_labels, test_images, test_labels = digits.load_split()

    def inputs(images):
        integers = digits.preprocess(images, upscale)
        return torch.from_numpy(integers.astype(np.float32)).unsqueeze(1) / float(digits.INPUT_MAX)

    def labels(values):
        return torch.from_numpy(values.astype(np.int64))

    return inputs(train_images), labels(train_labels), inputs(test_images), labels(test_labels)


def augment(images, generator):
    """Random rotation (+-15 degrees), scale, shear and shift (+-15 % each) of every image."""

    def uniform(limit, *shape):
        return (torch.rand(len(images), *shape, generator=generator) - 0.5) * (2 * limit)

    angle, scale = uniform(0.26), 1 + uniform(0.15, 2)
    shear, shift = uniform(0.15), uniform(0.15, 2)
    cosine, sine = angle.cos(), angle.sin()
    affine = torch.stack([
        torch.stack([cosine * scale[:, 0], -sine + shear, shift[:, 0]], 1),
        torch.stack([sine, cosine * scale[:, 1], shift[:, 1]], 1),
    ], 1)
    grid = F.affine_grid(affine, images.shape, align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


@torch.no_grad()
def accuracy(model, inputs, labels):
    model.eval()
    batches = zip(inputs.split(256), labels.split(256))
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in batches)
    return right / len(inputs)


def fit(model, inputs, labels, epochs, peak_rate, generator, penalty=None, vary=augment):
    """AdamW with linear warm-up and a cosine schedule; the last epoch counts, none is selected.

    `penalty(model)`, if given, is added to the loss of every batch; `vary(inputs, generator)`
    makes each batch different.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak_rate, weight_decay=WEIGHT_DECAY)
    steps_per_epoch = math.ceil(len(inputs) / BATCH)
    step = 0
    for epoch in range(1, epochs + 1):
        model.train()
        for chosen in torch.randperm(len(inputs), generator=generator).split(BATCH):
            warmup = min(1.0, (step + 1) / (WARMUP_EPOCHS * steps_per_epoch))
            cosine = 0.5 * (1 + math.cos(math.pi * step / (epochs * steps_per_epoch)))
            for group in optimizer.param_groups:
                group["lr"] = peak_rate * warmup * (FINAL_RATE + (1 - FINAL_RATE) * cosine)
            logits = model(vary(inputs[chosen], generator))
            loss = F.cross_entropy(logits, labels[chosen], label_smoothing=LABEL_SMOOTHING)
            if penalty:
                loss = loss + penalty(model)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
            optimizer.step()
            step += 1
        if epoch % 10 == 0 or epoch == epochs:
            print(f"epoch {epoch}: loss {loss.item():.4f}, "
                  f"train {accuracy(model, inputs, labels):.4f}", flush=True)


def start_random(seed):
    """Makes what follows repeatable; returns the generator of batches and augmentation."""
    torch.set_num_threads(1)  # the result must not depend on the number of processors
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


def train_and_write(arguments, model, data, generator, penalty=None, notes=None, vary=augment,
                    last=None):
    """Trains on `data` (see load_tensors), writes the checkpoint and prints its test accuracy.

    `arguments` come from add_training_arguments; `notes` is metadata beside the model's own. `last()` is
    called after the last step.
    """
    inputs, labels, test_inputs, test_labels = data
    start = time.time()
    fit(model, inputs, labels, arguments.epochs, arguments.rate, generator, penalty, vary)
    if last:
        last()
    wall = time.time() - start

    tensors = model.checkpoint_tensors()
    metadata = dict(model.metadata(), up=model.geometry["image"] // digits.BASE_SIZE,
                    **dict({"task": "digits"}, **(notes or {})))
    safetensors_io.save(arguments.output, tensors, metadata)
    written = VisionTransformer.from_checkpoint(tensors, metadata)
    print(f"{arguments.output}: test {accuracy(model, test_inputs, test_labels):.4f}, "
          f"rounded to f16 {accuracy(written, test_inputs, test_labels):.4f}, {wall:.0f} s")


def add_training_arguments(parser):
    parser.add_argument("output", help="safetensors checkpoint to write")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=1)


def check_output(parser, path):
    """Says now rather than after the training that a file cannot be written."""
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK):
        parser.error(f"{path}: cannot write into {folder}")


def check_training_arguments(parser, arguments):
    if arguments.epochs < 1:
        parser.error(f"--epochs: {arguments.epochs}, expected at least 1")
    check_output(parser, arguments.output)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    add_training_arguments(parser)
    parser.add_argument("--init", help="checkpoint to continue from; it fixes the model")
    parser.add_argument("--upscale", type=int, choices=(1, 2),
                        help="1: 8x8 pixels, 17 tokens (default); 2: 16x16 pixels, 65 tokens")
    parser.add_argument("--post-norm", action="store_true", help="BERT layout instead of DeiT's")
    arguments = parser.parse_args()
    if arguments.init and (arguments.upscale or arguments.post_norm):
        parser.error("--init fixes the model, so --upscale and --post-norm do not go with it")
    check_training_arguments(parser, arguments)
    return arguments


def main():
    arguments = parse_arguments()
    generator = start_random(arguments.seed)
    if arguments.init:
        model = VisionTransformer.from_checkpoint(*safetensors_io.load(arguments.init))
    else:
        image = digits.BASE_SIZE * (arguments.upscale or 1)
        model = VisionTransformer(image, post_norm=arguments.post_norm)
    data = load_tensors(model.geometry["image"] // digits.BASE_SIZE)
    train_and_write(arguments, model, data, generator)


def run(main_function):
    """Runs a program; a foreseeable error becomes one line and exit code 2."""
    try:
        main_function()
    except (KeyError, OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    run(main)
