"""Writes tests/golden/text_heads: small seeded networks of transformers that classify texts, and the logits
that transformers (its Flax classes, float32) computes of them. Another implementation than ours.

    pip install transformers==4.49.0 jax==0.4.35 flax==0.10.2
"""
import argparse
import json
import os

import numpy as np

import safetensors_io
from train_words import tensors_of

WORDS, LENGTH, TEXTS, CLASSES = 40, 12, 16, 5
WIDTH, HEADS, HIDDEN, LAYERS = 16, 2, 24, 2


def networks():
    import transformers as t

    common = {"vocab_size": WORDS, "num_labels": CLASSES, "initializer_range": 0.3}
    bert = {**common, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": HIDDEN}
    yield "bert", t.FlaxBertForSequenceClassification, t.BertConfig(
        **bert, max_position_embeddings=LENGTH, type_vocab_size=2)
    yield "roberta", t.FlaxRobertaForSequenceClassification, t.RobertaConfig(
        **bert, max_position_embeddings=LENGTH + 2, type_vocab_size=1, pad_token_id=1,
        layer_norm_eps=1e-5)
    yield "distilbert", t.FlaxDistilBertForSequenceClassification, t.DistilBertConfig(
        **common, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=HIDDEN,
        max_position_embeddings=LENGTH)


def main():
    import jax

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("output", help="folder to write")
    output = parser.parse_args().output
    rng = np.random.default_rng(7)
    for name, network, config in networks():
        model = network(config, seed=3, input_shape=(1, LENGTH))
        params = jax.tree_util.tree_map(
            lambda x: (np.asarray(x) + 0.1 * rng.standard_normal(x.shape)).astype(np.float32),
            model.params)
        # Token 1 is RoBERTa's padding, which moves its positions.
        ids = rng.integers(2, WORDS, (TEXTS, LENGTH)).astype(np.uint8)
        mask = (np.arange(LENGTH) < rng.integers(4, LENGTH + 1, (TEXTS, 1))).astype(np.uint8)
        ids[mask == 0] = 1
        inputs = {"input_ids": ids, "attention_mask": mask}
        if name == "bert":
            inputs["token_type_ids"] = (np.arange(LENGTH) > 5).astype(np.uint8) * np.ones_like(mask)
        logits = np.asarray(model(**{k: v.astype(np.int32) for k, v in inputs.items()},
                                  params=params).logits)
        folder = os.path.join(output, name)
        os.makedirs(folder, exist_ok=True)
        safetensors_io.save(os.path.join(folder, "model.safetensors"), tensors_of(params))
        keys = config.to_diff_dict()
        keys["model_type"] = config.model_type
        if name == "distilbert":
            keys.update(dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=HIDDEN)
        with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
            json.dump(keys, file, indent=1, sort_keys=True)
        safetensors_io.save(os.path.join(folder, "texts.safetensors"),
                            {**inputs, "labels": logits.argmax(1).astype(np.uint8),
                             "logits": logits.astype(np.float32)})


if __name__ == "__main__":
    main()
