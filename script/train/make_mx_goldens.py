"""Writes tests/golden/mx_weights.safetensors: weights of OCP Microscaling Formats (MX) v1.0.

Scales and elements are those of the package ml_dtypes (float8_e8m0fnu, float4_e2m1fn); elements of
MXINT8 are s8 with six fraction bits. What an expander makes of them is computed in float64, where
every value is exact. No line is shared with hw/.
"""
import argparse

import ml_dtypes
import numpy as np

import safetensors_io

BLOCKS, ELEMENTS = 400, 32


def expanded(elements):
    """Every element at every scale but NaN, rounded to s8: [255, elements]."""
    scales = np.arange(255, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    return np.clip(np.rint(scales[:, None] * elements), -127, 127).astype(np.int8)


def converted(blocks, fp4):
    """Scales and values of the specification's conversion (section 6.3) of real blocks."""
    largest = np.abs(blocks).max(axis=1)
    exponent = np.frexp(largest)[1] - 1 - (2 if fp4 else 0)
    scaled = np.ldexp(blocks, -exponent[:, None])
    if fp4:
        values = np.clip(scaled, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float64)
    else:
        values = np.clip(np.rint(scaled * 64), -127, 127) / 64
    return (exponent + 127).astype(np.uint8), np.ldexp(values, exponent[:, None])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("output", help="file to write")
    output = parser.parse_args().output
    rng = np.random.default_rng(11)
    fp4 = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    int8 = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64) / 64
    # Blocks of all widths; some as if they had been rounded before. Nothing but integers and what
    # IEEE 754 rounds in one way: logarithms and exponentials differ by processor.
    drawn = rng.integers(-(1 << 20), 1 << 20, (2, BLOCKS, ELEMENTS)).prod(axis=0)
    widths = rng.integers(1 << 10, 1 << 11, (BLOCKS, 1)) << rng.integers(0, 10, (BLOCKS, 1))
    blocks = np.ldexp((drawn * widths).astype(np.float64), -52)
    blocks *= np.minimum(1, 127 / np.abs(blocks).max(axis=1, keepdims=True))
    blocks = np.clip(blocks, -127, 127)
    blocks[::4] = converted(blocks, True)[1][::4]
    tensors = {"expanded.mxfp4": expanded(fp4), "expanded.mxint8": expanded(int8), "blocks": blocks}
    for name, is_fp4 in (("mxfp4", True), ("mxint8", False)):
        tensors[f"scales.{name}"], tensors[f"values.{name}"] = converted(blocks, is_fp4)
    safetensors_io.save(output, tensors)


if __name__ == "__main__":
    main()
