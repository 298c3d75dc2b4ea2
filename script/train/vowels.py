"""The vowels task: write a line of text again whose vowels are missing.

Lines are cut out of the King James Bible between words, at fixed seeds: those of training out of the
chapters for training (kjv_text.py), those of test and calibration out of the validation text that ships
(traces/data/kjv.safetensors). A token is an ASCII code; 0 is padding, 1 begins what is written, 2 ends it.
"""
import numpy as np

import safetensors_io

CODES, PAD, BEGIN, END = 128, 0, 1, 2
LONGEST, SHORTEST = 32, 12  # letters of a line
SOURCE, TARGET = LONGEST, LONGEST + 1  # tokens of both texts: a line begins with BEGIN or ends with END
VOWELS = b"AEIOUaeiou"


def read_validation(path):
    return bytes(safetensors_io.load(path)[0]["valid"])


def _line(text, rng):
    """Some whole words of one verse, without its number; nothing if they are too few."""
    begin = int(rng.integers(0, len(text) - 2 * LONGEST))
    begin = text.find(b" ", begin) + 1
    length = int(rng.integers(SHORTEST, LONGEST + 1))
    line = text[begin:begin + length].split(b"\n", maxsplit=1)[0]
    if text[begin + len(line):begin + len(line) + 1] not in b" \n":
        line = line.rpartition(b" ")[0]
    line = line.rstrip(b" ,;:.")
    written = line.translate(None, VOWELS)
    return line if len(line) >= SHORTEST and written.strip() else b""


def make(text, count, seed):
    """Texts without vowels and as written: ids [count, SOURCE] and [count, TARGET] with BEGIN, each with
    its mask of the same shape."""
    rng = np.random.default_rng(seed)
    source = np.full((count, SOURCE), PAD, np.uint8)
    target = np.full((count, TARGET), PAD, np.uint8)
    target[:, 0] = BEGIN
    masks = np.zeros(source.shape, np.uint8), np.zeros(target.shape, np.uint8)
    for i in range(count):
        line = b""
        while not line:
            line = _line(text, rng)
        short = line.translate(None, VOWELS)
        source[i, :len(short)] = np.frombuffer(short, np.uint8)
        masks[0][i, :len(short)] = 1
        target[i, 1:1 + len(line)] = np.frombuffer(line, np.uint8)
        masks[1][i, :1 + len(line)] = 1
    return source, masks[0], target, masks[1]


def next_tokens(target, mask):
    """What follows each token of `target`: END after the last one of a text."""
    following = np.concatenate([target[:, 1:], np.full((len(target), 1), PAD, np.uint8)], axis=1)
    following[np.arange(len(target)), mask.sum(axis=1) - 1] = END
    return following
