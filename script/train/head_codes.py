"""Gives a vision transformer auto-encoders across the heads of Q and K, as ViTCoD has them."""
import torch

from vit_model import VisionTransformer

RECONSTRUCTION_WEIGHT = 0.1  # of the reconstruction errors, beside the cross entropy


@torch.no_grad()
def with_codes(model, codes, inputs):
    """`model` with auto-encoders of `codes` numbers, started from a principal component analysis.

    The analysis is across heads, over every token and feature of `inputs`, which are run through
    the model without auto-encoders.
    """
    if model.geometry["codes"]:
        raise ValueError("the model has auto-encoders already")
    if not 1 <= codes <= model.geometry["heads"]:
        raise ValueError(f"{codes} codes: expected 1 to {model.geometry['heads']}, one per head")
    result = VisionTransformer(**dict(model.geometry, codes=codes))
    result.load_state_dict(model.state_dict(), strict=False)
    for block, start in zip(result.blocks, _projections(model, inputs)):
        attention = block.attn
        query, key, _ = attention.split(start)
        _start_from_components(attention.encoder_q, attention.decoder_q, query)
        _start_from_components(attention.encoder_k, attention.decoder_k, key)
    return result


def _projections(model, inputs):
    """What the Q, K and V projection of every layer yields, [count, tokens, 3 * width] each."""
    model.eval()
    seen = [[] for _ in model.blocks]
    hooks = [block.attn.qkv.register_forward_hook(
        lambda _module, _inputs, output, outputs=outputs: outputs.append(output))
             for block, outputs in zip(model.blocks, seen)]
    for batch in inputs.split(256):
        model(batch)
    for hook in hooks:
        hook.remove()
    return [torch.cat(outputs) for outputs in seen]


def _start_from_components(encoder, decoder, values):
    """Sets both to the projection of [count, heads, tokens, features] onto its components."""
    across_heads = values.transpose(0, 1).flatten(1).double()
    mean = across_heads.mean(1)
    _, vectors = torch.linalg.eigh(torch.cov(across_heads))  # by rising eigenvalue
    components = vectors[:, -encoder.out_features:]
    encoder.weight.copy_(components.t())
    encoder.bias.copy_(-components.t() @ mean)
    decoder.weight.copy_(components)
    decoder.bias.copy_(mean)


def reconstruction_penalty(model):
    return RECONSTRUCTION_WEIGHT * sum(block.attn.reconstruction_error for block in model.blocks)
