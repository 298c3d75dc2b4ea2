"""Trains a small encoder-decoder on the vowels task (vowels.py), writes an f16 checkpoint and the texts to
test and to calibrate with.

The network is EncoderDecoderModel of transformers, a BERT and a GPT-2 that attends to what it gives, in
Flax: another implementation than ours, so what it finds is a witness of what `systole` computes.
"""
import argparse
import os

import numpy as np

import kjv_text
import safetensors_io
import vowels
from train_words import tensors_of

os.environ.setdefault("JAX_PLATFORMS", "cpu")

WIDTH, HEADS, HIDDEN, LAYERS = 64, 4, 128, 2
BATCH, WARM_UP = 64, 200


def make_model(seed):
    from transformers import BertConfig, EncoderDecoderConfig, FlaxEncoderDecoderModel, GPT2Config

    encoder = BertConfig(vocab_size=vowels.CODES, hidden_size=WIDTH, num_hidden_layers=LAYERS,
                         num_attention_heads=HEADS, intermediate_size=HIDDEN,
                         max_position_embeddings=vowels.SOURCE, type_vocab_size=1,
                         hidden_dropout_prob=0.02, attention_probs_dropout_prob=0.0)
    decoder = GPT2Config(vocab_size=vowels.CODES, n_positions=vowels.TARGET, n_embd=WIDTH, n_layer=LAYERS,
                         n_head=HEADS, n_inner=HIDDEN, resid_pdrop=0.02, embd_pdrop=0.0, attn_pdrop=0.0,
                         is_decoder=True, add_cross_attention=True)
    config = EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id = vowels.BEGIN, vowels.PAD
    config.eos_token_id = vowels.END
    return FlaxEncoderDecoderModel(config, seed=seed, input_shape=((1, vowels.SOURCE), (1, vowels.TARGET)))


def train(text, steps, rate, seed):
    import jax
    import optax

    model = make_model(seed)
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, WARM_UP, steps)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.02))
    params, state = model.params, optimiser.init(model.params)

    @jax.jit
    def step(params, state, source, source_mask, target, target_mask, following, key):
        def loss_of(params):
            logits = model(source, attention_mask=source_mask, decoder_input_ids=target,
                           decoder_attention_mask=target_mask, params=params, train=True,
                           dropout_rng=key).logits
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, following)
            return (losses * target_mask).sum() / target_mask.sum()

        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, state = optimiser.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    key = jax.random.PRNGKey(seed)
    for i in range(steps):
        source, source_mask, target, target_mask = vowels.make(text, BATCH, [seed, i])
        following = vowels.next_tokens(target, target_mask).astype(np.int32)
        key, drop = jax.random.split(key)
        params, state, loss = step(params, state, source.astype(np.int32), source_mask,
                                   target.astype(np.int32), target_mask, following, drop)
        if i % 100 == 0:
            print(i, f"{float(loss):.4f}", flush=True)
    return model, params


def report(model, params, path, texts):
    """How much of the texts the network finds, each token after the right ones before it."""
    source, source_mask, target, target_mask = texts
    logits = np.asarray(model(source.astype(np.int32), attention_mask=source_mask,
                              decoder_input_ids=target.astype(np.int32),
                              decoder_attention_mask=target_mask, params=params).logits)
    right = (logits.argmax(2) == vowels.next_tokens(target, target_mask)) | (target_mask == 0)
    tokens = 100 * (right & (target_mask == 1)).sum() / target_mask.sum()
    print(path, f"{tokens:.2f} % of tokens, {100 * right.all(axis=1).mean():.2f} % of texts")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("text", help="traces/data/kjv.safetensors")
    parser.add_argument("checkpoint", help="safetensors file to write")
    parser.add_argument("texts", help="safetensors file to write: texts to test with")
    parser.add_argument("calibration", help="safetensors file to write: other texts")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    training, _ = kjv_text.load_split()
    rest = vowels.read_validation(arguments.text)
    model, params = train(training, arguments.steps, arguments.rate, arguments.seed)
    # A pooler is no part of the task, and never trained.
    rounded = {name: value.astype(np.float16) for name, value in tensors_of(params).items()
               if ".pooler." not in name}
    safetensors_io.save(arguments.checkpoint, rounded,
                        {"h": str(HEADS), "begin": str(vowels.BEGIN), "end": str(vowels.END),
                         "task": "texts whose vowels are missing"})
    for path, count, seed in ((arguments.texts, 200, 1001), (arguments.calibration, 64, 1002)):
        texts = vowels.make(rest, count, seed)
        names = ("input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask")
        safetensors_io.save(path, dict(zip(names, texts)), {})
        report(model, params, path, texts)


if __name__ == "__main__":
    main()
