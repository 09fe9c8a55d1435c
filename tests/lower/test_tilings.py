"""The model's tilings are schedules that can be lowered and compute what the kernel means."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import ScheduleError
from isamap.hw.accelerator import Accelerator, Storage
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import Producers
from isamap.schedule.schedule import Level, Schedule, StatementSchedule
from isamap.schedule.shape import read_shape
from isamap.schedule.space import Space, space
from isamap.schedule.tilings import KEPT, levels_of, tilings
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, first_choice, machine
from tests.profiles import examples


@cache
def small(name: str) -> Accelerator:
    """A machine with caches so small that little kernels need tiles for them."""
    real = machine(name)
    sizes = iter((1 << 10, 4 << 10, 16 << 10))

    def shrunk(storage: Storage) -> Storage:
        return replace(storage, size=next(sizes)) if storage.kind == "cache" else storage

    return replace(real, storages=tuple(map(shrunk, real.storages)))


GEMM = """kernel mm {{ in A : f32[{m}, {k}] in B : f32[{k}, {n}] out C : f32[{m}, {n}]
    C[i, j] += A[i, l] * B[l, j] }}"""
CONV = """kernel conv {{ in X : f32[{m}, {m}, {k}] pad 0 const F : f32[3, 3, {k}, {n}]
    out Y : f32[{m}, {m}, {n}] Y[h, w, o] += X[h + r - 1, w + s - 1, c] * F[r, s, c, o] }}"""
DEPTHWISE = """kernel dw {{ in X : f32[{m}, {n}, {k}] pad 0 const F : f32[3, 3, {k}]
    out Y : f32[{m}, {n}, {k}] Y[h, w, c] += X[h + r - 1, w + s - 1, c] * F[r, s, c] }}"""


def _kernel(text: str, m: int, n: int, k: int) -> Kernel:
    return parse_module(text.format(m=m, n=n, k=k), "text").kernels[0]


def _steps_divide(levels: list[Level]) -> bool:
    steps: dict[str, int] = {}
    for level in levels:
        outer = steps.get(level.variable)
        if outer is not None and (outer % level.step or outer <= level.step):
            return False
        steps[level.variable] = level.step
    return True


@examples(0.1)
@given(
    st.sampled_from([(GEMM, 23, 37), (CONV, 4, 9), (DEPTHWISE, 6, 9)]),
    st.sampled_from(["portable_c", "x86_avx2", "x86_avx512"]),
    st.data(),
)
def test_tilings_compute_the_kernel(
    case: tuple[str, int, int], hardware: str, data: st.DataObject
) -> None:
    text, *most = case
    m, n, k = (data.draw(st.integers(1, limit)) for limit in (*most, 13))
    kernel, accelerator = _kernel(text, m, n, k), small(hardware)
    start = first_choice(kernel, accelerator).schedule.statements[0]
    shape = read_shape(start.mapping)
    block = {v: data.draw(st.integers(1, 3)) for v in shape.extents}
    found = tilings(shape, bind_extents(kernel), accelerator, block)
    assert len(found) <= KEPT
    for tiling in found[:1]:
        reverse = data.draw(st.booleans())
        # A tiling is made for one block, and taken for any other.
        other = {v: data.draw(st.integers(1, 3)) for v in shape.extents}
        for own in (block, other):
            levels = levels_of(shape, tiling, own, data.draw(st.sampled_from([1, 2])), reverse)
            assert _steps_divide(levels)
            scheduled = StatementSchedule(start.mapping, tuple(levels), start.operands)
            agrees(kernel, lower(kernel, accelerator, Schedule((scheduled,))), accelerator, 3)


@pytest.mark.parametrize("reverse", [False, True])
def test_every_level_of_memory_has_tiles(reverse: bool) -> None:
    kernel, accelerator = _kernel(GEMM, 192, 192, 192), small("x86_avx512")
    start = first_choice(kernel, accelerator).schedule.statements[0]
    shape = read_shape(start.mapping)
    block = {v: 1 for v in shape.extents}
    found = tilings(shape, bind_extents(kernel), accelerator, block)
    assert [own.cycles for own in found[: KEPT // 2]] == sorted(
        own.cycles for own in found[: KEPT // 2]
    )
    counts = []
    for tiling in found:
        levels = levels_of(shape, tiling, block, 1, reverse)
        counts.append(max(sum(level.variable == v for level in levels) for v in shape.extents))
        # The block is what is left of each dimension.
        steps = {level.variable: level.step for level in levels}
        assert steps == {v: shape.tile[v] for v in steps}
    assert max(counts) >= 2


def test_reversing_changes_only_the_order_of_neighbours_over_results() -> None:
    kernel, accelerator = _kernel(GEMM, 192, 192, 192), small("x86_avx512")
    start = first_choice(kernel, accelerator).schedule.statements[0]
    shape = read_shape(start.mapping)
    block = {v: 1 for v in shape.extents}
    changed = False
    for tiling in tilings(shape, bind_extents(kernel), accelerator, block):
        plain = levels_of(shape, tiling, block, 1)
        other = levels_of(shape, tiling, block, 1, reverse=True)
        assert sorted(plain, key=str) == sorted(other, key=str)
        reductions = [n for n, own in enumerate(plain) if own.variable in shape.reductions]
        assert [plain[n] for n in reductions] == [other[n] for n in reductions]
        changed |= plain != other
    assert changed


def _space(kernel: Kernel, accelerator: Accelerator) -> Space:
    choice = first_choice(kernel, accelerator)
    return space(
        accelerator, bind_extents(kernel), choice.starts, Producers(accelerator), 1, choice.schedule
    )


def test_the_space_offers_them_and_suggests_them_first() -> None:
    kernel, accelerator = _kernel(GEMM, 95, 101, 90), small("x86_avx512")
    choices = _space(kernel, accelerator)
    options = {choice.name: choice.options for choice in choices.choices}
    assert options["0.tiling"][0] == "rule"
    assert options["0.tiling"][1:] == tuple(
        f"model {n}" for n in range(1, len(options["0.tiling"]))
    )
    assert len(options["0.tiling"]) > 2
    suggested = choices.suggested
    assert {own["0.tiling"] for own in suggested} == set(range(1, len(options["0.tiling"])))
    made = 0
    for own in suggested[::5]:
        try:
            lowered = lower(kernel, accelerator, choices.build(own))
        except ScheduleError:
            continue
        agrees(kernel, lowered, accelerator, 5)
        made += 1
    assert made > len(suggested) // 10


def test_spaces_are_the_same_each_time() -> None:
    kernel, accelerator = _kernel(CONV, 6, 20, 18), small("x86_avx2")
    one, two = _space(kernel, accelerator), _space(kernel, accelerator)
    assert one.choices == two.choices
    assert one.suggested == two.suggested
    assert [one.build(own) for own in one.suggested[:6]] == [
        two.build(own) for own in two.suggested[:6]
    ]


def test_reductions_that_may_not_be_reordered_stay_in_one_piece() -> None:
    text = GEMM.replace("mm {{", "mm permit no reassociate {{")
    kernel = _kernel(text, 40, 40, 300)
    accelerator = small("portable_c")
    start = first_choice(kernel, accelerator).schedule.statements[0]
    shape = read_shape(start.mapping)
    block = {v: 1 for v in shape.extents}
    for tiling in tilings(shape, bind_extents(kernel), accelerator, block):
        assert sum(v == "l" for v, _ in tiling.loops) <= 1


def test_symbols_have_tiles_of_fixed_sizes() -> None:
    text = """kernel mm(M) { in A : f32[M, 40] in B : f32[40, 37] out C : f32[M, 37]
        C[i, j] += A[i, l] * B[l, j] }"""
    kernel, accelerator = parse_module(text, "text").kernels[0], small("x86_avx512")
    choices = _space(kernel, accelerator)
    for own in choices.suggested[:4]:
        agrees(kernel, lower(kernel, accelerator, choices.build(own)), accelerator, 7)
