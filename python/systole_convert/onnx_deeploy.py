"""Deeploy's integer networks, operator by operator."""

from __future__ import annotations

from .graph import Network
from .onnx_graph import OnnxGraph


def convert(graph: OnnxGraph, name: str) -> Network:
    raise NotImplementedError
