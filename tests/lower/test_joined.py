"""Windows of an image that are packed share its rows: each is packed once."""

import random
from dataclasses import replace

import pytest

from isamap.diagnostics import Source
from isamap.ir.box import box
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.mapping.tiles.joined import Join, joins, offset_at
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.reader import parse_schedule
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.schedule.treatment import inputs
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, first_choice, machine

ROWS = """kernel rows {{
  in X : f32[{height}, {width}, 3] pad 0  const W : f32[{r}, {t}, 3, 16]
  out Y : f32[{p}, {q}, 16]
  Y[p, q, k] += X[{down}, {right}, c] * W[r, t, c, k]
}}"""
PLANES = """kernel planes(H = 12) {
  in X : f32[5, H, H] pad 0  const W : f32[16, 5, 3, 3]  out Y : f32[16, H, H]
  Y[k, h, w] += X[c, h + r - 1, w + s - 1] * W[k, c, r, s]
}"""
BYTES = """kernel bytes {
  in X : u8[20, 40, 3] pad 0  const W : s8[5, 5, 3, 16]  local S : s32[10, 20, 16]
  out Y : u8[10, 20, 16]
  S[p, q, k] += s32(X[2*p + r - 2, 2*q + t - 2, c]) * s32(W[r, t, c, k])
  Y[p, q, k] = sat[u8](f32(S[p, q, k]) * 0.015625)
}"""


def parsed(text: str) -> Kernel:
    return bind_extents(parse_module(text).kernels[0])


def access(*indices: Index) -> Access:
    return Access("X", indices, DTYPES["f32"])


def extents(**sizes: int) -> dict[str, Index]:
    return {name: const(size) for name, size in sizes.items()}


def test_variables_of_which_only_a_sum_is_seen_are_joined() -> None:
    sizes = extents(p=10, r=3, c=4)
    row = 2 * var("p") + var("r")
    found = joins(access(row - 1, var("c")), {"p", "r", "c"}, sizes, sizes)
    assert found == (Join("p+r", row, const(21)),)


def test_a_sum_counts_from_nought_in_steps_of_one() -> None:
    sizes = extents(p=10, r=3)
    form = 4 * var("p") - 2 * var("r") + 5
    (found,) = joins(access(form), {"p", "r"}, sizes, sizes)
    low, high = box(found.form, sizes)
    assert low == const(0)
    assert high == found.extent - 1 == const(20)


@pytest.mark.parametrize(
    "indices",
    [
        (var("p") + 5 * var("r"),),  # as many values as pairs, or more
        (var("p") + var("r"), var("r")),  # r is seen alone
        ((var("p") + var("r")) // 2,),
        (var("p") * var("N") + var("r"),),
    ],
)
def test_other_variables_are_not(indices: tuple[Index, ...]) -> None:
    sizes = extents(p=5, r=3, N=7)
    assert joins(access(*indices), {"p", "r"}, sizes, sizes) == ()


def test_a_piece_has_the_sums_of_the_whole() -> None:
    row = 2 * var("p") + var("r")
    whole = extents(p=10, r=3)
    found = joins(access(row), {"p", "r"}, extents(p=1, r=3), whole)
    assert found == (Join("p+r", row, const(3)),)


def test_an_offset_that_is_linear_in_a_sum_is_one_of_the_sum() -> None:
    for factor in (1, -3):
        form = 2 * var("p") - var("r") + 2
        offset = (2 * var("p") - var("r")) * factor + var("c") + 7
        found = offset_at(offset, form, var("y"))
        for p, r in ((0, 0), (4, 1), (2, 2)):
            here = {"p": p, "r": r, "c": 5, "y": 2 * p - r + 2}
            assert found.evaluate(here) == offset.evaluate(here)


def packed(kernel: Kernel, hardware: str, rng: random.Random) -> tuple[Schedule, LoweredKernel]:
    """Return the first choice with inputs packed, before all loops or inside some of them."""
    accelerator = machine(hardware)
    found = first_choice(kernel, accelerator)

    def own(one: StatementSchedule) -> StatementSchedule:
        reads = inputs(one.mapping)
        kinds = tuple(
            "packed" if a.buffer == "X" else kind
            for (_, a), kind in zip(reads, one.operands, strict=True)
        )
        depth = rng.randint(0, len(one.levels))
        inside = tuple(depth if a.buffer == "X" else 0 for _, a in reads)
        return replace(one, operands=kinds, inside=inside, early=(), pitches=())

    first, *rest = found.schedule.statements
    schedule = Schedule((own(first), *rest))
    return schedule, lower(kernel, accelerator, schedule)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_packed_by_rows_is_the_kernel(seed: int) -> None:
    rng = random.Random(seed)
    p, q, r, t = rng.randint(2, 9), rng.randint(2, 20), rng.randint(1, 5), rng.randint(1, 5)
    step, apart = rng.choice([1, 2, 3]), rng.choice([1, 2])
    down = f"{step}*p + {apart}*r - 1" if rng.random() < 0.7 else f"{step}*p - {apart}*r + 3"
    text = ROWS.format(
        height=rng.randint(4, 30),
        width=rng.randint(4, 40),
        p=p,
        q=q,
        r=r,
        t=t,
        down=down,
        right=f"{rng.choice([1, 2])}*q + t - 2",
    )
    kernel = parsed(text)
    schedule, lowered = packed(kernel, "x86_avx512", rng)
    agrees(kernel, lowered, machine("x86_avx512"), seed)
    if seed % 4 == 0:
        evidence = Evidence(kernel, (), kernel, machine("x86_avx512"), schedule, lowered)
        assert certify(evidence).verdict == "proved"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [5, 12])
