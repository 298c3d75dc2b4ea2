#!/usr/bin/env python3
"""Writes a layer of a streaming attention core with every intermediate tensor, in Python's unbounded integers.

usage: make_layer_goldens.py OUT.json

The arithmetic is that of docs/blocks/streaming_core.md and shares no line with hw/stream.
"""
import json
import random
import sys

TOKENS, WIDTH, FEATURES, HIDDEN, HEADS = 16, 12, 8, 20, 2
GROUP = 16


def requantise(value, by):
    product = value * by["mult"]
    rounded = (product + (1 << (by["shift"] - 1))) >> by["shift"] if by["shift"] else product
    return max(-128, min(127, rounded + by["add"]))


def requantise_all(matrix, by):
    return [[requantise(value, by) for value in row] for row in matrix]


def multiply(a, b, bias=None):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) + (bias[j] if bias else 0)
             for j, column in enumerate(columns)] for row in a]


def softmax(scores):
    top, total = -128, 0
    for begin in range(0, len(scores), GROUP):
        group = scores[begin:begin + GROUP]
        higher = max([top] + group)
        total = (total >> (higher - top)) + sum(256 >> (higher - x) for x in group)
        top = higher
    inverse = 255 * 256 // total
    return [inverse >> (top - x) for x in scores]


def gelu(q, by):
    polynomial = (min(abs(q), -by["b"]) + by["b"]) ** 2 + by["c"]
    return requantise(q * ((polynomial if q > 0 else -polynomial) + by["c"]), by)


def constants(mult, shift, add):
    return {"mult": mult, "shift": shift, "add": add}


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def matrix(self, rows, cols):
        return [[self.random.randint(-128, 127) for _ in range(cols)] for _ in range(rows)]

    def bias(self, length):
        return [self.random.randint(-3000, 3000) for _ in range(length)]


def make_head(draw, x_q, x_kv):
    by = {"Q": constants(101, 13, 1), "K": constants(90, 13, -2), "V": constants(77, 12, 0),
          "QK": constants(60, 17, 3), "AV": constants(100, 13, -5), "OW": constants(80, 13, 2)}
    head = {name: draw.matrix(WIDTH, FEATURES) for name in ("W_q", "W_k", "W_v")}
    head["W_o"] = draw.matrix(FEATURES, WIDTH)
    head.update({name: draw.bias(FEATURES) for name in ("b_q", "b_k", "b_v")})
    head["b_o"] = draw.bias(WIDTH)
    head["requant"] = by
    for name, x in (("q", x_q), ("k", x_kv), ("v", x_kv)):
        sums = multiply(x, head["W_" + name], head["b_" + name])
        head["acc_" + name.upper()], head[name] = sums, requantise_all(sums, by[name.upper()])
    head["acc_QK"] = multiply(head["q"], list(zip(*head["k"])))
    head["scores"] = requantise_all(head["acc_QK"], by["QK"])
    head["probabilities"] = [softmax(row) for row in head["scores"]]
    head["acc_AV"] = multiply(head["probabilities"], head["v"])
    head["context"] = requantise_all(head["acc_AV"], by["AV"])
    head["acc_OW"] = multiply(head["context"], head["W_o"], head["b_o"])
    head["out"] = requantise_all(head["acc_OW"], by["OW"])
    return head


def make_feed_forward(draw):
    by = {"F1": constants(100, 13, 0), "F2": constants(90, 13, 4)}
    layer = {"x": draw.matrix(TOKENS, WIDTH), "W_1": draw.matrix(WIDTH, HIDDEN), "b_1": draw.bias(HIDDEN),
             "W_2": draw.matrix(HIDDEN, WIDTH), "b_2": draw.bias(WIDTH), "requant": by,
             "activation": {"kind": "gelu", "b": -80, "c": -7091, **constants(74, 20, 0)}}
    layer["acc_F1"] = multiply(layer["x"], layer["W_1"], layer["b_1"])
    layer["before_activation"] = requantise_all(layer["acc_F1"], by["F1"])
    layer["hidden"] = [[gelu(q, layer["activation"]) for q in row] for row in layer["before_activation"]]
    layer["acc_F2"] = multiply(layer["hidden"], layer["W_2"], layer["b_2"])
    layer["out"] = requantise_all(layer["acc_F2"], by["F2"])
    return layer


def main():
    draw = Draw(11)
    x_q, x_kv = draw.matrix(TOKENS, WIDTH), draw.matrix(TOKENS, WIDTH)
    heads = [make_head(draw, x_q, x_kv) for _ in range(HEADS)]
    by = constants(70, 7, -1)
    sums = [[sum(head["out"][i][j] for head in heads) for j in range(WIDTH)] for i in range(TOKENS)]
    layer = {"op": "ITA attention and feed-forward layer", "source": "script/train/make_layer_goldens.py",
             "name": "layer_s16", "S": TOKENS, "E": WIDTH, "P": FEATURES, "F": HIDDEN, "H": HEADS,
             "x_q": x_q, "x_kv": x_kv, "heads": heads,
             "head_sum": {"requant": by, "acc": sums, "out": requantise_all(sums, by)},
             "feed_forward": make_feed_forward(draw)}
    with open(sys.argv[1], "w", encoding="ascii") as out:
        json.dump(layer, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
