"""The cases of the side-by-side benchmark as isamap text, in the layouts that may suit them."""

from collections.abc import Callable

from peer_cases.convolutions import block, convolution, distributing
from peer_cases.elements import chain, residual, silu
from peer_cases.matrices import gemm, linear
from peer_cases.problem import Case, Problem
from peer_cases.rows import attention, layer_norm, softmax

FAMILIES: dict[str, Callable[[Case, str], list[Problem]]] = {
    "gemm": gemm,
    "linear": linear,
    "conv": convolution,
    "conv3x3": distributing,
    "dw": convolution,
    "pw": convolution,
    "dsblock": block,
    "softmax": softmax,
    "layernorm": layer_norm,
    "attention": attention,
    "silu": silu,
    "residual": residual,
    "chain": chain,
}


def problems(case: Case) -> list[Problem]:
    """Return the ways to compute a case; none for a family that there is no kernel for.

    A case is a dict with its family (``gemm_f32``, ``conv_u8s8``) and its sizes.
    """
    family, _, kind = case["family"].partition("_")
    make = FAMILIES.get(family)
    return [] if make is None else make(case, kind)
