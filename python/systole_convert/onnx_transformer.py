"""From the operators of an ONNX file to the blocks of a Transformer.

Exporters write a LayerNorm, a GELU or an attention in many ways. This module recognises their
main operators and follows data through reshapes and transpositions without looking at them; that the
network found is the one in the file is then shown by computing both (onnx_proof.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .encoders import Blocks, Projection, normalised
from .errors import ConvertError
from .graph import TOKENS, Network, Source
from .onnx_graph import OnnxGraph, Op

_MOVES = ("Reshape", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Identity", "Cast", "Dropout")
_ARITHMETIC = ("Mul", "Add", "Div", "Pow", "Erf", "Tanh", "Sub")


@dataclass
class Linear:
    x: str
    weight: Source  # [outputs, inputs]
    bias: Source | None
    op: Op

    def projection(self, graph: OnnxGraph) -> Projection:
        bias = self.bias
        if bias is None:
            outputs = self.weight.shape[0]
            bias = Source((outputs,), lambda: np.zeros(outputs, np.float32))
        return Projection(self.weight, bias)


@dataclass
class Norm:
    x: str
    weight: Source
    bias: Source
    epsilon: float

    @property
    def projection(self) -> Projection:
        return Projection(self.weight, self.bias)


@dataclass
class Attention:
    x: list[Linear]  # query, key, value
    heads: int


@dataclass
class Block:
    attention: Attention
    proj: Linear
    norm1: Norm
    fc1: Linear
    fc2: Linear
    norm2: Norm
    gelu: str


class Reader:
    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        #: activations: scale and zero point of a pair of QuantizeLinear and DequantizeLinear
        self.quantised = 0
        self._constants: dict[str, Source | None] = {}

    # Values.

    def constant(self, name: str) -> Source | None:
        """The constant behind a name: itself, or what a cast, a product with a scale, a
        transposition or DequantizeLinear makes of one."""
        if name not in self._constants:
            self._constants[name] = None  # of a cycle, which there is none of
            self._constants[name] = self._constant(name)
        return self._constants[name]

    def _constant(self, name: str) -> Source | None:
        if name in self.graph.constants:
            return self.graph.constants[name]
        op = self.graph.makers.get(name)
        if op is None or not op.inputs:
            return None
        first = self.constant(op.inputs[0])
        if op.type == "Mul" and first is None:
            return None
        if first is None:
            return None
        if op.type in ("Identity", "Cast"):
            return first
        if op.type == "Transpose" and len(first.shape) == 2:
            return first.transposed() if op.attributes.get("perm", [1, 0]) == [1, 0] else first
        if op.type == "Mul" and first.dtype == "I8" and first.scales is None:
            scales = self.constant(op.inputs[1])
            return None if scales is None else self._scaled(op, first, scales, None)
        if op.type == "DequantizeLinear":
            scales = self.constant(op.inputs[1])
            zero = self.constant(op.inputs[2]) if len(op.inputs) > 2 and op.inputs[2] else None
            if scales is None or (len(op.inputs) > 2 and op.inputs[2] and zero is None):
                raise self.graph.fail(op, "scale and zero point: expected constants")
            codes = _less_zero(first, zero, op.attributes.get("axis", 1))
            return self._scaled(op, codes, scales, op.attributes.get("axis", 1))
        return None

    def _scaled(self, op: Op, codes: Source, scales: Source, axis: int | None) -> Source:
        values = np.asarray(scales.make(), np.float64).reshape(-1)
        if not np.isfinite(values).all() or (values <= 0).any():
            raise self.graph.fail(op, "scale: expected finite numbers above 0")
        if codes.dtype not in ("I8",):
            flat = values.astype(np.float32)
            shape = [1] * len(codes.shape)
            if flat.size > 1:
                shape[(axis or 0) % len(codes.shape)] = flat.size
            return Source(
                codes.shape, lambda: codes.make().astype(np.float32) * flat.reshape(shape)
            )
        if values.size == 1:
            return Source(codes.shape, codes.make, "I8", float(values[0]))
        if axis is None:  # a product with rows or columns of scales
            wide = [i for i, size in enumerate(scales.shape) if size != 1]
            axis = wide[0] + len(codes.shape) - len(scales.shape) if len(wide) == 1 else -1
        axis %= len(codes.shape)
        if codes.shape[axis] != values.size:
            raise self.graph.fail(op, f"{values.size} scales for shape {list(codes.shape)}")
        each = Source((values.size,), lambda: np.asarray(scales.make(), np.float32).reshape(-1))
        return Source(codes.shape, codes.make, "I8", each, axis)

    def scalar(self, name: str) -> float | None:
        source = self.constant(name)
        if source is None or math.prod(source.shape) != 1:
            return None
        return float(source.reals().reshape(-1)[0])

    def maker(self, value: str) -> Op | None:
        """What makes a value, behind pairs of QuantizeLinear and DequantizeLinear, and casts."""
        while True:
            op = self.graph.makers.get(value)
            if op is None:
                return None
            if op.type == "DequantizeLinear" and self.constant(value) is None:
                before = self.graph.makers.get(op.inputs[0])
                if before is None or before.type != "QuantizeLinear":
                    raise self.graph.fail(op, "expected a QuantizeLinear before it")
                if op.inputs[1:] != before.inputs[1:]:
                    raise self.graph.fail(
                        op, "another scale or zero point than the QuantizeLinear before it"
                    )
                value = before.inputs[0]
            elif op.type in ("Identity", "Cast", "Dropout"):
                value = op.inputs[0]
            else:
                return op

    def base(self, value: str) -> str:
        """The value itself behind those."""
        op = self.maker(value)
        if op is not None:
            return next(o for o in op.outputs if self._leads_to(value, o))
        while (found := self.graph.makers.get(value)) is not None:
            value = (
                self.graph.makers[found.inputs[0]].inputs[0]
                if found.type == "DequantizeLinear"
                else found.inputs[0]
            )
        return value

    def _leads_to(self, value: str, output: str) -> bool:
        while value != output:
            op = self.graph.makers.get(value)
            if op is None:
                return False
            if op.type == "DequantizeLinear":
                value = self.graph.makers[op.inputs[0]].inputs[0]
            elif op.type in ("Identity", "Cast", "Dropout"):
                value = op.inputs[0]
            else:
                return False
        return True

    def still(self, value: str) -> str:
        """The value behind reshapes and transpositions."""
        while True:
            value = self.base(value)
            op = self.graph.makers.get(value)
            if op is None or op.type not in _MOVES:
                return value
            value = op.inputs[0]

    # Layers.

    def linear(self, value: str) -> Linear | None:
        value = self.still(value)
        op = self.graph.makers.get(value)
        if op is None:
            return None
        if op.type == "Split" and self.constant(op.inputs[0]) is None:
            return self._part(op, value)
        if op.type == "Add":
            for a, b in (op.inputs, op.inputs[::-1]):
                bias = self.constant(b)
                if bias is None or len(bias.shape) != 1:
                    continue
                inner = self.linear(a)
                if (
                    inner is not None
                    and inner.bias is None
                    and inner.weight.shape[0] == bias.shape[0]
                ):
                    return Linear(inner.x, inner.weight, _real(bias), inner.op)
            return None
        if op.type == "MatMul":
            weight = self.constant(op.inputs[1])
            if weight is None or len(weight.shape) != 2:
                return None
            return Linear(self.still(op.inputs[0]), weight.transposed(), None, op)
        if op.type == "Gemm":
            weight = self.constant(op.inputs[1])
            if weight is None or len(weight.shape) != 2 or op.attributes.get("transA", 0):
                return None
            if op.attributes.get("alpha", 1.0) != 1.0 or op.attributes.get("beta", 1.0) != 1.0:
                raise self.graph.fail(op, "alpha, beta: expected 1")
            if not op.attributes.get("transB", 0):
                weight = weight.transposed()
            bias = self.constant(op.inputs[2]) if len(op.inputs) > 2 else None
            if len(op.inputs) > 2 and (bias is None or bias.shape != weight.shape[:1]):
                return None
            return Linear(
                self.still(op.inputs[0]), weight, None if bias is None else _real(bias), op
            )
        return None

    def _part(self, op: Op, value: str) -> Linear | None:
        whole = self.linear(op.inputs[0])
        if whole is None:
            return None
        outputs = whole.weight.shape[0]
        sizes = [outputs // len(op.outputs)] * len(op.outputs)
        if len(op.inputs) > 1:
            given = self.constant(op.inputs[1])
            if given is None:
                return None
            sizes = [int(n) for n in given.make().reshape(-1)]
        elif "split" in op.attributes:
            sizes = list(op.attributes["split"])
        index = op.outputs.index(value)
        if len(sizes) != len(op.outputs) or sum(sizes) != outputs or min(sizes) < 1:
            raise self.graph.fail(op, f"sizes {sizes} of {outputs} outputs")
        first = sum(sizes[:index])
        bias = None if whole.bias is None else whole.bias.rows(first, sizes[index])
        return Linear(whole.x, whole.weight.rows(first, sizes[index]), bias, whole.op)

    def norm(self, value: str) -> Norm | None:
        value = self.still(value)
        op = self.graph.makers.get(value)
        if op is None:
            return None
        if op.type == "LayerNormalization":
            weight, bias = (
                self.constant(op.inputs[1]),
                self.constant(op.inputs[2]) if len(op.inputs) > 2 else None,
            )
            if weight is None or bias is None:
                raise self.graph.fail(op, "expected constants as weight and bias")
            return Norm(
                self.still(op.inputs[0]),
                _real(weight),
                _real(bias),
                _rounded(op.attributes.get("epsilon", 1e-5)),
            )
        # (x - mean) / sqrt(variance + epsilon) * weight + bias
        if op.type != "Add":
            return None
        for scaled, shift in (op.inputs, op.inputs[::-1]):
            bias, product = self.constant(shift), self.maker(scaled)
            if bias is None or product is None or product.type != "Mul":
                continue
            for ratio, factor in (product.inputs, product.inputs[::-1]):
                weight, division = self.constant(factor), self.maker(ratio)
                if weight is None or division is None or division.type != "Div":
                    continue
                found = self._normalised(division)
                if found is not None:
                    return Norm(found[0], _real(weight), _real(bias), found[1])
        return None

    def _normalised(self, division: Op) -> tuple[str, float] | None:
        centred, root = self.maker(division.inputs[0]), self.maker(division.inputs[1])
        if centred is None or centred.type != "Sub" or root is None or root.type != "Sqrt":
            return None
        total = self.maker(root.inputs[0])
        if total is None or total.type != "Add":
            return None
        epsilon = next((e for e in map(self.scalar, total.inputs) if e is not None), None)
        return None if epsilon is None else (self.still(centred.inputs[0]), _rounded(epsilon))

    def gelu(self, value: str) -> tuple[Linear, str] | None:
        """The layer before a GELU, and its form."""
        op = self.maker(self.still(value))
        if op is not None and op.type == "Gelu":
            inner = self.linear(op.inputs[0])
            approximate = op.attributes.get("approximate", b"none")
            return None if inner is None else (inner, "tanh" if approximate == b"tanh" else "erf")
        seen: set[str] = set()
        kinds: set[str] = set()
        found: dict[int, Linear] = {}
        left = [value]
        while left:
            name = self.still(left.pop())
            if name in seen or self.constant(name) is not None:
                continue
            seen.add(name)
            layer = self.linear(name) if name != self.still(value) else None
            if layer is not None:
                found[id(layer.op)] = layer
                continue
            inner_op = self.maker(name)
            if inner_op is None or inner_op.type not in _ARITHMETIC or len(seen) > 32:
                return None
            kinds.add(inner_op.type)
            left.extend(inner_op.inputs)
        if len(found) != 1 or ("Erf" in kinds) == ("Tanh" in kinds):
            return None
        return next(iter(found.values())), "erf" if "Erf" in kinds else "tanh"

    def attention(self, value: str) -> Attention | None:
        op = self.maker(self.still(value))
        if op is None or op.type != "MatMul":
            return None
        values, shares = self.linear(op.inputs[1]), self.maker(op.inputs[0])
        if shares is not None and shares.type == "Where":  # rows without any key
            shares = self.maker(shares.inputs[2])
        if values is None or shares is None or shares.type != "Softmax":
            return None
        scale = 1.0
        product = self.maker(shares.inputs[0])
        while product is not None and product.type != "MatMul":
            if product.type in ("Mul", "Div") and (s := self.scalar(product.inputs[1])) is not None:
                scale *= s if product.type == "Mul" else 1 / s
                product = self.maker(product.inputs[0])
            elif product.type in ("Add", "Where"):  # a mask
                branches = [self.maker(name) for name in product.inputs[-2:]]
                branches = [b for b in branches if b is not None and self._scores(b)]
                if len(branches) != 1:
                    return None
                product = branches[0]
            else:
                return None
        if product is None:
            return None
        sides = []
        for name in product.inputs:
            while True:
                moved = self.still(name)
                mover = self.maker(moved)
                if (
                    mover is None
                    or mover.type not in ("Mul", "Div")
                    or (s := self.scalar(mover.inputs[1])) is None
                ):
                    break
                scale *= s if mover.type == "Mul" else 1 / s
                name = mover.inputs[0]
            sides.append(self.linear(name))
        if None in sides or not 0 < scale <= 1:
            return None
        width, head = values.weight.shape[0], round(scale**-2)
        if head == 0 or width % head or abs(scale**-2 - head) > 1e-3 * head:
            raise self.graph.fail(
                product, f"scores are times {scale:g}, expected the root of a head's width below 1"
            )
        return Attention([sides[0], sides[1], values], width // head)  # type: ignore[list-item]

    def _scores(self, op: Op | None) -> bool:
        """Whether scores come from here: a product of two activations."""
        for _ in range(8):
            if op is None:
                return False
            if op.type == "MatMul":
                return self.constant(op.inputs[1]) is None
            if op.type not in ("Mul", "Div", "Add", "Where"):
                return False
            op = self.maker(op.inputs[0] if op.type != "Where" else op.inputs[1])
        return False

    # Blocks.

    def mlp_sum(self, value: str) -> tuple[str, Linear, Linear, str] | None:
        """Of x + fc2(gelu(fc1(y))): x, fc2, fc1, form."""
        op = self.maker(self.still(value))
        if op is None or op.type != "Add":
            return None
        for a, b in (op.inputs, op.inputs[::-1]):
            fc2 = self.linear(b)
            inner = self.gelu(fc2.x) if fc2 is not None else None
            if fc2 is not None and inner is not None and self.constant(a) is None:
                return self.still(a), fc2, inner[0], inner[1]
        return None

    def attention_sum(self, value: str) -> tuple[str, Linear, Attention] | None:
        op = self.maker(self.still(value))
        if op is None or op.type != "Add":
            return None
        for a, b in (op.inputs, op.inputs[::-1]):
            proj = self.linear(b)
            attention = self.attention(proj.x) if proj is not None else None
            if proj is not None and attention is not None and self.constant(a) is None:
                return self.still(a), proj, attention
        return None

    def block(self, value: str, post: bool) -> tuple[str, Block] | None:
        norm2 = self.norm(value) if post else None
        if post and norm2 is None:
            return None
        mlp = self.mlp_sum(norm2.x if norm2 is not None else value)
        if mlp is None:
            return None
        middle, fc2, fc1, form = mlp
        if post:
            norm1 = self.norm(middle)
            if norm1 is None or fc1.x != middle:
                return None
            attended = self.attention_sum(norm1.x)
        else:
            norm2 = self.norm(fc1.x)
            if norm2 is None or norm2.x != middle:
                return None
            attended = self.attention_sum(middle)
            norm1 = None if attended is None else self.norm(attended[2].x[0].x)
        if attended is None or norm1 is None or norm2 is None:
            return None
        start, proj, attention = attended
        if not post and norm1.x != start:
            return None
        return start, Block(attention, proj, norm1, fc1, fc2, norm2, form)


def convert(graph: OnnxGraph, name: str) -> Network:
    reader = Reader(graph)
    net = Network(name, graph.path.name, {"family": "onnx", "left_out": graph.outputs[1:]})
    end = reader.still(graph.outputs[0])
    head, row = reader.linear(end), False
    value = end
    if head is not None and reader.gelu(head.x) is None:
        value = head.x
        op = reader.maker(value)
        if op is not None and op.type in ("Gather", "Slice"):
            value, row = reader.still(op.inputs[0]), True
    else:
        head = None
    blocks, entry, last, post = _blocks(reader, value)
    first = blocks[0]
    causal = False  # onnx_proof.py looks which
    writer = Blocks(
        net,
        first.attention.heads,
        first.fc1.weight.shape[0],
        first.norm1.epsilon,
        first.gelu,
        causal,
    )
    if any((b.attention.heads, b.gelu) != (first.attention.heads, first.gelu) for b in blocks):
        raise ConvertError(graph.path, "blocks with other heads or GELUs than the first")
    x, embedding_norm = entry, None
    if post:
        embedding_norm = reader.norm(entry)
        if embedding_norm is None:
            raise ConvertError(
                graph.path, f"value '{entry}': expected a LayerNorm before post-norm blocks"
            )
        x = embedding_norm.x
    x = _picture(reader, net, x) if row else _text(reader, net, x)
    if embedding_norm is not None:
        x = writer.norm("norm", x, embedding_norm.projection)
    for i, b in enumerate(blocks):
        add = writer.post_norm if post else writer.pre_norm
        layers = [part.projection(graph) for part in b.attention.x]
        x = add(i, x, layers, b.proj.projection(graph), b.norm1.projection,
                b.fc1.projection(graph), b.fc2.projection(graph), b.norm2.projection)  # fmt: skip
    if last is not None:
        x = writer.norm("norm", x, last.projection)
    if row:
        x = net.node("class_row", "select_row", [x], [1, net.shape(x)[1]], row=0)
    if head is not None:
        x = net.linear("logits", x, head.weight, head.bias)
    net.outputs = [x]
    return net


def _blocks(reader: Reader, value: str) -> tuple[list[Block], str, Norm | None, bool]:
    """From the first to the last, what the first reads, the norm after the last, whether post-norm."""
    last = None
    post = reader.block(value, True) is not None
    if not post:
        last = reader.norm(value)
        value = value if last is None else last.x
    blocks: list[Block] = []
    while (found := reader.block(value, post)) is not None:
        value = found[0]
        blocks.append(found[1])
    if not blocks:
        op = reader.maker(value)
        what = f"node '{op.name}' ({op.type})" if op is not None else f"value '{value}'"
        raise ConvertError(
            reader.graph.path,
            f"{what}: not the end of a Transformer block: expected a residual addition of an MLP, a LayerNorm after or before it",
        )
    return blocks[::-1], value, last, post


def _text(reader: Reader, net: Network, value: str) -> str:
    graph = reader.graph
    tables: dict[str, Source] = {}
    others: list[Source] = []
    left = [value]
    while left:
        op = reader.maker(reader.still(left.pop()))
        if op is not None and op.type == "Add" and len(tables) + len(others) < 4:
            left.extend(op.inputs)
            continue
        table = (
            reader.constant(op.inputs[0])
            if op is not None and op.type in ("Gather", "Slice")
            else None
        )
        if op is None or table is None or len(table.shape) != 2:
            place = f"node '{op.name}' ({op.type})" if op is not None else f"value '{value}'"
            raise ConvertError(
                graph.path, f"{place}: is added to the embedding, expected a Gather from a table"
            )
        index = reader.still(op.inputs[1]) if op.type == "Gather" else ""
        if index not in graph.inputs or index == "position_ids":
            others.append(_real(table))
            continue
        kind = "token_type" if "type" in index else "word"
        if kind in tables:
            raise graph.fail(op, f"a second table of {kind}s")
        tables[kind] = _real(table)
    # Tables whose rows are not those that an input names: positions, and perhaps the one type that
    # all tokens have.
    others.sort(key=lambda table: -table.shape[0])
    free = ["position"] if "token_type" in tables else ["position", "token_type"]
    if len(others) > len(free):
        raise ConvertError(
            graph.path,
            f"embedding: {len(others)} tables that no input reads, expected that of positions",
        )
    tables.update(zip(free, others, strict=False))
    if set(tables) - {"token_type"} != {"word", "position"}:
        raise ConvertError(
            graph.path,
            f"embedding: found tables of {', '.join(sorted(tables))}, expected words and positions",
        )
    ids = net.input("input_ids", "i64", [TOKENS])
    x = net.embedding("word", ids, tables["word"])
    x = net.add("embedding", x, net.positions("position", tables["position"]))
    if "token_type" in tables:
        types = net.input("token_type_ids", "i64", [TOKENS])
        x = net.add("typed_embedding", x, net.embedding("token_type", types, tables["token_type"]))
    return x


def _picture(reader: Reader, net: Network, value: str) -> str:
    graph = reader.graph
    op = reader.maker(reader.still(value))
    if op is None or op.type != "Add":
        raise ConvertError(
            graph.path, f"value '{value}': expected the sum with the table of positions"
        )
    table = next((c for c in map(reader.constant, op.inputs) if c is not None), None)
    joined = next(
        (reader.maker(reader.still(i)) for i in op.inputs if reader.constant(i) is None), None
    )
    if table is None or joined is None or joined.type != "Concat" or len(joined.inputs) != 2:
        raise graph.fail(op, "expected patches after a class token, plus a table of positions")
    token = reader.constant(joined.inputs[0])
    expand = reader.maker(joined.inputs[0])
    if token is None and expand is not None and expand.type == "Expand":
        token = reader.constant(expand.inputs[0])
    conv = reader.maker(reader.still(joined.inputs[1]))
    if token is None or conv is None or conv.type != "Conv":
        raise graph.fail(joined, "expected a constant class token, and a Conv of patches")
    weight = reader.constant(conv.inputs[1])
    bias = reader.constant(conv.inputs[2]) if len(conv.inputs) > 2 else None
    pixels = graph.shapes.get(conv.inputs[0], [0])[-1]
    if (
        weight is None
        or bias is None
        or len(weight.shape) != 4
        or weight.shape[2] != weight.shape[3]
    ):
        raise graph.fail(conv, "expected a square kernel and a bias")
    width, channels, patch, _ = weight.shape
    if list(conv.attributes.get("strides", [])) != [patch, patch] or any(
        conv.attributes.get("pads", [])
    ):
        raise graph.fail(conv, "expected patches side by side")
    tokens = math.prod(table.shape) // width
    side = math.isqrt(tokens - 1)
    if side * side + 1 != tokens or pixels not in (0, side * patch):
        raise graph.fail(
            op, f"{tokens} positions, expected the class token and square pictures of patches"
        )
    picture = net.input("picture", "u8", [channels, side * patch, side * patch])
    x = normalised(net, picture, Path(graph.path).parent, channels)
    samples = channels * patch * patch
    x = net.node(
        "patches", "patches", [x], [side * side, samples], patch=patch, upsample=1, levels=256
    )
    x = net.linear("patch_embed", x, _real(weight).reshaped((width, samples)), _real(bias))
    row = net.constant("class_token.row", _real(token).reshaped((1, width)))
    x = net.node("class_token", "prepend", [x, row], [tokens, width])
    return net.node("embedding", "add_table",
                    [x, net.constant("embedding.table", _real(table).reshaped((tokens, width)))],
                    [tokens, width])  # fmt: skip


def _real(source: Source) -> Source:
    """Codes of a matrix keep their scales; other things become float32."""
    if source.scales is None or len(source.shape) == 2:
        return source
    return Source(source.shape, source.reals)


def _less_zero(codes: Source, zero: Source | None, axis: int) -> Source:
    """Codes less their zero point: as they are if that is 0."""
    points = np.zeros(1) if zero is None else np.asarray(zero.make()).reshape(-1)
    if not points.any():
        return codes
    shape = [1] * len(codes.shape)
    if points.size > 1:
        shape[axis] = points.size
    return Source(
        codes.shape,
        lambda: codes.make().astype(np.int32) - points.astype(np.int32).reshape(shape),
        "I32",
    )


def _rounded(epsilon: float) -> float:
    """The decimal number that a float32 of the file stands for: 1e-12, not 9.999999960041972e-13."""
    return float(np.format_float_scientific(np.float32(epsilon), unique=True))