def test_sizes_may_be_open(seed: int, size: int) -> None:
    kernel = parsed(PLANES)
    _, lowered = packed(kernel, "x86_avx512", random.Random(seed))
    agrees(kernel, lowered, machine("x86_avx512"), seed, {"H": size})


def test_each_pixel_is_packed_once() -> None:
    kernel = parsed(BYTES)
    found = first_choice(kernel, machine("x86_amx"))
    agrees(kernel, found.lowered, machine("x86_amx"), 3)
    own = found.schedule.statements[0]
    kinds = {a.buffer: kind for (_, a), kind in zip(inputs(own.mapping), own.operands, strict=True)}
    assert kinds["X"] == "packed"
    (array,) = (a for a in found.lowered.arrays if a.name.startswith("X_packed"))
    assert array.size == const(23 * 43 * 4)  # four bytes for three channels


# A tail of one row; a symbol, variables and sums that are called alike; a tail of any length.
WRITTEN = {
    "tail": (
        """kernel k { in X : f32[23, 4]  const W : f32[7, 4, 16]  out Y : f32[17, 16]
          Y[p, k] += X[p + r, c] * W[r, c, k] }""",
        "loops p/4, r/1",
        "packed inside 1",
    ),
    "symbol": (
        """kernel k(p_r) { in X : f32[20, p_r]  const W : f32[5, 16]  out Y : f32[16, p_r, 16]
          for r in 0..5
          Y[p, c, k] += X[p + r, c] * W[r, k] }""",
        "",
        "packed",
    ),
    "variables": (
        """kernel k { in X : f32[20, 20, 4]  const W : f32[5, 5, 4, 16]  out Y : f32[10, 10, 16]
          for a_b in 0..5  for b_c in 0..5
          Y[a, c, k] += X[a + b_c, a_b + c, m] * W[b_c, a_b, m, k] }""",
        "",
        "packed",
    ),
    "any length": (
        """kernel k(R) { in X : f32[R + 8, 16]  const W : f32[R, 16]  out Y : f32[8, 16]
          for p in 0..8
          Y[p, k] += X[p + r, k] * W[r, k] }""",
        "loops r/4",
        "packed inside 1",
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", WRITTEN)
def test_written_schedules_pack_sums(name: str, threads: int) -> None:
    text, loops, packed_ = WRITTEN[name]
    clauses = f"instruction vfmadd_f32\n axes i <- k\n {loops}\n operands X {packed_}"
    schedule = parse_schedule(Source("k.schedule", f"schedule k {{\n Y {{\n {clauses}\n }}\n }}"))
    kernel = parsed(text)
    found = map_kernel(kernel, machine("x86_avx512"), Options(schedule=schedule, threads=threads))
    for size in (1, 5, 7, 9) if kernel.symbols else (7,):
        agrees(kernel, found.lowered, machine("x86_avx512"), 5, dict.fromkeys(kernel.symbols, size))
    evidence = Evidence(kernel, (), kernel, machine("x86_avx512"), found.schedule, found.lowered)
    assert certify(evidence).verdict == "proved"
