"""oneDNN, called as programs in C call it: layouts of its own choice, constants laid out ahead."""

from collections.abc import Callable, Iterator, Mapping
from ctypes import c_char, c_float, c_int8, c_int64, c_uint8
from functools import partial

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from beside import inputs
from beside.cases import Case, element_kind, side
from beside.inputs import Array
from beside.libraries import onednn_api as api
from beside.libraries.onednn_api import (
    BIAS,
    DST,
    ENGINE,
    INFERENCE,
    SCALES,
    SRC,
    SRC_1,
    WEIGHTS,
    Attributes,
    Handle,
    Primitive,
    chosen,
    dims,
    strided,
)
from beside.places import CONSTANT, INPUT, RESULT, at, copied, room
from beside.way import Way

VERSION = f"oneDNN {api.version()}"

LAST = (0, 2, 3, 1)
"""The axes of an image, channels last."""

METHODS = {api.DIRECT: "direct", api.WINOGRAD: "winograd", api.AUTO: "auto"}

F32 = np.dtype(np.float32)


def ways(case: Case, threads: int) -> Iterator[Way]:
    """One for each layout, method and interface; after one that is refused comes the next."""
    return map(lambda make: make(), _makers(case))


def _makers(case: Case) -> list[Callable[[], Way]]:
    kind = case["family"].partition("_")[0]
    match kind:
        case "gemm":
            direct = {"f32": [_sgemm], "u8s8": [_gemm_of_bytes]}.get(element_kind(case), [])
            return [partial(make, case) for make in (_matmul, *direct)]
        case "linear":
            plain, packed = partial(_linear, case, False), partial(_linear, case, True)
            return [packed, plain, partial(_inner_product, case)]
        case "conv" | "conv3x3" | "pw" | "dw":
            methods = METHODS if kind == "conv3x3" else (api.DIRECT,)
            return [partial(_convolution, case, m, last) for m in methods for last in (True, False)]
        case "dsblock":
            return [partial(_block, case, last) for last in (True, False)]
        case "softmax" | "layernorm":
            return [partial(_softmax if kind == "softmax" else _layer_norm, case)]
        case "silu" | "residual" | "chain":
            return [partial(_elements, case)]
    return []


def _typed(case: Case, *arrays: Array) -> list[Array]:
    bf16 = element_kind(case) == "bf16"
    return [a.astype(ml_dtypes.bfloat16) if bf16 else a for a in arrays]


def _way(
    name: str,
    primitive: Primitive,
    given: Mapping[int, Array],
    shape: tuple[int, ...],
    dtype: DTypeLike,
) -> Way:
    """Return the way that executes a primitive on operands that it takes as it likes them."""
    operands = primitive.operands(given)
    return Way(name, primitive.call(operands), lambda: operands[DST].array(shape, dtype))


def _matmul(case: Case) -> Way:
    a, b = _typed(case, *inputs.gemm(case))
    return _product("matmul", a, b, strided(b.shape, b.dtype))


def _linear(case: Case, packed: bool) -> Way:
    x, w = _typed(case, *inputs.linear(case))
    shape = w.T.shape
    layout = chosen(shape, w.dtype) if packed else strided(shape, w.dtype, (1, 0))
    return _product("matmul packed" if packed else "matmul", x, w.T, layout)


def _product(name: str, a: Array, b: Array, layout: Handle) -> Way:
    out, dtype = (a.shape[0], b.shape[1]), _summed(a)
    words = strided(a.shape, a.dtype), layout, None, strided(out, dtype)
    return _way(name, Primitive("matmul", ENGINE, *words), {SRC: a, WEIGHTS: b}, out, dtype)


def _inner_product(case: Case) -> Way:
    x, w = _typed(case, *inputs.linear(case))
    out, dtype = (x.shape[0], w.shape[0]), _summed(x)
    words = strided(x.shape, x.dtype), chosen(w.shape, w.dtype), None, strided(out, dtype)
    primitive = Primitive("inner_product_forward", ENGINE, INFERENCE, *words)
    return _way("inner product packed", primitive, {SRC: x, WEIGHTS: w}, out, dtype)


def _summed(array: Array) -> "np.dtype[np.generic]":
    """Return the type of sums: that of the elements, s32 of bytes."""
    return np.dtype(np.int32) if array.dtype == np.uint8 else array.dtype


def _sgemm(case: Case) -> Way:
    a, b, out = _placed(*inputs.gemm(case), np.float32)
    sizes = [c_int64(case[key]) for key in "mnk"]
    _, n, k = sizes
    words = (_N, _N, *sizes, c_float(1), at(a), k, at(b), n, c_float(0), at(out), n)
    return _call("sgemm", words, out)


def _gemm_of_bytes(case: Case) -> Way:
    a, b, out = _placed(*inputs.gemm(case), np.int32)
    sizes = [c_int64(case[key]) for key in "mnk"]
    _, n, k = sizes
    nothing = np.zeros(1, np.int32)  # to be added to every sum
    left, right = (at(a), k, c_uint8(0)), (at(b), n, c_int8(0))
    behind = (c_float(0), at(out), n, at(nothing))
    words = (_N, _N, c_char(b"F"), *sizes, c_float(1), *left, *right, *behind)
    return _call("gemm_u8s8s32", words, out)


