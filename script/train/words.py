"""The words task: is a line of text as written, with the letters of its words mixed, or reversed?

Texts are cut out of the validation text of kjv (traces/data/kjv.safetensors), at fixed seeds; those of
test and calibration from its last quarter, those of training from the rest. Token 1 begins a text, then
come ASCII codes; token 0 is padding.
"""
import numpy as np

import safetensors_io

WORDS, PAD, BEGIN = 128, 0, 1
LENGTH, SHORTEST = 32, 20
CLASSES = ("written", "mixed", "reversed")


def read_text(path):
    return bytes(safetensors_io.load(path)[0]["valid"]).replace(b"\n", b" ")


def split(text):
    """Training text and the rest."""
    cut = len(text) * 3 // 4
    return text[:cut], text[cut:]


def _mixed(line, rng):
    words = []
    for word in line.split(b" "):
        letters = np.frombuffer(word, np.uint8).copy()
        rng.shuffle(letters)
        words.append(letters.tobytes())
    return b" ".join(words)


def make(text, count, seed):
    """ids [count, LENGTH], mask of the same shape, labels [count]; every class as often."""
    rng = np.random.default_rng(seed)
    ids = np.full((count, LENGTH), PAD, np.uint8)
    mask = np.zeros((count, LENGTH), np.uint8)
    labels = (np.arange(count) % len(CLASSES)).astype(np.uint8)
    for i in range(count):
        length = int(rng.integers(SHORTEST, LENGTH))
        begin = int(rng.integers(0, len(text) - length))
        line = text[begin:begin + length]
        if labels[i] == 1:
            line = _mixed(line, rng)
        if labels[i] == 2:
            line = line[::-1]
        ids[i, 0] = BEGIN
        ids[i, 1:1 + length] = np.frombuffer(line, np.uint8)
        mask[i, :1 + length] = 1
    return ids, mask, labels
