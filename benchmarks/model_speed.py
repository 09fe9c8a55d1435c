"""How many schedules the analytical model judges a second, and how long its optimum takes.

Run on one core: ``taskset -c 1 env OPENBLAS_NUM_THREADS=1 python benchmarks/model_speed.py``.
Processor time is counted, not the clock, so that others on the machine matter little.
"""

from collections.abc import Sequence
from dataclasses import replace
from time import process_time

import numpy as np

from isamap.model.nest import Machine, Memory, Nest, Operand
from isamap.model.path import Optimum, best, likely, optimum
from isamap.model.sizes import divided, even
from isamap.model.traffic import cycles

# 30 vectors of 64 bytes, L1, L2, L3, of which nine tenths may be used; f32 and 32 products a cycle.
MACHINE = Machine(
    (
        Memory(30 * 64, 128.0),
        Memory(0.9 * (48 << 10), 57.0),
        Memory(0.9 * (1 << 20), 26.0),
        Memory(0.9 * (16 << 20), 9.6),
    ),
    32.0,
)


def gemm(m: int, n: int, k: int) -> Nest:
    """``C[m, n] += A[m, k] * B[k, n]``."""
    a = Operand("A", (((0, 1),), ((2, 1),)), 4)
    b = Operand("B", (((2, 1),), ((1, 1),)), 4)
    return Nest((m, n, k), (a, b, Operand("C", (((0, 1),), ((1, 1),)), 4, written=True)))


def conv(k: int, c: int, rows: int, window: int) -> Nest:
    """``Y[k, p, q] += X[c, p + r, q + s] * W[k, c, r, s]``."""
    x = Operand("X", (((1, 1),), ((2, 1), (4, 1)), ((3, 1), (5, 1))), 4)
    w = Operand("W", (((0, 1),), ((1, 1),), ((4, 1),), ((5, 1),)), 4)
    y = Operand("Y", (((0, 1),), ((2, 1),), ((3, 1),)), 4, written=True)
    return Nest((k, c, rows, rows, window, window), (x, w, y))


LAYERS = {
    "3x3, K64 C64 56x56": conv(64, 64, 56, 3),
    "3x3, K256 C256 14x14": conv(256, 256, 14, 3),
    "3x3, K512 C512 7x7": conv(512, 512, 7, 3),
    "1x1, K64 C256 56x56": conv(64, 256, 56, 1),
    "GEMM 512x512x512": gemm(512, 512, 512),
    "GEMM 1760x128x1760": gemm(1760, 128, 1760),
}


def blocked(nest: Nest, *block: int) -> Nest:
    """Return a nest whose tiles are multiples of a register block."""
    return Nest(nest.extents, nest.operands, block)


ODD = {
    "GEMM 1760x128x1760, block 6x64": blocked(gemm(1760, 128, 1760), 6, 64, 1),
    "GEMM 2048x700x2048, block 6x64": blocked(gemm(2048, 700, 2048), 6, 64, 1),
    "GEMM 1009x1009x1009, block 8x48": blocked(gemm(1009, 1009, 1009), 8, 48, 1),
    "3x3, K64 C64 56x56, block 2x3": blocked(conv(64, 64, 56, 3), 64, 1, 2, 3, 1, 1),
    "3x3, K512 C512 7x7, block 7x1": blocked(conv(512, 512, 7, 3), 64, 1, 1, 7, 1, 1),
}


# What a search asks of the model, too: short stretches and incomplete results cost more.
LATE = replace(
    MACHINE,
    memories=(
        replace(MACHINE.memories[0], results=40.0),
        *(replace(own, start=2.0) for own in MACHINE.memories[1:]),
    ),
)


def laid_out(nest: Nest) -> Nest:
    """Return a nest that knows where its arrays' elements lie."""
    return replace(
        nest,
        operands=tuple(
            replace(own, rows=tuple((group, 64) for group in own.groups[::-1]))
            for own in nest.operands
        ),
    )


def rate(nest: Nest, batch: int, kind: type[np.floating], seconds: float = 1.0) -> float:
    """Return schedules a second: random chains of tiles that divide the extents."""
    generator = np.random.default_rng(0)
    tiles = []
    outer = [np.full(batch, extent) for extent in nest.extents]
    for _ in LATE.memories:
        outer = [_divisors(own, generator) for own in outer]
        tiles.insert(0, [own.astype(kind) for own in outer])
    classes = [generator.integers(0, len(nest.operands), batch) for _ in LATE.memories]
    count, start = 0, process_time()
    while process_time() - start < seconds:
        cycles(nest, LATE, tiles, classes)
        count += batch
    return count / (process_time() - start)


def _divisors(numbers: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return a random divisor of each number."""
    found = np.empty_like(numbers)
    for number in np.unique(numbers):
        own = [d for d in range(1, number + 1) if number % d == 0]
        at = numbers == number
        found[at] = generator.choice(own, at.sum())
    return found


def main() -> None:
    """Print three tables."""
    nest = laid_out(LAYERS["3x3, K64 C64 56x56"])
    print("schedules judged a second (six dimensions, four memories, three operands)\n")
    print("| batch | float64 | float32 |\n|---|---|---|")
    for batch in (256, 1024, 4096, 16384):
        exact, fast = (rate(nest, batch, kind) / 1e6 for kind in (np.float64, np.float32))
        print(f"| {batch} | {exact:.2f}e6 | {fast:.2f}e6 |")
    print("\nthe best chain of divisors, proved\n")
    print("| layer | bound | optimum | gap | labels | seconds |\n|---|---|---|---|---|---|")
    for name, layer in LAYERS.items():
        start = process_time()
        found = optimum(layer, MACHINE)
        taken = process_time() - start
        assert found is not None
        gap = found.cycles / found.lowest - 1
        print(
            f"| {name} | {found.lowest:.0f} | {found.cycles:.0f} | {gap:.1%} | "
            f"{found.labels} | {taken:.2f} |"
        )
    print("\nsizes that do not divide: 1500 combinations, as a search takes, beside 20000\n")
    print("| nest | divisors | 1500 sizes | s | 20000 sizes | s | likely | s |")
    print("|---|---|---|---|---|---|---|---|")
    machine = replace(MACHINE, block=True)
    for name, nest in ODD.items():
        cells = [f"{_least(best(nest, machine, 1, divided(nest))):.0f}"]
        for most in (1500, 20000):
            start = process_time()
            found = best(nest, machine, 1, even(nest, most))
            cells += [f"{_least(found):.0f}", f"{process_time() - start:.2f}"]
        start = process_time()
        found = likely(nest, machine, 24, even(nest, 1500), 32)
        cells += [f"{_least(found):.0f}", f"{process_time() - start:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")


def _least(found: Sequence[Optimum]) -> float:
    return min(own.cycles for own in found)


if __name__ == "__main__":
    main()
