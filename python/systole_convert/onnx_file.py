"""ONNX files: encoders, decoders and convolutional networks as PyTorch exports them, and Deeploy's
integer graphs."""

from __future__ import annotations

from pathlib import Path

from . import onnx_deeploy, onnx_pictures, onnx_proof, onnx_transformer
from .graph import Network
from .onnx_graph import DEEPLOY, OnnxGraph


def convert(path: Path, name: str) -> Network:
    graph = OnnxGraph(path)
    if any(op.type in DEEPLOY for op in graph.ops):
        return onnx_deeploy.convert(graph, name)
    if onnx_pictures.is_convolutional(graph):
        net = onnx_pictures.convert(graph, name)
        onnx_proof.prove(graph, net, "its operators look like those of a network file")
        return net
    net = onnx_transformer.convert(graph, name)
    onnx_proof.prove(graph, net, "its blocks look like a Transformer's")
    return net
