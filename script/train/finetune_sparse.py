"""Fine-tunes a vision transformer with fixed sparse attention, with auto-encoders on Q and K, or
both, and writes an f16 checkpoint. The masks come from its mean attention (export_attention.py)."""
import argparse

import numpy as np

import attention_mask
import digits
import head_codes
import safetensors_io
import train_vit
from vit_model import VisionTransformer


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    train_vit.add_training_arguments(parser)
    parser.add_argument("--init", required=True, help="checkpoint to start from")
    parser.add_argument("--codes", type=int,
                        help="add auto-encoders from one number per head to this many")
    parser.add_argument("--sparsity", type=float, help="prune this share of all attention cells")
    parser.add_argument("--attention", help=".npy file of mean attention, goes with --sparsity")
    parser.add_argument("--margin", type=int, choices=(0, 1), default=1,
                        help="entries kept beyond theta (default 1, as the authors of ViTCoD)")
    parser.add_argument("--random-mask", type=int, metavar="SEED",
                        help="shuffle the mask of each head, but for the class token's cells")
    arguments = parser.parse_args()
    train_vit.check_training_arguments(parser, arguments)
    if (arguments.sparsity is None) != (arguments.attention is None):
        parser.error("--sparsity and --attention go together")
    if arguments.random_mask is not None and arguments.sparsity is None:
        parser.error("--random-mask goes with --sparsity")
    if arguments.sparsity is None and arguments.codes is None:
        parser.error("nothing to do, expected --sparsity or --codes")
    return arguments


def make_masks(arguments):
    """Returns the masks asked for, printing what they are like, and metadata about them."""
    ranked = attention_mask.RankedAttention(np.load(arguments.attention), arguments.margin)
    theta = ranked.find_theta(arguments.sparsity)
    masks = ranked.mask(theta)
    notes = {"theta": theta, "margin": arguments.margin}
    if arguments.random_mask is not None:
        masks = attention_mask.shuffled(masks, arguments.random_mask)
        notes["random_mask"] = arguments.random_mask
    columns = attention_mask.global_columns(masks)
    print(f"sparsity {attention_mask.sparsity(masks):.5f}, theta {theta:.6f}, global columns per "
          f"head {columns.tolist()}, mean {columns.mean():.2f}")
    return masks, notes


def main():
    arguments = parse_arguments()
    generator = train_vit.start_random(arguments.seed)
    model = VisionTransformer.from_checkpoint(*safetensors_io.load(arguments.init))
    data = train_vit.load_tensors(model.geometry["image"] // digits.BASE_SIZE)
    inputs, _, test_inputs, test_labels = data
    notes = {}
    if arguments.codes is not None:
        model = head_codes.with_codes(model, arguments.codes, inputs)
    if arguments.sparsity is not None:
        masks, notes = make_masks(arguments)
        model.set_masks(masks)
    untrained = train_vit.accuracy(model, test_inputs, test_labels)
    print(f"test without fine-tuning {untrained:.4f}", flush=True)
    penalty = head_codes.reconstruction_penalty if model.geometry["codes"] else None
    train_vit.train_and_write(arguments, model, data, generator, penalty, notes)


if __name__ == "__main__":
    train_vit.run(main)
