"""Dot products of narrow types are found, win, and keep their sums in registers."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from isamap.emit.c import emit_c
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.choose import Choice, choose
from isamap.pipeline.unmapped import enumerate_each
from isamap.text.load import parse_module

GEMM = """\
kernel gemm(M = 40, N = 64, K = 32) {{
  in    A : {a}[M, K]
  const B : {b}[K, N]
  out   C : {c}[M, N]
  C[m, n] += {c}(A[m, k]) * {c}(B[k, n])
}}
"""

CONVOLUTION = """\
kernel convolution(H = 14, W = 14, C = 16, F = 32) {{
  in    X : {a}[H, W, C] pad 0
  const P : {b}[3, 3, C, F]
  out   Y : {c}[H, W, F]
  Y[h, w, f] += {c}(X[h + r - 1, w + s - 1, c]) * {c}(P[r, s, c, f])
}}
"""

BEST = [
    ("x86_avx2", "u8", "s8", "s32", "dot4_u8_s8"),
    ("x86_avx2", "s8", "s8", "s32", "dot4_s8"),
    ("x86_avx2", "u8", "u8", "s32", "dot4_u8"),
    ("x86_avx2", "s16", "s16", "s32", "vpmaddwd + vadd_s32"),
    ("x86_avx2", "bf16", "bf16", "f32", "dot2_bf16"),
    ("x86_avx512", "u8", "s8", "s32", "vpdpbusd"),
    ("x86_avx512", "s8", "s8", "s32", "dot4_s8_s8"),
    ("x86_avx512", "u8", "u8", "s32", "dot4_u8_u8"),
    ("x86_avx512", "s16", "s16", "s32", "vpdpwssd"),
    ("x86_avx512", "bf16", "bf16", "f32", "vdpbf16ps"),
]


def chosen(text: str, machine: str) -> tuple[Kernel, Choice]:
    """Return the kernel of a text, and what is chosen for it on a shipped machine."""
    kernel = bind_extents(parse_module(text).kernels[0])
    accelerator = load_hardware(machine)
    return kernel, choose(kernel, accelerator, enumerate_each(kernel, accelerator))


@pytest.mark.parametrize(("machine", "a", "b", "c", "best"), BEST)
def test_products_of_narrow_types_use_the_dot_product(
    machine: str, a: str, b: str, c: str, best: str
) -> None:
    _, choice = chosen(GEMM.format(a=a, b=b, c=c), machine)
    (statement,) = choice.schedule.statements
    assert statement.mapping.matching.needle.name == best


@pytest.mark.parametrize(("a", "b", "c"), [("u8", "s8", "s32"), ("bf16", "bf16", "f32")])
@pytest.mark.parametrize("text", [GEMM, CONVOLUTION], ids=["gemm", "convolution"])
def test_no_sum_of_avx2_meets_the_stack(text: str, a: str, b: str, c: str, tmp_path: Path) -> None:
    machine = load_hardware("x86_avx2")
    toolchain = machine.toolchain
    assert toolchain is not None
    if shutil.which(toolchain.compiler[0]) is None:
        pytest.skip(f"{toolchain.compiler[0]} is not installed")
    kernel, choice = chosen(text.format(a=a, b=b, c=c), "x86_avx2")
    source = tmp_path / "kernel.c"
    source.write_text(emit_c(choice.lowered, machine, kernel).text, encoding="utf-8")
    command = [*toolchain.compiler, *toolchain.flags, "-S", "-o", "-", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "unrecognized command-line option" in done.stderr:
        pytest.skip("the compiler is for another machine")
    assert done.returncode == 0, done.stderr
    loops = [piece for piece in innermost(done.stdout) if PRODUCT.search(piece)]
    assert loops
    for piece in loops:
        assert not sums_on_stack(piece), piece


PRODUCT = re.compile(r"\tvpmaddwd|\tvfmadd")
_SUM = re.compile(r"\tvpadd|\tvfmadd")
_SPILL = re.compile(r"\tv\w+\t(%ymm\d+), -?\d*\(%r[sb]p\)$")


def sums_on_stack(loop: str) -> list[str]:
    """Return the lines of a loop that write a sum to the stack.

    A sum is what an addition wrote, or what the loop found in a register.  A factor that is the
    same for both ways around a bounds check may be kept where the compiler likes.
    """
    lines = loop.splitlines()
    found = []
    for at, line in enumerate(lines):
        if spill := _SPILL.match(line):
            writers = [w for w in lines[:at] if w.endswith(f", {spill[1]}")]
            if not writers or _SUM.match(writers[-1]):
                found.append(line)
    return found


def test_a_sum_on_the_stack_is_seen() -> None:
    load, add, keep = (
        "\tvmovdqa\t(%rax), %ymm6",
        "\tvpaddd\t%ymm1, %ymm6, %ymm6",
        ("\tvmovdqa\t%ymm6, -32(%rsp)"),
    )
    assert sums_on_stack("\n".join([load, add, keep])) == [keep]
    assert sums_on_stack("\n".join([load, keep, add])) == []
    assert sums_on_stack("\n".join([keep, load, add])) == [keep]


_JUMP = re.compile(r"\tj\w+\t(\.L\w+)")


def innermost(assembly: str) -> list[str]:
    """Return the texts between a label and the first jump back to it that hold no other loop."""
    lines = assembly.splitlines()
    at = {line[:-1]: n for n, line in enumerate(lines) if line.startswith(".L")}
    spans = []
    for n, line in enumerate(lines):
        jump = _JUMP.match(line)
        if jump and at.get(jump[1], n) < n:
            spans.append((at[jump[1]], n))
    inner = [s for s in spans if not any(s != t and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    return ["\n".join(lines[first : last + 1]) for first, last in inner]
