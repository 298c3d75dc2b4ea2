"""ONNX files: encoders and decoders as PyTorch exports them, and Deeploy's integer graphs."""

from __future__ import annotations

from pathlib import Path

from . import onnx_deeploy, onnx_proof, onnx_transformer
from .graph import Network
from .onnx_graph import DEEPLOY, OnnxGraph


def convert(path: Path, name: str) -> Network:
    graph = OnnxGraph(path)
    if any(op.type in DEEPLOY for op in graph.ops):
        return onnx_deeploy.convert(graph, name)
    net = onnx_transformer.convert(graph, name)
    onnx_proof.prove(graph, net)
    return net
