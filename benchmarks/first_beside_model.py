"""What the analytical model's tilings would gain over the loops that the rules choose, by estimate.

For some kernels the first schedule's estimate, the time that mapping takes, the time to find the
tilings, and the lowest estimate of any of them with the same register block.  Nothing is run:
``python benchmarks/first_beside_model.py [HW]``.
"""

import sys
from time import process_time

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.choose import choose
from isamap.mapping.find import enumerate_statement
from isamap.mapping.fragments.produce import producers_of
from isamap.mapping.needles.needles import needles
from isamap.pipeline.source import load_hardware
from isamap.schedule.space import space
from isamap.text.load import parse_module
from isamap_search.objective import Model

SIZES = (
    (1760, 128, 1760),
    (5124, 700, 2048),
    (2048, 2048, 2048),
    (35, 700, 2560),
    (7680, 32, 2560),
)
TYPES = {"f32": ("f32", "f32", "f32"), "bf16": ("bf16", "bf16", "f32"), "u8": ("u8", "s8", "s32")}


def gemm(m: int, n: int, k: int, kind: str) -> str:
    """Return a matrix product with constant weights."""
    first, second, result = TYPES[kind]
    return f"""kernel mm(M = {m}, N = {n}, K = {k}) {{
      in A : {first}[M, K] const B : {second}[K, N] out Y : {result}[M, N]
      Y[i, j] += {result}(A[i, l]) * {result}(B[l, j]) }}"""


def conv(rows: int, c: int, k: int) -> str:
    """Return a 3x3 convolution."""
    return f"""kernel conv(H = {rows}, C = {c}, K = {k}) {{
      in X : f32[H, H, C] pad 0 const F : f32[3, 3, C, K] out Y : f32[H, H, K]
      Y[h, w, o] += X[h + r - 1, w + s - 1, c] * F[r, s, c, o] }}"""


def depthwise(rows: int, c: int) -> str:
    """Return a depthwise 3x3 convolution."""
    return f"""kernel dw(H = {rows}, C = {c}) {{
      in X : f32[H, H, C] pad 0 const F : f32[3, 3, C] out Y : f32[H, H, C]
      Y[h, w, c] += X[h + r - 1, w + s - 1, c] * F[r, s, c] }}"""


TEXTS = {
    **{f"{t} {m}x{n}x{k}": gemm(m, n, k, t) for t in TYPES for m, n, k in SIZES},
    "3x3, K64 C64 56x56": conv(56, 64, 64),
    "3x3, K512 C512 7x7": conv(7, 512, 512),
    "depthwise C128 56x56": depthwise(56, 128),
    "depthwise C512 14x14": depthwise(14, 512),
}


def row(kernel: Kernel, hardware: Accelerator) -> list[str]:
    """Return the cells of a kernel."""
    begun = process_time()
    bound = bind_extents(kernel)
    found = [enumerate_statement(bound, 0, needles(hardware))]
    choice = choose(kernel, hardware, found)
    mapped, begun = process_time() - begun, process_time()
    choices = space(hardware, bound, choice.starts, producers_of(hardware), like=choice.schedule)
    suggested = choices.suggested
    tiled = process_time() - begun
    model = Model(kernel, hardware, choices, {})
    made = [model.candidate(model.point(own)) for own in suggested if not own.get("0.block")]
    least = min((own.cycles for own in made if own), default=choice.estimate.cycles)
    ratio = least / choice.estimate.cycles
    return [f"{choice.estimate.cycles:.4g}", choice.estimate.bound_by, f"{ratio:.3f}"] + [
        f"{seconds:.2f}" for seconds in (mapped, tiled)
    ]


def main() -> None:
    """Print a table."""
    hardware = load_hardware(sys.argv[1] if len(sys.argv) > 1 else "x86_avx512")
    print("| kernel | first, cycles | bound by | best tiling / first | mapping s | tilings s |")
    print("|---|---|---|---|---|---|")
    for name, text in TEXTS.items():
        cells = row(parse_module(text, name).kernels[0], hardware)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
