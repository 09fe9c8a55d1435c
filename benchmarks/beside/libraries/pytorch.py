"""PyTorch on the CPU: oneDNN, weights as they lie or packed ahead, MKL, ATen's own kernels."""

from collections.abc import Callable, Iterator

import torch
from torch.nn import functional

from beside import inputs
from beside.cases import Case, element_kind, side
from beside.inputs import Array
from beside.way import Way

VERSION = f"torch {torch.__version__}"

DNN, INT8, MKL = torch.ops.mkldnn, torch.ops.onednn, torch.ops.mkl
LAST = torch.channels_last

torch.set_grad_enabled(False)


def ways(case: Case, threads: int) -> Iterator[Way]:
    """The functions that a user calls, and those that ``torch.compile`` puts in their place."""
    torch.set_num_threads(threads)
    kind = case["family"].partition("_")[0]
    makers: dict[str, Callable[[Case], Iterator[Way]]] = {
        "gemm": _gemm,
        "linear": _linear,
        "conv": _convolution,
        "conv3x3": _convolution,
        "pw": _convolution,
        "dw": _convolution,
        "dsblock": _block,
        "softmax": _softmax,
        "layernorm": _layer_norm,
        "silu": _silu,
        "residual": _residual,
        "chain": _chain,
    }
    if kind in makers:
        yield from makers[kind](case)


def _way(name: str, compute: Callable[[], torch.Tensor]) -> Way:
    """Return a way whose result is a new tensor in each call, as in torch's programs."""
    last: list[torch.Tensor] = [compute()]

    def run() -> None:
        last[0] = compute()

    def answer() -> Array:
        found = last[0].to_dense() if last[0].is_mkldnn else last[0]
        found = found.float() if found.dtype == torch.bfloat16 else found
        return found.contiguous().numpy()

    return Way(name, run, answer)


def _typed(case: Case, *arrays: Array) -> list[torch.Tensor]:
    tensors = [torch.from_numpy(a) for a in arrays]
    return [t.bfloat16() for t in tensors] if element_kind(case) == "bf16" else tensors


def _gemm(case: Case) -> Iterator[Way]:
    a, b = _typed(case, *inputs.gemm(case))
    if element_kind(case) == "u8s8":
        whole = torch.empty(case["m"], case["n"], dtype=torch.int32)
        yield _way("int_mm", lambda: torch._int_mm(a, b, out=whole))
        return
    out = torch.empty(case["m"], case["n"], dtype=a.dtype)
    yield _way("mm", lambda: torch.mm(a, b, out=out))
    if element_kind(case) == "f32":  # mm asks MKL
        yield _way(
            "oneDNN",
            lambda: DNN._linear_pointwise(a, b.t(), None, "none", [], ""),
        )


def _linear(case: Case) -> Iterator[Way]:
    x, w = _typed(case, *inputs.linear(case))
    rows = x.shape[0]
    if element_kind(case) == "u8s8":
        scale, zero = torch.ones(w.shape[0]), torch.zeros(w.shape[0], dtype=torch.int64)
        bytes_ = INT8.qlinear_prepack(w, list(x.shape))
        rest = (None, 1.0, 0, torch.float32, "none", [], "")
        yield _way("qlinear", lambda: INT8.qlinear_pointwise(x, 1.0, 0, bytes_, scale, zero, *rest))
        return
    packed = DNN._reorder_linear_weight(w, rows)
    yield _way("oneDNN packed", lambda: DNN._linear_pointwise(x, packed, None, "none", [], ""))
    yield _way("linear", lambda: functional.linear(x, w))
    if element_kind(case) == "f32":
        ahead = MKL._mkl_reorder_linear_weight(w, rows)
        yield _way("MKL packed", lambda: MKL._mkl_linear(x, ahead, w, None, rows))


def _convolution(case: Case) -> Iterator[Way]:
    x, w = _typed(case, *inputs.conv(case))
    s, p, one, g = [case["s"]] * 2, [case["p"]] * 2, [1, 1], case["g"]
    last = x.contiguous(memory_format=LAST)
    if element_kind(case) == "u8s8":
        scale, zero = torch.ones(case["co"]), torch.zeros(case["co"], dtype=torch.int64)
        bytes_ = INT8.qconv_prepack(w, scale, 1.0, 0, s, p, one, g, list(x.shape))
        rest = (None, s, p, one, g, 256.0, 0, torch.uint8, "relu", [], "")
        yield _way(
            "qconv", lambda: INT8.qconv2d_pointwise(last, 1.0, 0, bytes_, scale, zero, *rest)
        )
        return
    packed = DNN._reorder_convolution_weight(w, p, s, one, g, list(x.shape))
    yield _way(
        "oneDNN channels last",
        lambda: DNN._convolution_pointwise(last, packed, None, p, s, one, g, "none", [], ""),
    )
    # Activations in the layout that oneDNN likes best, which only its own tensors can have.
    ahead = torch._C._nn.mkldnn_reorder_conv2d_weight(w.to_mkldnn(), p, s, one, g, list(x.shape))
    blocked = x.to_mkldnn()
    yield _way("oneDNN blocked", lambda: torch.conv2d(blocked, ahead, None, s, p, one, g))


def _block(case: Case) -> Iterator[Way]:
    x, wd, bd, wp, bp = (torch.from_numpy(a) for a in inputs.dsblock(case))
    s, one, none, ci, out = [case["s"]] * 2, [1, 1], [0, 0], case["ci"], side(case)
    first = DNN._reorder_convolution_weight(wd, one, s, one, ci, list(x.shape))
    second = DNN._reorder_convolution_weight(wp, none, one, one, 1, [1, ci, out, out])
    image = x.contiguous(memory_format=LAST)

    def compute() -> torch.Tensor:
        inner = DNN._convolution_pointwise(image, first, bd, one, s, one, ci, "relu", [], "")
        return DNN._convolution_pointwise(inner, second, bp, none, one, one, 1, "relu", [], "")

    yield _way("oneDNN channels last", compute)


def _softmax(case: Case) -> Iterator[Way]:
    x = torch.from_numpy(inputs.rows(case))
    out = torch.empty_like(x)
    yield _way("softmax", lambda: torch.softmax(x, -1, out=out))


def _layer_norm(case: Case) -> Iterator[Way]:
    x, width = torch.from_numpy(inputs.rows(case)), case["cols"]
    scale, offset = torch.ones(width), torch.zeros(width)
    yield _way("layer_norm", lambda: functional.layer_norm(x, (width,), scale, offset, 1e-5))


def _silu(case: Case) -> Iterator[Way]:
    x, b = (torch.from_numpy(a) for a in inputs.biased(case))
    out = torch.empty_like(x)
    yield _way("in place", lambda: functional.silu(torch.add(x, b, out=out), inplace=True))


def _residual(case: Case) -> Iterator[Way]:
    x, z = (torch.from_numpy(a) for a in inputs.two(case))
    out = torch.empty_like(x)
    yield _way("in place", lambda: torch.add(x, z, out=out).mul_(0.5).relu_())


def _chain(case: Case) -> Iterator[Way]:
    x, b = (torch.from_numpy(a) for a in inputs.biased(case))
    a, out = torch.full_like(b, 1.5), torch.empty_like(x)
    yield _way("in place", lambda: torch.addcmul(b, x, a, out=out).relu_().square_())
