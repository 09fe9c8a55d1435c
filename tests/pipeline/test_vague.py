"""Checks whose bound is as large as the results are made once more, where errors grow less."""

from dataclasses import replace

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.compare import compare, error_bound
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.pipeline import report
from isamap.pipeline.execute import execute
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module

COUNT = 7
LAYERS = "\n".join(
    (
        "kernel layers { in T0 : f32[4, 64]",
        *(f"  const W{n} : f32[64, 64]" for n in range(COUNT)),
        *(f"  local T{n} : f32[4, 64]" for n in range(1, COUNT)),
        f"  out T{COUNT} : f32[4, 64]",
        *(f"  T{n + 1}[i, j] += T{n}[i, k] * W{n}[k, j]" for n in range(COUNT)),
        "}",
    )
)


def layers() -> Kernel:
    return parse_module(LAYERS).kernels[0]


def test_a_bound_as_large_as_the_results_is_vague() -> None:
    for one_sign, vague in ((False, True), (True, False)):
        arrays = random_inputs(layers(), one_sign=one_sign)
        wanted = interpret(layers(), arrays)
        off = {f"T{COUNT}": wanted[f"T{COUNT}"] * np.float32(1 + 1e-6)}
        found = compare(layers(), arrays, wanted, off)
        assert found.ok
        assert found.vague == vague


def test_inputs_of_one_sign_keep_errors_small() -> None:
    arrays = random_inputs(layers(), one_sign=True)
    assert all(array.min() >= 0 for array in arrays.values())
    assert all(array.max() == 0.25 for array in arrays.values())
    result = interpret(layers(), arrays)[f"T{COUNT}"]
    assert (error_bound(layers(), arrays)[f"T{COUNT}"] < 1e-3 * result).all()


@pytest.mark.parametrize("factor", [1 + 1e-6, 0.99])
def test_a_vague_check_is_made_again(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    run = execute

    def off(*given: object, **options: object) -> object:
        ran = run(*given, **options)  # type: ignore[arg-type]
        assert ran.outputs is not None
        return replace(ran, outputs={n: v * np.float32(factor) for n, v in ran.outputs.items()})

    monkeypatch.setattr(report, "execute", off)
    found = make_report(layers(), load_hardware("vector_c"), Options(prove=False))
    assert found.check is not None
    assert found.check.ok == (factor > 1)
    if found.check.ok:
        assert ", which says little; on inputs without negative numbers, " in found.check.text
    else:
        assert found.check.text.endswith("(on inputs without negative numbers)")


CLIPPED = """kernel clipped {
  in X : u8[9, 96]  const W : s8[96, 11]  local S : s32[9, 11]  out Y : u8[9, 11]
  S[i, j] += s32(X[i, k]) * s32(W[k, j])
  Y[i, j] = sat[u8](S[i, j])
}"""


@pytest.mark.parametrize("wrong", [False, True])
def test_a_check_of_clipped_results_is_made_again(
    monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    """Whatever is clipped to 0 or 255 may have been wrong before."""
    run, runs = execute, 0

    def off(*given: object, **options: object) -> object:
        nonlocal runs
        runs += 1
        ran = run(*given, **options)  # type: ignore[arg-type]
        assert ran.outputs is not None
        moved = {n: np.where(v % 255 == 0, v, v ^ 1) for n, v in ran.outputs.items()}
        return replace(ran, outputs=moved) if wrong and runs == 2 else ran

    monkeypatch.setattr(report, "execute", off)
    (kernel,) = parse_module(CLIPPED).kernels
    found = make_report(kernel, load_hardware("vector_c"), Options(prove=False))
    assert found.check is not None
    assert runs == 2
    assert found.check.ok != wrong
    if wrong:
        assert found.check.text.endswith("(on small integers)")
    else:
        assert "of them are one of two values; on small integers, bit for bit" in found.check.text


def test_what_has_two_values_by_its_type_or_inputs_is_not_checked_again() -> None:
    text = "kernel k { in X : f32[64]  out Y : bool[64]  Y[i] = X[i] < 0 }"
    found = make_report(parse_module(text).kernels[0], load_hardware("vector_c"))
    assert found.check is not None
    assert found.check.text == "bit for bit"
    text = "kernel k { in X : f32[64]  out Y : f32[64]  Y[i] = X[i] * 0 }"
    found = make_report(parse_module(text).kernels[0], load_hardware("vector_c"))
    assert found.check is not None
    assert found.check.text == "bit for bit, but 100% of them are one of two values"
