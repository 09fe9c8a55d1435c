"""What is prepared is claimed to hold for all calls, and a body that breaks that is refuted."""

from dataclasses import replace

import pytest

from isamap.ir.index import const, var
from isamap.lower.nodes import Copy
from isamap.pipeline.prove import prove_result
from isamap.proof.ahead import faults_ahead
from isamap.proof.certificate import Limits
from isamap.proof.recheck import recheck
from isamap.proof.saved import certificate_json
from tests.emit.building import MACHINE
from tests.emit.samples import prepared
from tests.proof.samples import mapped

WEIGHTS = """kernel weights(N = 37, K = 19) {
  in A : f32[5, K]  const B : f32[N, K]  out C : f32[5, N]
  C[m, n] += A[m, k] * B[n, k]
}"""


def test_what_is_prepared_is_claimed_and_proved() -> None:
    result = mapped(WEIGHTS, "x86_avx512")
    assert result.lowered.prepare
    certificate = prove_result(result)
    (claim,) = (c for c in certificate.claims if c.name == "prepared")
    assert claim.verdict == "proved"
    assert "B_packed" in claim.claim
    assert certificate.verdict == "proved"
    again = recheck(certificate_json(certificate))
    assert again.differences == ()


def test_a_packing_of_an_input_ahead_is_refuted() -> None:
    result = mapped(WEIGHTS, "x86_avx512")
    arrays = tuple(replace(a, role="in") if a.role == "const" else a for a in result.lowered.arrays)
    wrong = replace(result, lowered=replace(result.lowered, arrays=arrays))
    certificate = prove_result(wrong, Limits(calls=0))
    refuted = {c.name for c in certificate.claims if c.verdict == "refuted"}
    assert {"prepared", "arrays"} <= refuted


def copy(target: str, source: str) -> Copy:
    return Copy((("j", const(1)),), target, var("j"), source, var("j"))


@pytest.mark.parametrize(
    ("ahead", "call", "told"),
    [
        ((copy("turned", "X"),), (), "X is read ahead"),
        ((copy("Y", "W"),), (), "Y is written ahead, and belongs"),
        ((), (copy("turned", "V"),), "turned is prepared, and written"),
        ((), (copy("Y", "row"),), "row is written ahead, and lost"),
    ],
)
def test_bodies_that_depend_on_each_other(
    ahead: tuple[Copy, ...], call: tuple[Copy, ...], told: str
) -> None:
    good = prepared().lowered
    assert faults_ahead(MACHINE, good) == ()
    wrong = replace(good, prepare=(*good.prepare, *ahead), body=(*good.body, *call))
    (fault,) = faults_ahead(MACHINE, wrong)
    assert fault.startswith(told)
    (fault,) = faults_ahead(MACHINE, replace(good, prepare=()))
    assert fault == "turned is to be prepared, and not written"
