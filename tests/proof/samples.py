"""Small kernels on shipped machines, lowered; and the same with one thing wrong."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import Guard, Loop, LoweredKernel, Node, Scope
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.text.load import parse_module

MATMUL = """kernel mm({sizes}) {{
  in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}}"""
FIXED = MATMUL.format(sizes="M = 21, N = 37, K = 19")
SYMBOLIC = MATMUL.format(sizes="M, N, K")
BYTES = """kernel bytes(N = 40, K = 24) {
  in A : s8[K]  in B : s8[K, N]  out C : s32[N]
  C[n] += s32(A[k]) * s32(B[k, n])
}"""
PIXELS = """kernel pixels(H, W, K = {channels}) {{
  in X : f32[H, W, 2] pad 0  const F : f32[3, 3, 2, K]  const B : f32[K]
  local T : f32[H, W, K]  out Y : f32[H, W, K]
  T[h, w, k] += X[h + r - 1, w + s - 1, c] * F[r, s, c, k]
  Y[h, w, k] = max(T[h, w, k] + B[k], 0)
}}"""
POOL = (
    "kernel pool(N = 50) { in X : f32[N + 2]  out Y : f32[N]  for r in 0..3  Y[i] max= X[i + r] }"
)
SAME = """kernel same(H, W) {
  in X : f32[H, W] pad 0  in D : f32[3, 3]  out Y : f32[H, W]
  Y[h, w] += X[h + r - 1, w + s - 1] * D[r, s]
}"""


@lru_cache
def machine(name: str) -> Accelerator:
    return load_hardware(name)


@lru_cache
def kernel(text: str) -> Kernel:
    (found,) = parse_module(text, "k.ir").kernels
    return found


@lru_cache
def mapped(text: str, hardware: str, threads: int = 1) -> Result:
    return map_kernel(kernel(text), machine(hardware), Options(threads=threads))


def changed(lowered: LoweredKernel, change: Callable[[Node], Node | None]) -> LoweredKernel:
    """Return a lowered kernel with the first node changed for which ``change`` gives another."""
    done = False

    def visit(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(visit_one(node) for node in nodes)

    def visit_one(node: Node) -> Node:
        nonlocal done
        if done:
            return node
        if (other := change(node)) is not None:
            done = True
            return other
        match node:
            case Loop() | Scope():
                return replace(node, body=visit(node.body))
            case Guard():
                return replace(node, body=visit(node.body), otherwise=visit(node.otherwise))
            case _:
                return node

    result = replace(lowered, body=visit(lowered.body))
    assert done, "nothing was changed"
    return result
