"""Fine-tunes a vision transformer under a fixed attention mask, as `systole sparsify -o` writes it,
on labelled pictures, and writes an f16 checkpoint. Without PyTorch it says so and does nothing."""
import argparse
import sys

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"finetune_mask.py: skipped, it needs {error.name} (python3-torch, python3-numpy)")
    sys.exit(0)

import attention_mask
import digits
import safetensors_io
import train_vit
from vit_model import VisionTransformer


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    train_vit.add_training_arguments(parser)
    parser.add_argument("--init", required=True, help="checkpoint to start from")
    parser.add_argument("--mask", required=True, help=".npy of bool, true where a cell is pruned")
    parser.add_argument("--pictures", required=True,
                        help="safetensors file with train_images and train_labels")
    parser.add_argument("--test", required=True, help="the same with test_images and test_labels")
    parser.add_argument("--random-mask", type=int, metavar="SEED",
                        help="shuffle the mask of each head, but for the class token's cells")
    parser.add_argument("--augment", action="store_true",
                        help="turn, shear and move pictures a little, as for the digits")
    arguments = parser.parse_args()
    train_vit.check_training_arguments(parser, arguments)
    return arguments


def load_pictures(path, split, upscale):
    """Inputs f32 [count, 1, H, W] and labels of a safetensors file."""
    tensors, _ = safetensors_io.load(path)
    integers = digits.preprocess(tensors[f"{split}_images"], upscale)
    inputs = torch.from_numpy(integers.astype(np.float32)).unsqueeze(1) / float(digits.INPUT_MAX)
    return inputs, torch.from_numpy(tensors[f"{split}_labels"].astype(np.int64))


def main():
    arguments = parse_arguments()
    generator = train_vit.start_random(arguments.seed)
    tensors, metadata = safetensors_io.load(arguments.init)
    model = VisionTransformer.from_checkpoint(tensors, metadata)
    masks = ~np.load(arguments.mask)
    notes = {"task": metadata.get("task", "digits")}
    if arguments.random_mask is not None:
        masks = attention_mask.shuffled(masks, arguments.random_mask)
        notes["random_mask"] = arguments.random_mask
    model.set_masks(masks)
    upscale = int(metadata.get("up", 1))
    test = load_pictures(arguments.test, "test", upscale)
    print(f"sparsity {attention_mask.sparsity(masks):.5f}, test without fine-tuning "
          f"{train_vit.accuracy(model, *test):.4f}", flush=True)
    vary = train_vit.augment if arguments.augment else (lambda inputs, _generator: inputs)
    data = (*load_pictures(arguments.pictures, "train", upscale), *test)
    train_vit.train_and_write(arguments, model, data, generator, notes=notes, vary=vary)


if __name__ == "__main__":
    train_vit.run(main)
