"""That a converted network computes what the ONNX file does: both are computed on seeded input."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from .errors import ConvertError
from .evaluate import evaluate
from .graph import TOKENS, Network
from .onnx_graph import OnnxGraph

_TOKENS = 7
_SEED = 1
#: Of the largest output: far above what float32 rounds, far below what another network gives.
_TOLERANCE = 1e-3
#: For libraries, in bytes; the rest of what computing may take is a multiple of the file.
_ROOM = 192 << 20


def prove(graph: OnnxGraph, net: Network, found_as: str) -> None:
    """Finds whether attention is causal and where positions begin. Raises, beginning with what the file
    was `found_as`, if nothing fits."""
    generator = np.random.default_rng(_SEED)
    ours: dict[str, np.ndarray] = {}
    theirs: dict[str, np.ndarray] = {}
    for name in net.inputs:
        shape = net.values[name]["shape"]
        if shape == [TOKENS]:
            table = net.constants["word.table" if name == "input_ids" else "token_type.table"]
            ours[name] = generator.integers(0, table.shape[0], _TOKENS)
        else:
            ours[name] = generator.standard_normal(shape).astype(np.float32)
    if "token_type_ids" in ours and not any("type" in name.lower() for name in graph.inputs):
        ours["token_type_ids"][:] = 0  # what the file has in their place
    for name in graph.inputs:
        theirs[name] = _input(graph, name, ours)
    result = _reference(graph, theirs)
    offsets = [0, 2] if any(node.op == "positions" for node in net.nodes) else [0]
    best = float("inf")
    for causal in (False, True):
        for offset in offsets:
            for node in net.nodes:
                if node.op == "attention":
                    node.attributes["causal"] = causal
                elif node.op == "positions":
                    node.attributes["offset"] = offset
            found = evaluate(net, ours)
            if found.size == result.size:
                error = np.abs(found.reshape(-1) - result.reshape(-1)).max() / max(
                    np.abs(result).max(), 1e-30
                )
                if error <= _TOLERANCE:
                    return
                best = min(best, float(error))
    raise ConvertError(
        graph.path,
        f"{found_as}, but compute something else (off by {best:.2g} of the largest output)",
    )


def _input(graph: OnnxGraph, name: str, ours: dict[str, np.ndarray]) -> np.ndarray:
    lower = name.lower()
    if name in ours and ours[name].ndim == 1:
        return ours[name][None]
    if "mask" in lower:
        kind = next(v.type.tensor_type.elem_type for v in graph.model.graph.input if v.name == name)
        return np.ones((1, _TOKENS), helper.tensor_dtype_to_np_dtype(kind))
    if "position" in lower:
        return np.arange(_TOKENS)[None]
    if "type" in lower:
        return np.zeros((1, _TOKENS), np.int64)
    if "picture" in ours:
        return ours["picture"][None]
    if "input_ids" in ours:
        return ours["input_ids"][None]
    raise ConvertError(
        graph.path, f"input '{name}': neither tokens, nor a mask, nor positions, nor pictures"
    )


def _to_compute(graph: OnnxGraph) -> Any:
    """The nodes in order, in which pairs of QuantizeLinear and DequantizeLinear on activations pass
    their input through."""
    copy: Any = onnx.ModelProto()
    copy.CopyFrom(graph.model)
    place = {output: index for index, op in enumerate(graph.ops) for output in op.outputs}
    ordered = sorted(copy.graph.node, key=lambda node: place.get(node.output[0], -1))
    del copy.graph.node[:]
    copy.graph.node.extend(ordered)
    constants = {tensor.name for tensor in copy.graph.initializer}
    quantised = {n.output[0]: n.input[0] for n in copy.graph.node
                 if n.op_type == "QuantizeLinear" and n.input[0] not in constants}  # fmt: skip
    for node in copy.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in quantised:
            source = quantised[node.input[0]]
            node.op_type = "Identity"
            del node.input[:], node.attribute[:]
            node.input.append(source)
    return copy


def _reference(graph: OnnxGraph, inputs: dict[str, np.ndarray]) -> np.ndarray:
    before: Any = resource.getrlimit(resource.RLIMIT_AS)
    size = graph.path.stat().st_size
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + 6 * size + _ROOM
    if before[1] != resource.RLIM_INFINITY:
        limit = min(limit, before[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        model = _to_compute(graph)
        onnx.load_external_data_for_model(model, str(graph.path.parent))
        results: Any = ReferenceEvaluator(model).run([graph.outputs[0]], inputs)
        return np.asarray(results[0], np.float64)
    except (KeyboardInterrupt, SystemExit):
        raise
    except MemoryError:
        raise ConvertError(
            graph.path, "computing it takes more memory than such a network needs"
        ) from None
    except Exception as error:  # whatever an operator of the library raises on a wrong graph
        raise ConvertError(
            graph.path, f"cannot be computed: {type(error).__name__}: {error}"
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
