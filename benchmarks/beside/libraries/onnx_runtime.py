"""ONNX Runtime on the CPU: a graph of one case, its inputs and outputs bound ahead."""

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from beside import inputs
from beside.cases import Case, element_kind
from beside.inputs import Array
from beside.way import Way

VERSION = f"onnxruntime {onnxruntime.__version__}"

OPSET = 17


def ways(case: Case, threads: int) -> Iterator[Way]:
    """One graph each; there are no kernels for bf16."""
    if element_kind(case) == "bf16":
        return
    bytes_ = element_kind(case) == "u8s8"
    product = "MatMulInteger" if bytes_ else "MatMul"
    match case["family"].partition("_")[0]:
        case "gemm":
            a, b = inputs.gemm(case)
            yield _graph([_node(product, "a b")], {"a": a, "b": b}, {}, threads)
        case "linear":
            x, w = inputs.linear(case)
            ahead = {"w": np.ascontiguousarray(w.T)}
            yield _graph([_node(product, "x w")], {"x": x}, ahead, threads)
        case "conv" | "conv3x3" | "pw" | "dw":
            x, w = inputs.conv(case)
            place = {"strides": [case["s"]] * 2, "pads": [case["p"]] * 4, "group": case["g"]}
            if not bytes_:
                yield _graph([_node("Conv", "x w", **place)], {"x": x}, {"w": w}, threads)
                return
            one, zero = np.float32(1), np.uint8(0)
            ahead = {"w": w, "one": one, "u": zero, "s": np.int8(0), "out": np.float32(256)}
            node = _node("QLinearConv", "x one u w one s out u", **place)
            yield _graph([node], {"x": x}, ahead, threads)
        case "dsblock":
            x, *weights = inputs.dsblock(case)
            ahead = dict(zip(("wd", "bd", "wp", "bp"), weights, strict=True))
            place = {"strides": [case["s"]] * 2, "pads": [1] * 4, "group": case["ci"]}
            nodes = [
                _node("Conv", "x wd bd", "s", **place),
                _node("Relu", "s", "t"),
                _node("Conv", "t wp bp", "u"),
                _node("Relu", "u"),
            ]
            yield _graph(nodes, {"x": x}, ahead, threads)
        case "softmax":
            x = inputs.rows(case)
            yield _graph([_node("Softmax", "x", axis=-1)], {"x": x}, {}, threads)
        case "layernorm":
            x, width = inputs.rows(case), case["cols"]
            ahead = {"g": np.ones(width, np.float32), "b": np.zeros(width, np.float32)}
            node = _node("LayerNormalization", "x g b", axis=-1, epsilon=1e-5)
            yield _graph([node], {"x": x}, ahead, threads)

        case "silu":
            x, b = inputs.biased(case)
            nodes = [
                _node("Add", "x b", "t"),
                _node("Sigmoid", "t", "s"),
                _node("Mul", "t s"),
            ]
            yield _graph(nodes, {"x": x}, {"b": b}, threads)
        case "residual":
            x, z = inputs.two(case)
            nodes = [_node("Add", "x z", "t"), _node("Mul", "t half", "u"), _node("Relu", "u")]
            yield _graph(nodes, {"x": x, "z": z}, {"half": np.float32(0.5)}, threads)
        case "chain":
            x, b = inputs.biased(case)
            nodes = [
                _node("Mul", "x a", "t"),
                _node("Add", "t b", "u"),
                _node("Relu", "u", "v"),
                _node("Mul", "v v"),
            ]
            yield _graph(nodes, {"x": x}, {"a": np.full_like(b, 1.5), "b": b}, threads)


def _node(name: str, given: str, gives: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(name, given.split(), [gives], **attributes)


def _graph(
    nodes: Sequence[onnx.NodeProto],
    given: Mapping[str, Array],
    ahead: Mapping[str, Array],
    threads: int,
) -> Way:
    """Return a session of these nodes, whose output is ``y``; ``ahead`` are constants."""

    def element(array: Array) -> int:
        return int(helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype))

    constants = [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in ahead.items()]
    takes = [helper.make_tensor_value_info(n, element(a), a.shape) for n, a in given.items()]
    gives = [onnx.ValueInfoProto(name="y")]
    graph = helper.make_graph(nodes, "case", takes, gives, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if threads > 1:  # all but the caller's, each on a core of its own, counted from 1
        own = sorted(os.sched_getaffinity(0))[1:threads]
        options.add_session_config_entry(
            "session.intra_op_thread_affinities", ";".join(str(core + 1) for core in own)
        )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (first,) = session.run(["y"], dict(given))
    out = onnxruntime.OrtValue.ortvalue_from_numpy(first)
    bound = session.io_binding()
    held = {n: onnxruntime.OrtValue.ortvalue_from_numpy(a) for n, a in given.items()}
    for name, value in held.items():
        bound.bind_ortvalue_input(name, value)
    bound.bind_ortvalue_output("y", out)

    def run() -> object:
        session.run_with_iobinding(bound)
        return held  # as long as it runs

    return Way("graph", run, out.numpy)
