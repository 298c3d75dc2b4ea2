"""Writes the golden vectors of the integer models: all logits, the first image's residual."""
import argparse
import json
import os
import sys

import numpy as np

import digits
import quantiser
import safetensors_io
from float_reference import FloatVit
from integer_reference import IntegerVit

FLOAT_LOGITS = 16  # images whose floating-point logits are kept


def accuracy(logits, labels):
    return float((logits.argmax(1) == labels).mean())


def golden_tensors(integer, images, float_logits):
    logits = integer.forward(images)
    tensors = {
        "int_logits": logits.astype(np.int32),
        "int_argmax": logits.argmax(1).astype(np.uint8),
        "fp32_logits": float_logits[:FLOAT_LOGITS].astype(np.float32),
    }

    def see(name, x):
        tensors["image0." + name] = x[0].astype(np.int32)
        return x

    tensors["image0.logits"] = integer.forward(images[:1], see)[0].astype(np.int32)
    return tensors


def constant_tensors(integer):
    """Constants (weights s8, the rest s32) and scales (f64) as tensors of a file."""
    tensors = {name: np.asarray(value, np.int8 if name.endswith(".weight") else np.int32)
               for name, value in integer.constants.items()}
    tensors.update({"scale." + name: np.float64(value) for name, value in integer.scales.items()})
    return tensors


def configuration():
    """The widths of the integer model, by name."""
    return {name.lower(): value for name, value in vars(quantiser).items() if name.isupper()}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("digits", help="safetensors file of export_digits.py")
    parser.add_argument("output", help="safetensors file to write")
    parser.add_argument("checkpoints", nargs="+", help="its file name gives a model's name")
    parser.add_argument("--constants", metavar="FOLDER",
                        help="also write all constants of each model to FOLDER/NAME.safetensors")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    data, _ = safetensors_io.load(arguments.digits)
    goldens, metadata = {}, {"configuration": json.dumps(configuration())}
    for path in arguments.checkpoints:
        name = os.path.splitext(os.path.basename(path))[0]
        tensors, checkpoint = safetensors_io.load(path)
        upscale = int(checkpoint["img"]) // digits.BASE_SIZE
        model = FloatVit(tensors, checkpoint)
        ranges = model.calibrate(digits.preprocess(data["calib_images"], upscale))
        integer = IntegerVit(model, ranges)
        images = digits.preprocess(data["test_images"], upscale)
        float_logits = model.forward(images)
        model_goldens = golden_tensors(integer, images, float_logits)
        goldens.update({f"{name}.{key}": value for key, value in model_goldens.items()})
        float_accuracy = accuracy(float_logits, data["test_labels"])
        integer_accuracy = accuracy(model_goldens["int_logits"], data["test_labels"])
        metadata[name + ".fp32_accuracy"] = float_accuracy
        metadata[name + ".int_accuracy"] = integer_accuracy
        print(f"{name}: fp32 {float_accuracy:.4f}, integer {integer_accuracy:.4f}", flush=True)
        if arguments.constants:
            os.makedirs(arguments.constants, exist_ok=True)
            safetensors_io.save(os.path.join(arguments.constants, name + ".safetensors"),
                                constant_tensors(integer))
    safetensors_io.save(arguments.output, goldens, metadata)


if __name__ == "__main__":
    try:
        main()
    except (KeyError, OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
