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
