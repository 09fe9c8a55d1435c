"""What rules made of a kernel is checked against the kernel as it was written."""

import json
from dataclasses import replace

import pytest

from isamap.diagnostics import CertificateError
from isamap.ir.nodes import Kernel, Literal, Op
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import Limits, certify, run_field
from isamap.proof.evidence import Evidence
from isamap.proof.recheck import recheck
from isamap.proof.saved import certificate_json
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rule import Rewriting, Rule
from isamap.rewrite.split_terms import split_terms
from isamap.rewrite.winograd import winograd
from tests.proof.samples import kernel, machine

LIMITS = Limits(calls=60_000, iterations=10**6)
SLIDING = """kernel sliding(P = {size}, C = {channels}, K = {channels}) permit distribute {{
  in    X : f32[P, C] pad 0
  const W : f32[3, C, K]
  {role} Y : f32[P, K]
  Y[p, k] += X[p + r - 1, c] * W[r, c, k]{epilogue}
}}"""
PRODUCT = """kernel product(M = 5, N = 16, K = 9) permit approximate(0.001) {
  in  A : f32[M, K]
  in  B : f32[K, N]
  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}"""


def _sliding(size: int = 9, channels: int = 8, role: str = "out", epilogue: str = "") -> Kernel:
    return kernel(SLIDING.format(size=size, channels=channels, role=role, epilogue=epilogue))


def _evidence(written: Kernel, rewriting: Rewriting) -> Evidence:
    """Return the evidence for a kernel that is mapped as a rule rewrote it, gain or not."""
    result = map_kernel(rewriting.kernel, machine("x86_avx512"), Options(rewrite=(), prove=False))
    mapped, lowered = result.mapped, result.lowered
    return Evidence(written, (rewriting,), mapped, result.accelerator, result.schedule, lowered)


def _offered(written: Kernel, rule: Rule = winograd) -> tuple[Rewriting, ...]:
    found = rewritings(written, 0, [("rule", rule)])
    assert found.proved
    assert found.refused == ()
    return found.proved


@pytest.mark.parametrize("number", [0, 1])
def test_transformed_tiles_agree_with_the_kernel_as_written(number: int) -> None:
    written = _sliding()
    rewriting = _offered(written)[number]
    evidence = _evidence(written, rewriting)
    certificate = certify(evidence, LIMITS)
    assert certificate.verdict == "proved"
    assert certificate.field.verdict == "agrees"
    # F(2, 3) has whole constants and halves; F(4, 3) has sixths, which floats round.
    assert ("fractions" in certificate.field.text) == (rewriting.error is not None) == bool(number)
    assert any(claim.subject == "rule winograd" for claim in certificate.claims)
    data = json.loads(json.dumps(certificate_json(certificate)))
    found = recheck(data, LIMITS)
    assert found.differences == ()
    assert found.certificate.verdict == "proved"


def test_terms_of_another_type_agree_with_the_kernel_as_written() -> None:
    written = kernel(PRODUCT)
    for rewriting in _offered(written, split_terms)[:2]:
        assert run_field(_evidence(written, rewriting), LIMITS).verdict == "agrees"


def test_functions_after_a_convolution_are_compared_with_the_error_of_the_tiles() -> None:
    epilogue = "\n  Z[p, k] = exp(Y[p, k])"
    text = SLIDING.format(size=9, channels=4, role="local", epilogue=epilogue)
    written = kernel(text.replace("local Y", "out Z : f32[P, K]\n  local Y"))
    for rewriting in _offered(written):
        check = run_field(_evidence(written, rewriting), LIMITS)
        assert check.verdict == "agrees", check.text
        assert check.exact_runs == 2


def _changed(made: Kernel, number: int) -> Kernel:
    """Return a kernel with the first constant of a statement a little greater."""
    statement = made.statements[number]
    assert isinstance(statement.value, Op)
    (constant,) = (arg for arg in statement.value.args if isinstance(arg, Literal))
    greater = replace(constant, text=f"{float(constant.text) * 1.000001:.8f}")
    args = tuple(greater if arg is constant else arg for arg in statement.value.args)
    value = replace(statement.value, args=args)
    statements = list(made.statements)
    statements[number] = replace(statement, value=value)
    return replace(made, statements=tuple(statements))


def test_a_wrong_constant_of_a_transform_is_found() -> None:
    epilogue = "\n  Z[p, k] = max(Y[p, k], 0.0)"
    text = SLIDING.format(size=9, channels=4, role="local", epilogue=epilogue)
    written = kernel(text.replace("local Y", "out Z : f32[P, K]\n  local Y"))
    rewriting = _offered(written)[1]
    number = next(
        n
        for n, s in enumerate(rewriting.kernel.statements)
        if s.target.buffer == "U" and isinstance(s.value, Op) and s.value.op == "*"
    )
    wrong = replace(rewriting, kernel=_changed(rewriting.kernel, number))
    assert run_field(_evidence(written, rewriting), LIMITS).verdict == "agrees"
    check = run_field(_evidence(written, wrong), LIMITS)
    assert check.verdict == "differs"
    assert "another function" in check.text


def test_what_would_run_for_too_long_is_rewritten_again_at_smaller_sizes() -> None:
    written = _sliding(size=300, channels=64)
    for rewriting in _offered(written):
        check = run_field(_evidence(written, rewriting), LIMITS)
        assert check.verdict == "agrees"
        assert "P=16, C=16, K=16, lowered by the same schedule" in check.text


def test_a_certificate_of_other_constants_is_refused() -> None:
    written = _sliding(channels=4)
    evidence = _evidence(written, _offered(written)[1])
    data = json.loads(json.dumps(certificate_json(certify(evidence, LIMITS))))
    one = data["rewritings"][0]
    assert "0.16666667" in one["kernel"]
    one["kernel"] = one["kernel"].replace("0.16666667", "0.16666669")
    with pytest.raises(CertificateError, match="does not give this kernel"):
        recheck(data, LIMITS)
