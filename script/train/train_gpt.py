"""Trains the character-level GPT-2 on the King James Bible and writes an f16 checkpoint."""
import argparse
import math
import time

import numpy as np
import torch
import torch.nn.functional as F

import kjv_text
import safetensors_io
from gpt_model import Gpt
from train_vit import check_output, run, start_random

BATCH = 8
WARMUP_STEPS = 200
FINAL_RATE = 0.02  # of the peak learning rate, at the end of the cosine
WEIGHT_DECAY = 0.1
BETAS = (0.9, 0.98)
GRADIENT_NORM = 1.0
REPORT_STEPS = 500
POSITION_BLOCK = 64  # bits per character are told by blocks of positions


def to_ids(text):
    """A text as token ids: the ASCII codes."""
    return torch.from_numpy(np.frombuffer(text, np.uint8).astype(np.int64))


@torch.no_grad()
def bits_by_position(model, ids, count=None):
    """Bits per character [context], the mean over windows one after the other, the first `count`.

    A window knows nothing of the one before it.
    """
    context = model.geometry["n_ctx"]
    starts = torch.arange(0, len(ids) - context, context)[:count]
    total = torch.zeros(context, dtype=torch.float64)
    for chosen in starts.split(20):
        windows = torch.stack([ids[i:i + context + 1] for i in chosen.tolist()])
        loss = F.cross_entropy(model(windows[:, :-1]).transpose(1, 2), windows[:, 1:],
                               reduction="none")
        total += loss.double().sum(0)
    return total / len(starts) / math.log(2)


def learning_rate(step, arguments):
    cosine = 0.5 * (1 + math.cos(math.pi * step / arguments.steps))
    warmup = min(1.0, (step + 1) / WARMUP_STEPS)
    return arguments.rate * warmup * (FINAL_RATE + (1 - FINAL_RATE) * cosine)


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    return torch.optim.AdamW([dict(params=matrices, weight_decay=WEIGHT_DECAY),
                              dict(params=vectors, weight_decay=0.0)], betas=BETAS)


def save(path, model, **metadata):
    safetensors_io.save(path, model.checkpoint_tensors(),
                        dict(model.geometry, task="characters, token id = ASCII code", **metadata))


def fit(model, train, valid, arguments, generator):
    """AdamW with linear warm-up and a cosine schedule over windows drawn at random.

    The last step counts, none is selected; what is written on the way is for impatient readers.
    """
    optimizer = make_optimizer(model)
    compiled = torch.compile(model)  # half the time of the plain model
    context = model.geometry["n_ctx"]
    start = time.time()
    for step in range(arguments.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, arguments)
        first = torch.randint(len(train) - context, (BATCH,), generator=generator).tolist()
        windows = torch.stack([train[i:i + context + 1] for i in first])
        logits = compiled(windows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
        optimizer.step()
        if (step + 1) % REPORT_STEPS == 0:
            bits = bits_by_position(model, valid, 40).mean()
            print(f"step {step + 1}: {time.time() - start:.0f} s, train "
                  f"{loss.item() / math.log(2):.3f}, valid {bits:.3f} bits/char", flush=True)
            save(arguments.output, model)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", help="safetensors checkpoint to write")
    parser.add_argument("--steps", type=int, required=True, help=f"of {BATCH} windows each")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error(f"--steps: {arguments.steps}, expected at least 1")
    check_output(parser, arguments.output)
    return arguments


def main():
    arguments = parse_arguments()
    generator = start_random(arguments.seed)
    train, valid = (to_ids(text) for text in kjv_text.load_split())
    model = Gpt()
    start = time.time()
    fit(model, train, valid, arguments, generator)
    save(arguments.output, model)
    written = Gpt.from_checkpoint(*safetensors_io.load(arguments.output))
    bits = bits_by_position(written, valid)
    save(arguments.output, model, validation_bits=f"{bits.mean():.3f}")
    blocks = ", ".join(f"{block.mean():.3f}" for block in bits.split(POSITION_BLOCK))
    print(f"{arguments.output}: {bits.mean():.4f} bits/char, by {POSITION_BLOCK} positions {blocks}; "
          f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    run(main)
