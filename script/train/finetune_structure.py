"""Fine-tunes a vision transformer without some of its heads or neurons on the digits, and writes an f16
checkpoint of the same shape in which they are zero, so that `systole sparsify --structure` drops them first.
Without PyTorch it says so and does nothing."""
import argparse
import json
import sys

try:
    import torch
except ImportError as error:
    print(f"finetune_structure.py: skipped, it needs {error.name} (python3-torch)")
    sys.exit(0)

import digits
import safetensors_io
import train_vit
from vit_model import VisionTransformer


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    train_vit.add_training_arguments(parser)
    parser.add_argument("--init", required=True, help="checkpoint to start from")
    parser.add_argument("--order", required=True,
                        help="what systole sparsify --structure --json prints of it")
    parser.add_argument("--share", type=float, required=True, help="of the parts that may go, 0 to 1")
    arguments = parser.parse_args()
    train_vit.check_training_arguments(parser, arguments)
    if not 0 <= arguments.share <= 1:
        parser.error(f"--share: {arguments.share}, expected 0 to 1")
    return arguments


def load_order(path):
    """The structure and its parts (layer, index), least important first."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if document.get("structure") not in ("heads", "neurons") or not document.get("order"):
        raise ValueError(f"{path}: expected --json of sparsify --structure heads or neurons")
    return document["structure"], [tuple(part) for part in document["order"]]


def masks_of(model, structure, gone):
    """Pairs of a parameter and what it is multiplied with: 0 in what belongs to the parts that are gone."""
    masks = {}

    def zero(parameter, rows, first, last):
        mask = masks.setdefault(parameter, torch.ones_like(parameter))
        (mask if rows else mask.T)[first:last] = 0

    for layer, index in gone:
        block = model.blocks[layer]
        if structure == "neurons":
            zero(block.mlp.fc1.weight, True, index, index + 1)
            zero(block.mlp.fc1.bias, True, index, index + 1)
            zero(block.mlp.fc2.weight, False, index, index + 1)
        else:
            width = block.attn.proj.weight.shape[1] // block.attn.heads
            values = 2 * block.attn.proj.weight.shape[1] + index * width  # queries, keys, values
            zero(block.attn.qkv.weight, True, values, values + width)
            zero(block.attn.qkv.bias, True, values, values + width)
            zero(block.attn.proj.weight, False, index * width, (index + 1) * width)
    return list(masks.items())


def main():
    arguments = parse_arguments()
    generator = train_vit.start_random(arguments.seed)
    tensors, metadata = safetensors_io.load(arguments.init)
    model = VisionTransformer.from_checkpoint(tensors, metadata)
    structure, order = load_order(arguments.order)
    gone = order[:round(arguments.share * len(order))]
    masks = masks_of(model, structure, gone)

    @torch.no_grad()
    def remove():
        for parameter, mask in masks:
            parameter.mul_(mask)

    def vary(inputs, random):
        remove()  # what the step before has made of them
        return train_vit.augment(inputs, random)

    data = train_vit.load_tensors(model.geometry["image"] // digits.BASE_SIZE)
    remove()
    print(f"{len(gone)} of {len(order)} {structure} gone, test without fine-tuning "
          f"{train_vit.accuracy(model, *data[2:]):.4f}", flush=True)
    notes = {"task": metadata.get("task", "digits"), "gone": f"{len(gone)} {structure}"}
    train_vit.train_and_write(arguments, model, data, generator, notes=notes, vary=vary, last=remove)


if __name__ == "__main__":
    train_vit.run(main)
