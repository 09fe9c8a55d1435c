"""Which instruction computes a statement, where several can, and whether its block fits."""

from dataclasses import replace

import pytest

from isamap.diagnostics import NoMappingError
from isamap.ir.nodes import Kernel
from isamap.lower.capacity import peak_use
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.pipeline.source import load_hardware
from isamap.text.load import parse_module

SEQUENCE = "vadd_f32"
"""Fed by products of another instruction."""


def convolution(size: int, channels: int, padded: bool) -> Kernel:
    rows, back, pad = (size, " - 1", " pad 0") if padded else (size + 2, "", "")
    text = f"""kernel conv(H = {size}, C = {channels}) {{
      in X : f32[{rows}, {rows}, C]{pad}  in F : f32[3, 3, C, C]  out Y : f32[H, H, C]
      Y[p, q, k] += X[p + r{back}, q + t{back}, c] * F[r, t, c, k]
    }}"""
    return parse_module(text).kernels[0]


def planes(size: int, channels: int) -> Kernel:
    text = f"""kernel depthwise(H = {size}, C = {channels}) {{
      in X : f32[C, H, H, 16] pad 0  const D : f32[3, 3, C, 16]  out S : f32[C, H, H, 16]
      S[co, p, q, ci] += X[co, p + r - 1, q + t - 1, ci] * D[r, t, co, ci]
    }}"""
    return parse_module(text).kernels[0]


def mapped(kernel: Kernel, instruction: str | None = None) -> Result:
    return map_kernel(kernel, load_hardware("x86_avx512"), Options(instruction=instruction))


def chosen(result: Result) -> str:
    return result.mappings[0].matching.needle.name


@pytest.mark.parametrize(
    "kernel", [convolution(28, 128, True), planes(14, 32)], ids=lambda k: k.name
)
@pytest.mark.parametrize("instruction", [None, SEQUENCE])
def test_a_block_fits_the_registers_with_what_is_computed_on_the_way(
    kernel: Kernel, instruction: str | None
) -> None:
    result = mapped(kernel, instruction)
    used = peak_use(result.lowered, result.accelerator)["zmm"]
    assert 16 < used <= 32


@pytest.mark.parametrize(("size", "channels"), [(28, 128), (14, 256)])
def test_one_instruction_is_preferred_to_a_sequence_where_it_is_as_fast(
    size: int, channels: int
) -> None:
    # The sequence has units of its own for products and sums: no estimate tells them apart.
    assert chosen(mapped(convolution(size, channels, True))) == "vfmadd_f32"


def test_better_loops_for_a_sequence_are_those_of_one_instruction_too() -> None:
    result = mapped(planes(14, 512))
    assert chosen(result) == "vfmadd_f32"
    other = mapped(planes(14, 512), SEQUENCE)
    assert result.estimate.cycles < 1.1 * other.estimate.cycles


def test_branches_that_are_foreseen_keep_nothing_from_running_beside_them() -> None:
    with_branches, without = (mapped(convolution(28, 128, padded)) for padded in (True, False))
    assert with_branches.estimate.busy < 1.1 * without.estimate.busy


def test_what_matches_and_cannot_be_made_into_code_is_told_apart_from_what_does_not() -> None:
    machine = load_hardware("gemm16")
    bare = replace(machine, entries=tuple(e for e in machine.entries if e.name.startswith("gemm")))
    text = """kernel product(M = 40) { in A : s8[M, M]  in B : s8[M, M]  out C : s32[M, M]
      C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"""
    with pytest.raises(NoMappingError) as raised:
        map_kernel(parse_module(text).kernels[0], bare, Options())
    (told,) = raised.value.diagnostics
    assert told.code == "E301"
    assert told.message == (
        "what matches the statement that writes C cannot be made into code for gemm16"
    )
    assert any(note.message.startswith("gemm") for note in told.notes)


@pytest.mark.parametrize("hardware", ["x86_avx2", "x86_avx512"])
def test_what_reads_an_operand_twice_takes_no_schedule_of_what_reads_it_once(hardware: str) -> None:
    (kernel,) = parse_module(
        """kernel squares(T = 59, C = 27) {
          in X : f32[T, C]  out V : f32[T]
          V[t] += X[t, c] * X[t, c]
        }"""
    ).kernels
    result = map_kernel(kernel, load_hardware(hardware), Options(rewrite=(), prove=False))
    assert schedule_text(result).startswith("# made for")
