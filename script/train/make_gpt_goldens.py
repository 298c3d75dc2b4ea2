"""Writes what PyTorch computes with the character-level GPT-2, in single precision."""
import argparse

import numpy as np
import torch

import safetensors_io
from gpt_model import Gpt
from train_gpt import bits_by_position
from train_vit import run

PLACES = [0, 1, 2, 31, 64, 127, 200, 255]  # of the first window whose logits are kept
WINDOWS = 2  # of which the bits per character are kept


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", help="safetensors file of export_kjv.py")
    parser.add_argument("checkpoint", help="safetensors file of train_gpt.py")
    parser.add_argument("output", help="safetensors file to write")
    return parser.parse_args()


@torch.no_grad()
def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    model = Gpt.from_checkpoint(*safetensors_io.load(arguments.checkpoint))
    text = safetensors_io.load(arguments.text)[0]["valid"]
    ids = torch.from_numpy(text.astype(np.int64))
    logits = model(ids[None, :model.geometry["n_ctx"]])[0]
    safetensors_io.save(arguments.output, {
        "places": np.array(PLACES, np.int32),
        "logits": logits[PLACES].numpy(),
        "bits": bits_by_position(model, ids, WINDOWS).numpy(),
    })


if __name__ == "__main__":
    run(main)
