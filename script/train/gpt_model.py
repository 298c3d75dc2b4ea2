"""A small GPT-2 whose parameter names are those of Hugging Face's GPT2Model.

Pre-LN, tanh GELU, the table of tokens used again as the head. Weights of linear layers are stored
[inputs, outputs], as GPT-2's Conv1D has them.
"""
import math

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

NORM_EPSILON = 1e-5
HIDDEN_RATIO = 4  # hidden width of the MLP / model width


class Conv1D(nn.Module):
    """A linear layer with its weight stored [inputs, outputs]."""

    def __init__(self, inputs, outputs, deviation):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * deviation)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


class Block(nn.Module):
    """One decoder layer on [batch, tokens, width]."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        # What is added to the residual stream starts small, the more so the more layers add to it.
        small = 0.05 / math.sqrt(2 * layers)
        hidden = HIDDEN_RATIO * width
        self.ln_1 = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.attn = nn.ModuleDict({"c_attn": Conv1D(width, 3 * width, 0.05),
                                   "c_proj": Conv1D(width, width, small)})
        self.ln_2 = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(width, hidden, 0.05),
                                  "c_proj": Conv1D(hidden, width, small)})

    def _split(self, x):
        """[batch, tokens, width] -> [batch, heads, tokens, head width]."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        query, key, value = (self._split(part)
                             for part in self.attn["c_attn"](self.ln_1(x)).chunk(3, 2))
        context = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attn["c_proj"](context.transpose(1, 2).flatten(2))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Token ids [batch, tokens] -> logits [batch, tokens, vocabulary]."""

    def __init__(self, vocabulary=128, context=256, width=128, heads=4, layers=4):
        super().__init__()
        self.geometry = dict(vocab_size=vocabulary, n_ctx=context, n_embd=width, n_head=heads,
                             n_layer=layers)
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList([Block(width, heads, layers) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width, eps=NORM_EPSILON)
        nn.init.normal_(self.wte.weight, std=0.05)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def checkpoint_tensors(self):
        """The tensors of a checkpoint file, in f16."""
        return {name: value.numpy().astype(np.float16) for name, value in self.state_dict().items()}

    @classmethod
    def from_checkpoint(cls, tensors, metadata):
        """Builds the model of a checkpoint (numpy tensors and metadata) with its parameters."""
        number = {key: int(metadata[key])
                  for key in ("vocab_size", "n_ctx", "n_embd", "n_head", "n_layer")}
        model = cls(number["vocab_size"], number["n_ctx"], number["n_embd"], number["n_head"],
                    number["n_layer"])
        try:
            model.load_state_dict({name: torch.from_numpy(value.astype(np.float32))
                                   for name, value in tensors.items()})
        except RuntimeError as error:
            raise ValueError(f"tensors do not fit the metadata {metadata}: {error}") from error
        return model
