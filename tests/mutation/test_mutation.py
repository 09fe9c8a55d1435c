"""Every mutant of a lowered kernel is caught, or computes the same: a few of every example."""

import pytest

from isamap.text.load import parse_module
from tests.mutation.faults import FAULTS
from tests.mutation.survey import MACHINES, distinct_examples, judged, survey

EVERY = distinct_examples()
# Layers of networks differ little when they are small; `tests/mutation/survey.py` has all.
LAYERS = ("deepbench/", "mobilenet_v1/", "resnet50/")
EXAMPLES = {n: EVERY[n] for i, n in enumerate(EVERY) if not n.startswith(LAYERS) or i % 3 == 0}


@pytest.mark.parametrize("name", EXAMPLES)
def test_mutants_are_caught(name: str) -> None:
    outcomes = survey(name, EXAMPLES[name], MACHINES[0], each=1)
    assert len({o.fault for o in outcomes}) >= 9
    assert [o for o in outcomes if not o.caught and (o.missed or not o.equivalent)] == []
    assert sum(bool(o.caught) for o in outcomes) > len(outcomes) / 2


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n.startswith("resnet50")])
def test_mutants_of_code_with_a_scratchpad_are_caught(name: str) -> None:
    outcomes = survey(name, EXAMPLES[name], MACHINES[1], each=1)
    assert [o for o in outcomes if not o.caught and (o.missed or not o.equivalent)] == []


ANY_SIZE = """kernel mm(M, N, K) {
  in A : f32[M, K]  const B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}"""
FINISHED = """kernel finished(M = 6, N = 19, K = 13) {
  in A : u8[M, K]  const B : s8[K, N]  const z : s32[] values 0 .. 255
  local S : s32[N]  local T : s32[M, N]  out C : s32[M, N]
  S[n] += s32(B[k, n])
  T[m, n] += s32(A[m, k]) * s32(B[k, n])
  C[m, n] = T[m, n] - z[] * S[n]
}"""


@pytest.mark.parametrize(
    ("text", "hardware"),
    [(ANY_SIZE, "x86_avx2"), *((FINISHED, m) for m in ("x86_avx512", "x86_avx2", "gemm16"))],
)
def test_mutants_are_caught_at_any_size_and_in_fused_and_prepared_code(
    text: str, hardware: str
) -> None:
    (kernel,) = parse_module(text).kernels
    outcomes = judged(kernel.name, kernel, hardware, each=2)
    assert [o for o in outcomes if not o.caught and (o.missed or not o.equivalent)] == []
    assert sum(bool(o.caught) for o in outcomes) > len(outcomes) / 2


def test_there_are_many_kinds_of_fault() -> None:
    assert len(FAULTS) >= 12
