"""Trains a small BERT that classifies texts on the words task (words.py), writes an f16 checkpoint and the
texts to test and to calibrate with.

The network is BertForSequenceClassification of transformers, in Flax: another implementation than ours, so
its labels are a witness of what `systole` computes.
"""
import argparse
import json
import os

import numpy as np

import safetensors_io
import words

os.environ.setdefault("JAX_PLATFORMS", "cpu")

WIDTH, HEADS, HIDDEN, LAYERS = 64, 4, 128, 2
BATCH, WARM_UP = 128, 200


def tensors_of(params):
    """Under the names and in the order of axes of PyTorch's checkpoints."""
    from flax.traverse_util import flatten_dict

    renamed = {"kernel": "weight", "embedding": "weight", "scale": "weight", "bias": "bias"}
    tensors = {}
    for path, value in flatten_dict(params).items():
        value = np.asarray(value, np.float32)
        if path[-1] == "kernel":
            value = value.T
        tensors[".".join([*path[:-1], renamed[path[-1]]])] = value
    return tensors


def train(text, steps, rate, seed):
    import jax
    import optax
    from transformers import BertConfig, FlaxBertForSequenceClassification

    config = BertConfig(vocab_size=words.WORDS, hidden_size=WIDTH, num_hidden_layers=LAYERS,
                        num_attention_heads=HEADS, intermediate_size=HIDDEN,
                        max_position_embeddings=words.LENGTH, type_vocab_size=1,
                        num_labels=len(words.CLASSES), hidden_dropout_prob=0.05,
                        attention_probs_dropout_prob=0.0)
    model = FlaxBertForSequenceClassification(config, seed=seed, input_shape=(1, words.LENGTH))
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, WARM_UP, steps)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.02))
    params, state = model.params, optimiser.init(model.params)

    @jax.jit
    def step(params, state, ids, mask, labels, key):
        def loss_of(params):
            logits = model(ids, attention_mask=mask, params=params, train=True, dropout_rng=key).logits
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, state = optimiser.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    key = jax.random.PRNGKey(seed)
    for i in range(steps):
        ids, mask, labels = words.make(text, BATCH, [seed, i])
        key, drop = jax.random.split(key)
        params, state, loss = step(params, state, ids.astype(np.int32), mask, labels.astype(np.int32), drop)
        if i % 200 == 0:
            print(i, f"{float(loss):.4f}", flush=True)
    return model, params


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("text", help="traces/data/kjv.safetensors")
    parser.add_argument("checkpoint", help="safetensors file to write")
    parser.add_argument("texts", help="safetensors file to write: texts to test with")
    parser.add_argument("calibration", help="safetensors file to write: other texts")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    training, rest = words.split(words.read_text(arguments.text))
    model, params = train(training, arguments.steps, arguments.rate, arguments.seed)
    rounded = {name: value.astype(np.float16) for name, value in tensors_of(params).items()}
    safetensors_io.save(arguments.checkpoint, rounded,
                        {"h": str(HEADS), "task": "words as written, mixed or reversed",
                         "classes": json.dumps(words.CLASSES)})
    for path, count, seed in ((arguments.texts, 600, 1001), (arguments.calibration, 96, 1002)):
        ids, mask, labels = words.make(rest, count, seed)
        safetensors_io.save(path, {"input_ids": ids, "attention_mask": mask, "labels": labels}, {})
        logits = np.asarray(model(ids.astype(np.int32), attention_mask=mask, params=params).logits)
        print(path, f"{100 * (logits.argmax(1) == labels).mean():.2f} %")


if __name__ == "__main__":
    main()