_N = c_char(b"N")


def _placed(a: Array, b: Array, dtype: DTypeLike) -> tuple[Array, Array, Array]:
    out = room((a.shape[0], b.shape[1]), dtype, RESULT)
    return copied(a, INPUT), copied(b, CONSTANT), out


def _call(name: str, words: tuple[object, ...], out: Array) -> Way:
    """Return a call of one of the library's functions."""
    api.checked(name, *words)
    return Way(name, partial(getattr(api.LIBRARY, f"dnnl_{name}"), *words), lambda: out)


def _image(array_shape: tuple[int, ...], dtype: DTypeLike, last: bool) -> Handle:
    return strided(array_shape, dtype, LAST) if last else chosen(array_shape, dtype)


def _convolution(case: Case, method: int, last: bool) -> Way:
    x, w = _typed(case, *inputs.conv(case))
    s, p, g = case["s"], case["p"], case["g"]
    if g > 1:
        w = w.reshape(g, w.shape[0] // g, *w.shape[1:])
    out = (1, case["co"], side(case), side(case))
    scaled = element_kind(case) == "u8s8"
    layouts = _image(x.shape, x.dtype, last), chosen(w.shape, w.dtype), None
    primitive = Primitive(
        "convolution_forward",
        *(ENGINE, INFERENCE, method, *layouts, _image(out, x.dtype, last)),
        *(dims(s, s), dims(0, 0), dims(p, p), dims(p, p)),
        attributes=Attributes().scaled(DST) if scaled else None,
    )
    given = {SRC: x, WEIGHTS: w} | ({SCALES | DST: np.full(1, 256, F32)} if scaled else {})
    name = f"{METHODS[method]}, {'channels last' if last else 'its own layout'}"
    return _way(name, primitive, given, out, x.dtype)


def _block(case: Case, last: bool) -> Way:
    x, wd, bd, wp, bp = inputs.dsblock(case)
    ci, co, s, size = case["ci"], case["co"], case["s"], side(case)
    between, out = (1, ci, size, size), (1, co, size, size)
    wd = wd.reshape(ci, 1, 1, 3, 3)
    one, none = dims(1, 1), dims(0, 0)
    how = ENGINE, INFERENCE, api.DIRECT
    first = Primitive(
        "convolution_forward",
        *(*how, _image(x.shape, F32, last), chosen(wd.shape, F32), strided(bd.shape, F32)),
        *(_image(between, F32, last), dims(s, s), none, one, one),
        attributes=Attributes().then(api.RELU),
    )
    second = Primitive(
        "convolution_forward",
        *(*how, first.layout(DST), chosen(wp.shape, F32), strided(bp.shape, F32)),
        *(_image(out, F32, last), one, none, none, none),
        attributes=Attributes().then(api.RELU),
    )
    taken = first.operands({SRC: x, WEIGHTS: wd, BIAS: bd})
    found = second.operands({WEIGHTS: wp, BIAS: bp}) | {SRC: taken[DST]}
    depthwise, pointwise = first.call(taken), second.call(found)

    def run() -> None:
        depthwise()
        pointwise()

    name = "channels last" if last else "its own layout"
    return Way(name, run, lambda: found[DST].array(out, F32))


def _softmax(case: Case) -> Way:
    x = inputs.rows(case)
    rows = strided(x.shape, F32)
    words = ENGINE, INFERENCE, api.ACCURATE, rows, rows, 1
    return _way("softmax", Primitive("softmax_forward", *words), {SRC: x}, x.shape, F32)


def _layer_norm(case: Case) -> Way:
    x, width = inputs.rows(case), case["cols"]
    rows = strided(x.shape, F32)
    words = ENGINE, INFERENCE, rows, rows, None, c_float(1e-5), api.SCALED_AND_SHIFTED
    primitive = Primitive("layer_normalization_forward", *words)
    given = {SRC: x, api.SCALE: np.ones(width, F32), api.SHIFT: np.zeros(width, F32)}
    return _way("layer normalization", primitive, given, x.shape, F32)


def _elements(case: Case) -> Way:
    """One sum of two operands, the rest behind it."""
    family, scales = case["family"].partition("_")[0], {}
    x, other = inputs.two(case) if family == "residual" else inputs.biased(case)
    other = other.reshape(-1, x.shape[1])
    after = Attributes()
    if family == "silu":
        after.then(api.SWISH, 1)
    elif family == "residual":
        after.then(api.LINEAR, 0.5).then(api.RELU)
    else:
        after.scaled(SRC).then(api.RELU).then(api.SQUARE)
        scales = {SCALES | SRC: np.full(1, 1.5, F32)}
    words = strided(x.shape, F32), strided(other.shape, F32), strided(x.shape, F32)
    primitive = Primitive("binary", ENGINE, api.ADD, *words, attributes=after)
    return _way("sum", primitive, {SRC: x, SRC_1: other, **scales}, x.shape, F32)
