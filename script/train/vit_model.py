"""A small vision transformer whose parameter names are those of timm and DeiT checkpoints.

Two layouts: pre-LN as in DeiT (norm before each sub-layer and of the head), and post-LN as in
BERT (norm after each residual addition; `norm` then is the norm of the embedding). The attention
can have a fixed mask per layer and head, and an auto-encoder across the heads of Q and of K.
"""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

import attention_mask

NORM_EPSILON = 1e-6
CLASSES = 10  # of the digits
HIDDEN_RATIO = 4  # hidden width of the MLP / model width
DROPOUT = 0.1
MASK_NAME = "blocks.{}.attn.keep_mask"


class Attention(nn.Module):
    """Multi-head self-attention on [batch, tokens, width].

    With `codes` > 0, Q and K pass through an auto-encoder: every feature of a token, one number
    per head, becomes `codes` numbers and then one per head again (linear, with bias). The mean
    square error of Q plus that of K is then in `reconstruction_error` after a forward pass.
    """

    def __init__(self, width, heads, codes=0):
        super().__init__()
        self.heads = heads
        self.codes = codes
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.softmax = nn.Softmax(-1)  # a module, so that a hook can see the attention
        self.reconstruction_error = None
        self.register_buffer("keep_mask", None)  # bool [heads, tokens, tokens]; None: keeps all
        if codes:
            self.encoder_q, self.decoder_q = nn.Linear(heads, codes), nn.Linear(codes, heads)
            self.encoder_k, self.decoder_k = nn.Linear(heads, codes), nn.Linear(codes, heads)

    def split(self, qkv):
        """[batch, tokens, 3 * width] -> query, key, value [batch, heads, tokens, head width]."""
        batch, tokens, width = qkv.shape
        qkv = qkv.reshape(batch, tokens, 3, self.heads, width // (3 * self.heads))
        return qkv.permute(2, 0, 3, 1, 4).unbind(0)

    def _reconstruct(self, query, key):
        """Q and K as they come out of the auto-encoder; notes the error."""

        def across_heads(x, encoder, decoder):
            return decoder(encoder(x.permute(0, 2, 3, 1))).permute(0, 3, 1, 2)

        query_out = across_heads(query, self.encoder_q, self.decoder_q)
        key_out = across_heads(key, self.encoder_k, self.decoder_k)
        self.reconstruction_error = F.mse_loss(query_out, query) + F.mse_loss(key_out, key)
        return query_out, key_out

    def forward(self, x):
        query, key, value = self.split(self.qkv(x))
        if self.codes:
            query, key = self._reconstruct(query, key)
        scores = (query @ key.transpose(-2, -1)) * query.shape[-1] ** -0.5
        if self.keep_mask is not None:
            scores = scores.masked_fill(~self.keep_mask, -torch.inf)
        context = self.softmax(scores) @ value
        return self.proj(context.transpose(1, 2).reshape(x.shape))


class Mlp(nn.Module):
    """Two linear layers with an erf GELU between them."""

    def __init__(self, width, hidden):
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """One encoder layer, pre-LN or post-LN."""

    def __init__(self, width, heads, post_norm, codes):
        super().__init__()
        self.post_norm = post_norm
        self.norm1 = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.attn = Attention(width, heads, codes)
        self.norm2 = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.mlp = Mlp(width, HIDDEN_RATIO * width)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x):
        if self.post_norm:
            x = self.norm1(x + self.dropout(self.attn(x)))
            return self.norm2(x + self.dropout(self.mlp(x)))
        x = x + self.dropout(self.attn(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    """Classifies one-channel images [batch, 1, image, image] -> logits [batch, classes]."""

    def __init__(self, image, patch=2, width=64, heads=4, layers=4, post_norm=False, codes=0,
                 classes=CLASSES):
        super().__init__()
        self.geometry = dict(image=image, patch=patch, width=width, heads=heads, layers=layers,
                             post_norm=post_norm, codes=codes, classes=classes)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(1, width, patch, patch)})
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(
            [Block(width, heads, post_norm, codes) for _ in range(layers)])
        self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.head = nn.Linear(width, classes)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.05)
                nn.init.zeros_(module.bias)

    def forward(self, images):
        x = self.patch_embed["proj"](images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        if self.geometry["post_norm"]:
            x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        if not self.geometry["post_norm"]:
            x = self.norm(x)
        return self.head(x[:, 0])

    def set_masks(self, masks):
        """Gives every layer its mask, of numpy bool [layers, heads, tokens, tokens]."""
        g, tokens = self.geometry, self.pos_embed.shape[1]
        expected = (g["layers"], g["heads"], tokens, tokens)
        if np.shape(masks) != expected:
            raise ValueError(f"masks of shape {np.shape(masks)}, expected {expected}")
        for block, mask in zip(self.blocks, masks):
            block.attn.keep_mask = torch.from_numpy(mask)

    def metadata(self):
        """The metadata of a checkpoint file, which the simulator reads the geometry from."""
        g = self.geometry
        metadata = dict(img=g["image"], patch=g["patch"], d=g["width"], h=g["heads"],
                        L=g["layers"], ratio=HIDDEN_RATIO, ncls=g["classes"],
                        post=int(g["post_norm"]), ae=g["codes"])
        if g["codes"]:
            metadata["folded"] = 0  # the encoders are not multiplied into the Q and K projections
        if self.blocks[0].attn.keep_mask is not None:
            masks = np.stack([block.attn.keep_mask.numpy() for block in self.blocks])
            metadata["sparsity"] = f"{attention_mask.sparsity(masks):.6g}"
        return metadata

    def checkpoint_tensors(self):
        """The tensors of a checkpoint file: masks packed, all else in f16."""

        def stored(value):
            is_mask = value.dtype == np.bool_
            return attention_mask.pack(value) if is_mask else value.astype(np.float16)

        return {name: stored(value.numpy()) for name, value in self.state_dict().items()}

    @classmethod
    def from_checkpoint(cls, tensors, metadata):
        """Builds the model of a checkpoint (numpy tensors and metadata) with its parameters."""
        number = {key: int(metadata[key]) for key in ("img", "patch", "d", "h", "L", "post", "ae")}
        model = cls(number["img"], number["patch"], number["d"], number["h"], number["L"],
                    bool(number["post"]), number["ae"], int(metadata["ncls"]))
        values = {name: value.astype(np.float32) for name, value in tensors.items()}
        if MASK_NAME.format(0) in tensors:
            names = [MASK_NAME.format(layer) for layer in range(number["L"])]
            tokens = model.pos_embed.shape[1]
            values.update({name: attention_mask.unpack(tensors[name], tokens) for name in names})
            model.set_masks([values[name] for name in names])
        try:
            model.load_state_dict({name: torch.from_numpy(value)
                                   for name, value in values.items()})
        except RuntimeError as error:
            raise ValueError(f"tensors do not fit the metadata {metadata}: {error}") from error
        return model
