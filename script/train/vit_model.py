"""A small vision transformer whose parameter names are those of timm and DeiT checkpoints.

Two layouts: pre-LN as in DeiT (norm in front of each sub-layer and of the head), and post-LN as in
BERT (norm behind each residual addition; `norm` then is the norm of the embedding).
"""
import torch
from torch import nn
import torch.nn.functional as F

NORM_EPSILON = 1e-6
CLASSES = 10
HIDDEN_RATIO = 4  # hidden width of the MLP / model width
DROPOUT = 0.1


class Attention(nn.Module):
    """Multi-head self-attention on [batch, tokens, width]."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        head_width = width // self.heads
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, head_width)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (query @ key.transpose(-2, -1)) * head_width ** -0.5
        context = scores.softmax(-1) @ value
        return self.proj(context.transpose(1, 2).reshape(batch, tokens, width))


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

    def __init__(self, width, heads, post_norm):
        super().__init__()
        self.post_norm = post_norm
        self.norm1 = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.attn = Attention(width, heads)
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
    """Classifies one-channel images [batch, 1, image, image] -> logits [batch, CLASSES]."""

    def __init__(self, image, patch=2, width=64, heads=4, layers=4, post_norm=False):
        super().__init__()
        self.geometry = dict(image=image, patch=patch, width=width, heads=heads, layers=layers,
                             post_norm=post_norm)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(1, width, patch, patch)})
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList([Block(width, heads, post_norm) for _ in range(layers)])
        self.norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.head = nn.Linear(width, CLASSES)
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

    def metadata(self):
        """The metadata of a checkpoint file, which the simulator reads the geometry from."""
        g = self.geometry
        return dict(img=g["image"], patch=g["patch"], d=g["width"], h=g["heads"], L=g["layers"],
                    ratio=HIDDEN_RATIO, ncls=CLASSES, post=int(g["post_norm"]), ae=0)

    @classmethod
    def from_checkpoint(cls, tensors, metadata):
        """Builds the model of a checkpoint (numpy tensors and metadata) with its parameters."""
        number = {key: int(metadata[key]) for key in ("img", "patch", "d", "h", "L", "post")}
        model = cls(number["img"], number["patch"], number["d"], number["h"], number["L"],
                    bool(number["post"]))
        try:
            model.load_state_dict({name: torch.from_numpy(value.astype("float32"))
                                   for name, value in tensors.items()})
        except RuntimeError as error:
            raise ValueError(f"tensors do not fit the metadata {metadata}: {error}") from error
        return model
