"""Which mappings of a statement are tried before one is chosen."""

from pathlib import Path

import pytest

import isamap
from isamap.lower import alternatives
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.text.load import parse_module

MACHINE = Path(__file__).with_name("narrow_products.yaml")


def product() -> Result:
    (kernel,) = parse_module(
        "kernel mm { in A : s8[37, 29]  in B : s8[29, 43]  out C : s32[37, 43] "
        "C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"
    ).kernels
    return map_kernel(kernel, isamap.load_hardware(str(MACHINE), trust=True), Options(prove=False))


def tried(result: Result) -> dict[str, float]:
    """Return the least estimate of each instruction of the first statement that was scheduled."""
    first = result.statements[0]
    found: dict[str, float] = {}
    for one in first.scheduled:
        if one.cycles is not None:
            name = first.mappings[one.mapping].matching.needle.name
            found[name] = min(found.get(name, one.cycles), one.cycles)
    return found


def test_an_instruction_that_may_be_fastest_is_tried_whatever_the_rough_count_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert tried(product())["vdot2_s8"] == min(tried(product()).values())
    monkeypatch.setattr(alternatives, "TRIED", 1)
    best = product()
    assert tried(best)["vdot2_s8"] == min(tried(best).values())
    # Without that, a placement of a slower instruction takes the only place.
    monkeypatch.setattr(alternatives, "OTHERS", 0)
    crowded = product()
    assert "vdot2_s8" not in tried(crowded)
    assert best.estimate.cycles < crowded.estimate.cycles


def test_one_mapping_of_each_instruction_is_enough() -> None:
    found = tried(product())
    assert found["vdot2_s8"] == min(found.values())
    assert len(found) <= alternatives.TRIED + alternatives.OTHERS
