"""Transfers take strides and short tiles as they are; what is left out of the code is missed."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.lower.nodes import Call, Guard, Loop, Node, Scope, Setting
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.sim.lowered import LoweredFault
from isamap.sim.run import simulate
from isamap.text.load import parse_module

ODD = """kernel odd { in A : s8[17, 33]  in B : s8[33, 9]  out C : s32[17, 9]
  C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"""
STRIDED = """kernel strided { in X : s8[9, 19, 32]  const F : s8[3, 3, 32, 16]
  out Y : s32[4, 9, 16]
  Y[p, q, k] += s32(X[2*p + r, 2*q + s, c]) * s32(F[r, s, c, k]) }"""
PADDED = """kernel padded { in X : s8[9, 20, 32] pad 0  const F : s8[3, 3, 32, 16]
  out Y : s32[9, 20, 16]
  Y[p, q, k] += s32(X[p + r - 1, q + s - 1, c]) * s32(F[r, s, c, k]) }"""


def copied(text: str) -> set[str]:
    """Return what the host copies in each call on gemmini, of which the result is checked."""
    (kernel,) = parse_module(text).kernels
    report = make_report(kernel, load_hardware("gemmini"), Options(prove=False))
    assert report.check is not None
    assert report.check.ok
    return {a.name for a in report.result.lowered.arrays if a.role == "local"}


def test_short_tiles_are_filled_with_zero_on_the_way() -> None:
    assert copied(ODD) == set()


def test_a_convolution_with_steps_is_read_where_it_lies() -> None:
    assert copied(STRIDED) == set()


def test_of_a_padded_convolution_the_borders_are_made_once_by_the_host() -> None:
    assert copied(PADDED) == {"X_padded"}


def without(nodes: tuple[Node, ...], gone: Node) -> tuple[Node, ...]:
    """Return nodes without one, which is known by its identity."""
    kept: list[Node] = []
    for node in nodes:
        match node:
            case _ if node is gone:
                continue
            case Loop(body=body) | Scope(body=body):
                kept.append(replace(node, body=without(body, gone)))
            case Guard(_, body, otherwise):
                inside, outside = without(body, gone), without(otherwise, gone)
                kept.append(replace(node, body=inside, otherwise=outside))
            case _:
                kept.append(node)
    return tuple(kept)


def every(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for part in ("body", "otherwise"):
            yield from every(getattr(node, part, ()))


def is_load(node: Node) -> bool:
    return isinstance(node, Call) and node.instruction in ("mvin", "set_acc")


def is_setting(node: Node) -> bool:
    return isinstance(node, Setting)


@pytest.mark.parametrize(
    ("is_left_out", "told"),
    [(is_load, "register .*, which has no value"), (is_setting, "the state .* has")],
)
def test_each_transfer_and_each_setting_that_is_left_out_is_missed(
    is_left_out: Callable[[Node], bool], told: str
) -> None:
    (kernel,) = parse_module(ODD).kernels
    result = map_kernel(kernel, load_hardware("gemmini"), Options(prove=False))
    arrays = random_inputs(result.kernel, {}, 1)
    lowered = result.lowered
    gone = [node for node in every(lowered.body) if is_left_out(node)]
    assert len(gone) > 2
    for node in gone:
        short = replace(lowered, body=without(lowered.body, node))
        with pytest.raises(LoweredFault, match=told):
            simulate(short, result.accelerator, arrays, kernel=result.mapped)
