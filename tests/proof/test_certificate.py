"""Certificates: complete, the same when read back, and refused when they have been changed."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from isamap.diagnostics import CertificateError, Source
from isamap.interp.arithmetic import free
from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import Call, Loop, LoweredKernel, Node, Scope
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_mappings, prove_result
from isamap.proof.certificate import Certificate, Limits, certify, merged
from isamap.proof.codec import Unreadable, decode, encode
from isamap.proof.evidence import Evidence
from isamap.proof.field import field_check
from isamap.proof.recheck import foreign, recheck
from isamap.proof.saved import VERSION, certificate_json, digest, load, read_evidence, save
from isamap.proof.timed import OutOfTimeError, Timed
from isamap.schedule.reader import parse_schedule
from tests.proof.samples import BYTES, FIXED, POOL, SAME, SYMBOLIC, changed, kernel, machine, mapped

LIMITS = Limits(calls=20_000, iterations=10**6)
LONG = """kernel long(K) {
  in A : u8[K]  in B : s8[K]  out C : s32[1]
  C[0] += s32(A[k]) * s32(B[k])
}"""
NARROW = """kernel narrow(N = 8, K = 400) {
  in A : s8[K, N]  out C : s16[N]
  C[n] += s16(A[k, n])
}"""


@lru_cache
def proved(text: str, hardware: str) -> Certificate:
    return prove_result(mapped(text, hardware), LIMITS)


@lru_cache
def _document(text: str, hardware: str) -> str:
    return json.dumps(certificate_json(proved(text, hardware)))


def document(text: str = FIXED, hardware: str = "x86_avx512") -> dict[str, Any]:
    return dict(json.loads(_document(text, hardware)))


SAMPLES = [
    (FIXED, "gemm16"),
    (FIXED, "x86_avx512"),
    (SYMBOLIC, "portable_c"),
    (BYTES, "x86_avx512"),
    (POOL, "x86_avx2"),
    (SAME, "x86_avx512"),
]


@pytest.mark.parametrize(("text", "hardware"), SAMPLES)
def test_everything_is_proved(text: str, hardware: str) -> None:
    found = proved(text, hardware)
    assert found.verdict == "proved", [c for c in found.claims if c.verdict == "unknown"]
    names = {claim.name for claim in found.claims if claim.verdict == "proved"}
    assert {"laws", "digits", "tile", "coverage", "bounds", "registers", "arrays"} <= names
    if any(s.mapping.matching.placements for s in found.evidence.schedule.statements):
        assert {"law 1", "law 3", "law 4"} <= names
    assert found.count("assumed") > 0
    assert all(claim.script for claim in found.claims if claim.method == "solver")


@pytest.mark.parametrize(("text", "hardware"), SAMPLES)
def test_a_saved_certificate_proves_the_same(text: str, hardware: str) -> None:
    data = document(text, hardware)
    evidence = read_evidence(data)
    original = proved(text, hardware).evidence
    assert evidence.kernel == original.kernel
    assert evidence.lowered == original.lowered
    found = recheck(data, LIMITS)
    assert found.differences == ()
    assert found.certificate.verdict == "proved"


def test_a_rewriting_is_applied_again() -> None:
    """s8 times s8 on a machine with u8 times s8 only: an offset is taken out of the sum."""
    result = mapped(BYTES, "x86_avx2")
    found = prove_result(result, LIMITS)
    assert found.verdict == "proved"
    data = json.loads(json.dumps(certificate_json(found)))
    assert recheck(data, LIMITS).differences == ()
    if result.rewritings:
        data["rewritings"][0]["kernel"] = data["kernel"]
        with pytest.raises(CertificateError, match="does not give this kernel"):
            read_evidence(data)


# --- what has been changed ----------------------------------------------------------------------
def change_script(data: dict[str, Any]) -> None:
    claim = next(c for c in data["claims"] if c["script"])
    claim["script"] += "\n(assert false)"


def change_claim(data: dict[str, Any]) -> None:
    data["claims"][2]["claim"] = "all is well"


def drop_claim(data: dict[str, Any]) -> None:
    del data["claims"][3]


def change_tile(data: dict[str, Any]) -> None:
    pairs = data["schedule"]["statements"][0]["mapping"]["tile"]["pairs"]
    pairs[-1][1] *= 2


def swap_axes(data: dict[str, Any]) -> None:
    text = json.dumps(data["schedule"]).replace('"axis": "i"', '"axis": "?"')
    data["schedule"] = json.loads(text)


def change_kernel(data: dict[str, Any]) -> None:
    data["kernel"] = data["kernel"].replace("A[m, k] * B[k, n]", "A[m, k] * B[k, n] * 2.0")


def change_field(data: dict[str, Any]) -> None:
    data["field"]["verdict"] = "differs"


def other_binding(data: dict[str, Any]) -> None:
    operands = data["schedule"]["statements"][0]["mapping"]["matching"]["operands"]
    operands[0][1], operands[1][1] = operands[1][1], operands[0][1]
    operands[1][1]["buffer"] = "B"


def no_seeds(data: dict[str, Any]) -> None:
    data["field"]["seeds"] = []


def other_runs(data: dict[str, Any]) -> None:
    data["field"]["probability"] = 0.0


def change_detail(data: dict[str, Any]) -> None:
    claim = next(c for c in data["claims"] if c["verdict"] == "noted")
    claim["detail"] = "nothing rounds"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (change_script, "does not follow from the data"),
        (change_claim, "all is well"),
        (drop_claim, "is missing"),
        (change_tile, "does not follow|refuted"),
        (swap_axes, "refuted"),
        (change_kernel, "is missing|refuted"),
        (change_field, "field:"),
        (other_binding, "has the statement's body"),
        (no_seeds, "field: its seeds"),
        (other_runs, "field: its probability"),
        (change_detail, "with the detail"),
    ],
)
def test_what_was_changed_is_told(change: Callable[[dict[str, Any]], None], told: str) -> None:
    data = document()
    change(data)
    differences = "\n".join(recheck(data, LIMITS).differences)
    assert differences
    assert any(part in differences for part in told.split("|"))


def change_code(data: dict[str, Any]) -> None:
    data["lowered"]["code"]["name"] = "other"


def change_semantics(data: dict[str, Any]) -> None:
    one = data["hardware"]["instructions"][-1]
    one["semantics"] = one["semantics"].replace("instruction ", "instruction other_")


def break_kernel(data: dict[str, Any]) -> None:
    data["kernel"] = "kernel ?"


def misread(data: dict[str, Any]) -> None:
    needle = data["schedule"]["statements"][0]["mapping"]["matching"]["needle"]
    needle["reduction"] = "max="


def drop_part(data: dict[str, Any]) -> None:
    del data["lowered"]


def other_operand(data: dict[str, Any]) -> None:
    text = json.dumps(data["lowered"]["code"]).replace('[["a", ', '[["nobody", ')
    data["lowered"] = {"digest": digest(json.loads(text)), "code": json.loads(text)}


def unknown_class(data: dict[str, Any]) -> None:
    data["schedule"]["is"] = "Path"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (change_code, "E773"),
        (change_semantics, "E773"),
        (break_kernel, "E0"),
        (misread, "E774"),
        (drop_part, "E773"),
        (other_operand, "E773"),
        (unknown_class, "E773"),
    ],
)
def test_what_cannot_be_read_is_an_error(
    change: Callable[[dict[str, Any]], None], code: str
) -> None:
    data = document()
    change(data)
    with pytest.raises(CertificateError) as error:
        recheck(data, LIMITS)
    assert error.value.diagnostics[0].code.startswith(code)


def test_files_that_are_no_certificate(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(CertificateError, match="cannot read"):
        load(path)
    for text, told in [("{", "no JSON"), ("[]", "no certificate"), ('{"format": 1}', "no cert")]:
        path.write_text(text)
        with pytest.raises(CertificateError, match=told):
            load(path)
    save(proved(FIXED, "x86_avx512"), path)
    assert load(path) == document()
    path.write_text(path.read_text().replace(f'"version": {VERSION}', '"version": 99'))
    with pytest.raises(CertificateError, match="version 99"):
        load(path)


def test_other_code_is_refuted_even_with_a_right_digest() -> None:
    """Code of another kernel: every claim is derived from it anew."""
    evidence = proved(FIXED, "x86_avx512").evidence
    other = mapped(FIXED.replace("M = 21", "M = 30"), "x86_avx512").lowered
    found = certify(replace(evidence, lowered=other), LIMITS)
    assert found.verdict == "refuted"


def stale(node: Node) -> Node | None:
    """Let a product take the accumulator of another one."""
    match node:
        case Scope(_, body) | Loop(_, _, body, _):
            sums = [n for n in body if isinstance(n, Call) and "fmadd" in n.instruction]
            if len(sums) < 2:
                return None
            first, second = sums[:2]
            other = tuple(
                (name, first.operand(name) if name == "c" else place)
                for name, place in second.operands
            )
            changed_body = tuple(replace(n, operands=other) if n is second else n for n in body)
            return replace(node, body=changed_body)
        case _:
            return None


def forged(evidence: Evidence, lowered: LoweredKernel, limits: Limits) -> dict[str, Any]:
    """Return a certificate of other code, made to look right."""
    bad = certify(replace(evidence, lowered=lowered), limits)
    return dict(json.loads(json.dumps(certificate_json(bad))))


@pytest.mark.parametrize("sizes", [[], [{"M": 1, "N": 1, "K": 1}]])
def test_runs_are_made_at_sizes_and_seeds_of_their_own(sizes: list[dict[str, int]]) -> None:
    evidence = proved(SYMBOLIC, "x86_avx512").evidence
    data = forged(evidence, changed(evidence.lowered, stale), LIMITS)
    data["field"] |= {"verdict": "agrees", "seeds": [] if not sizes else [0], "sizes": sizes}
    data["verdict"] = "proved"
    found = recheck(data, LIMITS)
    assert found.certificate.verdict == "refuted"
    assert any("the check differs" in text for text in found.differences)


def test_code_that_does_nothing_is_run() -> None:
    evidence = proved(FIXED, "x86_avx512").evidence
    empty = replace(evidence.lowered, body=(), prepare=())
    assert certify(replace(evidence, lowered=empty), LIMITS).field.verdict == "differs"


def test_smaller_code_says_nothing_of_code_that_the_schedule_does_not_give() -> None:
    limits = Limits(calls=4000)
    result = mapped(FIXED.replace("M = 21", "M = 210"), "x86_avx512")
    evidence = prove_result(result, limits).evidence
    other = replace(evidence, lowered=changed(evidence.lowered, stale))
    assert certify(other, limits).field.verdict == "not run"


def test_a_certificate_of_another_kernel_or_machine_is_told() -> None:
    data = document()
    same = kernel(FIXED), machine("x86_avx512")
    assert list(foreign(data, *same)) == []
    (told,) = foreign(data, kernel(SYMBOLIC), None)
    assert told.startswith("kernel:")
    told, *_ = foreign(data, None, machine("gemm16"))
    assert "hardware.storages" in told
    change = data["hardware"]["instructions"][1]
    change["semantics"] = change["semantics"].replace("*", "+")
    (told,) = foreign(data, *same)
    assert "has other semantics in x86_avx512" in told


# --- numbers ------------------------------------------------------------------------------------
def claims_of(text: str, hardware: str = "portable_c") -> dict[str, str]:
    found = merged(proved(text, hardware).claims)
    return {claim.claim: claim.verdict for claim in found if claim.name == "integers"}


def test_the_length_at_which_a_sum_may_wrap_is_told() -> None:
    """255 * -128 * 65793 is the least multiple of terms that s32 holds."""
    found = claims_of(LONG)
    assert (2**31) // (255 * 128) == 65793
    assert found["no partial sum of C leaves s32 while K <= 65793"] == "proved"
    assert found["sums of C may wrap, as in the kernel itself"] == "noted"


@pytest.mark.parametrize("dtype", ["u64", "s64", "u4", "bool"])
def test_the_greatest_and_least_of_every_type_are_run(dtype: str) -> None:
    text = f"kernel most(N = 8) {{ in A : {dtype}[N]  out C : {dtype}[N]  C[n] max= A[n] }}"
    assert proved(text, "portable_c").field.verdict == "agrees"


def test_a_sum_that_may_wrap_is_not_called_safe() -> None:
    """400 terms of -128 are less than s16 holds."""
    found = claims_of(NARROW)
    assert found["sums in s16 do not depend on their order, wrapped ones included"] == "proved"
    assert found["sums of C may wrap, as in the kernel itself"] == "noted"
    short = claims_of(NARROW.replace("K = 400", "K = 256"))
    assert short["no partial sum of C leaves s16, in any order"] == "proved"


# --- limits -------------------------------------------------------------------------------------
def test_without_time_nothing_is_proved() -> None:
    found = prove_result(mapped(FIXED, "x86_avx512"), Limits(seconds=-1.0, calls=0))
    solved = [claim for claim in found.claims if claim.method == "solver"]
    assert {claim.verdict for claim in solved} == {"unknown"}
    assert found.verdict == "unknown"
    assert found.field.verdict == "not run"


@pytest.mark.parametrize("text", [FIXED, BYTES])
def test_runs_end_when_their_time_is_over_and_then_claim_nothing(text: str) -> None:
    result = mapped(text, "x86_avx512")
    ended = prove_result(result, replace(LIMITS, seconds=-1.0)).field
    assert (ended.verdict, ended.sizes, ended.field_runs, ended.exact_runs) == ("not run", (), 0, 0)
    assert ended.text.startswith("no time was left")
    in_time = prove_result(result, replace(LIMITS, seconds=600.0)).field
    assert in_time == prove_result(result, LIMITS).field
    assert in_time.verdict == "agrees"


def test_no_time_is_no_fault_of_the_code() -> None:
    result = mapped(FIXED, "x86_avx512")
    wrong = replace(result, lowered=replace(result.lowered, body=result.lowered.body[:-1]))
    assert prove_result(wrong, LIMITS).field.verdict == "differs"
    assert prove_result(wrong, replace(LIMITS, seconds=-1.0)).field.verdict == "not run"


def test_arithmetic_counts_the_time_of_an_operation_and_of_a_fold() -> None:
    dtype, numbers = DTYPES["f32"], np.arange(1, 4, dtype=np.uint64)
    for add in (1000.0, -1.0):
        timed = Timed(free(), process_time() + add)
        total = np.zeros((), np.uint64)
        plus = timed.operation("+", (dtype, dtype), dtype)
        if add > 0:
            assert plus(numbers, numbers).tolist() == [2, 4, 6]
            timed.fold("+", dtype, total, numbers)
            assert total == 6
            continue
        with pytest.raises(OutOfTimeError):
            plus(numbers, numbers)
        with pytest.raises(OutOfTimeError):
            timed.fold("+", dtype, total, numbers)


def test_every_mapping_is_proved() -> None:
    result = mapped(FIXED, "gemm16")
    found = list(prove_mappings(result, LIMITS))
    assert len(found) == len(result.statements[0].mappings) > 1
    assert {c.verdict for one in found for c in one.claims} == {"proved"}


def test_data_is_read_back_as_it_was() -> None:
    result = mapped(SAME, "x86_avx512")
    entries = {entry.name: entry for entry in result.accelerator.entries}
    for value in (result.schedule, result.lowered, result.accelerator.storages):
        data = json.loads(json.dumps(encode(value)))
        assert decode(data, entries) == value
    with pytest.raises(Unreadable, match="no instruction"):
        decode(copy.deepcopy(encode(result.schedule)), {})


def test_a_wrong_kernel_is_seen_by_the_field() -> None:
    result = mapped(FIXED, "x86_avx512")
    other: Kernel = kernel(FIXED.replace("A[m, k] * B", "A[m, K - 1 - k] * B"))
    check = field_check(other, machine("x86_avx512"), result.lowered)
    assert check.verdict == "differs"
    assert "another function" in check.text


def test_truth_values_that_are_combined_in_another_order_are_the_same() -> None:
    """What is combined with the sum so far in two steps; a truth value is 0 or 1 in the field."""
    text = """kernel parity(M = 3, K = 4) {
      in X : u16[M, K]  in Z : u16[M, K]  in P : bool[K]  out Y : bool[M]
      Y[m] xor= (X[m, k] < Z[m, k]) ^ P[k]
    }"""
    terms = "c_xor_bool + c_xor_bool(b = X[m, k] < Z[m, k], b2 = P[k])"
    written = f"schedule parity {{\nY {{\ninstruction {terms}\n}}\n}}"
    options = Options(schedule=parse_schedule(Source("parity.schedule", written)))
    result = map_kernel(kernel(text), machine("vector_c"), options)
    check = field_check(result.kernel, result.accelerator, result.lowered)
    assert check.verdict == "agrees", check.text
    assert "truth values of inputs are 0 or 1" in check.text


def test_statements_that_are_computed_together() -> None:
    """One instruction computes a product, a bias and a clamp: three statements of the kernel."""
    text = """kernel relu6(M = 20, N = 13, K = 8) {
      in A : f32[M, K]  in B : f32[K, N]  in bias : f32[N]
      local T : f32[M, N]
      out C : f32[M, N]
      T[i, j] += A[i, k] * B[k, j]
      C[i, j] = min(max(T[i, j] + bias[j], 0), 6)
    }"""
    fused = str(Path(__file__).parents[1] / "together" / "fused.yaml")
    found = proved(text, fused)
    assert len(found.evidence.schedule.statements) == 1
    assert found.verdict == "proved"
    assert recheck(document(text, fused), LIMITS).differences == ()


def test_what_takes_too_long_is_run_at_smaller_sizes() -> None:
    result = mapped(FIXED.replace("M = 21", "M = 210"), "x86_avx512")
    limits = Limits(calls=4000)
    found = prove_result(result, limits)
    assert field_check(result.kernel, result.accelerator, result.lowered, calls=4000).text
    assert found.field.verdict == "agrees"
    assert "M=" in found.field.text
    assert recheck(json.loads(json.dumps(certificate_json(found))), limits).differences == ()
    without = prove_result(result, Limits(calls=4000, smaller=False))
    assert without.field.verdict == "not run"


def test_indices_that_arrays_hold_are_assumed_to_be_in_bounds() -> None:
    text = """kernel gather(N = 20, V = 30, D = 16) {
      in T : f32[V, D]  in I : s32[N]  out Y : f32[N, D]
      Y[n, d] = T[I[n], d]
    }"""
    found = {claim.claim: claim.verdict for claim in proved(text, "x86_avx2").claims}
    assert found["every access to T lies within its 480 elements"] == "proved"
    assert found["elements of I that serve as indices are in bounds"] == "assumed"
    shifted = proved(text.replace("I[n]", "I[n] + 1"), "x86_avx2")
    assert shifted.verdict == "proved"
    assert not any(claim.verdict == "refuted" for claim in shifted.claims)


def test_indices_that_are_computed_are_places_in_the_declared_types_only() -> None:
    text = """kernel k {
      in D : s32[4]  in X : s32[40]  local C : s32[4]  out Y : s32[4]
      C[i] = max(min(D[i], 30), 0) + START
      Y[i] = X[C[i]]
    }"""
    found = proved(text.replace("START", "9"), "portable_c").field
    assert (found.verdict, found.field_runs) == ("agrees", 0)
    assert found.exact_runs > 0
    outside = proved(text.replace("START", "40"), "portable_c").field
    assert outside.verdict == "not run"
    assert outside.text.startswith("indices that the kernel computes lie outside")
