"""Writes the logits that transformers computes, in Flax, of the first texts of the vowels task."""
import argparse
import os

import numpy as np

import safetensors_io
import vowels

os.environ.setdefault("JAX_PLATFORMS", "cpu")

COUNT = 3


def params_of(model, tensors):
    """The parameters of a model out of a checkpoint: the inverse of train_words.tensors_of()."""
    from flax.traverse_util import flatten_dict, unflatten_dict

    renamed = {"kernel": "weight", "embedding": "weight", "scale": "weight", "bias": "bias"}
    params = {}
    for path, value in flatten_dict(model.params).items():
        name = ".".join([*path[:-1], renamed[path[-1]]])
        if ".pooler." not in name:
            value = np.asarray(tensors[name], np.float32)
            value = value.T if path[-1] == "kernel" else value
        params[path] = value
    return unflatten_dict(params)


def main():
    from train_vowels import make_model

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="traces/models/vowels.safetensors")
    parser.add_argument("texts", help="traces/data/vowels.safetensors")
    parser.add_argument("golden", help="safetensors file to write")
    arguments = parser.parse_args()
    texts = safetensors_io.load(arguments.texts)[0]
    source, target = (texts[name][:COUNT].astype(np.int32) for name in ("input_ids", "decoder_input_ids"))
    model = make_model(vowels.BEGIN)
    logits = model(source, attention_mask=texts["attention_mask"][:COUNT], decoder_input_ids=target,
                   decoder_attention_mask=texts["decoder_attention_mask"][:COUNT],
                   params=params_of(model, safetensors_io.load(arguments.checkpoint)[0])).logits
    safetensors_io.save(arguments.golden, {"logits": np.asarray(logits, np.float32)}, {})


if __name__ == "__main__":
    main()
