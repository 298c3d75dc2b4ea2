"""Writes a model's attention, averaged over all training images, as .npy: f32 [layers, heads,
tokens, tokens], after the softmax, rows sum to 1."""
import argparse

import numpy as np
import torch

import digits
import safetensors_io
import train_vit
from vit_model import VisionTransformer


@torch.no_grad()
def mean_attention(model, inputs):
    """The attention averaged over `inputs` [count, 1, H, W], summed in f64."""
    model.eval()
    sums = [0.0] * len(model.blocks)

    def watch(layer):
        def add(_module, _inputs, attention):
            sums[layer] = sums[layer] + attention.double().sum(0)

        return model.blocks[layer].attn.softmax.register_forward_hook(add)

    hooks = [watch(layer) for layer in range(len(sums))]
    for batch in inputs.split(256):
        model(batch)
    for hook in hooks:
        hook.remove()
    return (torch.stack(sums) / len(inputs)).numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="safetensors file of the model")
    parser.add_argument("output", help=".npy file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = VisionTransformer.from_checkpoint(*safetensors_io.load(arguments.checkpoint))
    inputs = train_vit.load_tensors(model.geometry["image"] // digits.BASE_SIZE)[0]
    np.save(arguments.output, mean_attention(model, inputs).astype(np.float32))


if __name__ == "__main__":
    train_vit.run(main)
