"""Rewritten kernels compete with the one that was written, which stays the judge."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.lower.alternatives import alternatives
from isamap.lower.judge import Judge
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.needles.needles import needles
from isamap.pipeline.candidates import Candidate
from isamap.pipeline.costs import Costs
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.offered import offered
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report, issue_cycles
from isamap.rewrite.build import normal
from isamap.rewrite.rules import NAMES
from isamap.text.load import parse_module


def _kernel(buffers: str, statements: str, permit: str = "", head: str = "") -> Kernel:
    lines = [line.strip() for line in (buffers + ";" + statements).split(";")]
    (kernel,) = parse_module(f"kernel k{head}{permit} {{\n" + "\n".join(lines) + "\n}\n").kernels
    return kernel


def _gemm16() -> Accelerator:
    return load_hardware("gemm16")


def _without(*names: str) -> Accelerator:
    machine = _gemm16()
    kept = tuple(e for e in machine.entries if not e.name.startswith(names))
    return replace(machine, entries=kept)


def _report(kernel: Kernel, machine: Accelerator | None = None, *rules: str) -> Report:
    options = Options(rewrite=rules or None)
    report = make_report(kernel, machine or _gemm16(), options)
    assert report.check is not None, report.unchecked
    assert report.check.ok, report.check.text
    return report


def _instructions(report: Report) -> list[str]:
    return [m.matching.needle.name for m in report.result.mappings]


def _rules(report: Report) -> list[str]:
    return [rewriting.rule for rewriting in report.result.rewritings]


SUMS = {
    "rows": ("in X : f32[40, 50]; out Y : f32[40]", "Y[i] += X[i, j]", "gemm_f32"),
    "columns": ("in X : f32[40, 50]; out Y : f32[50]", "Y[j] += X[i, j]", "gemm_f32"),
    "all": ("in X : f32[40, 50]; out Y : f32[1]", "Y[0] += X[i, j]", "gemm_f32"),
    "bf16": ("in X : bf16[40, 50]; out Y : f32[40]", "Y[i] += f32(X[i, j])", "gemm_bf16"),
    "u8": ("in X : u8[40, 50]; out Y : s32[40]", "Y[i] += s32(X[i, j])", "gemm_u8"),
    "s8": ("in X : s8[40, 50]; out Y : s32[40]", "Y[i] += s32(X[i, j])", "gemm_s8"),
    "pooling": (
        "in X : f32[16, 16, 20]; out Y : f32[4, 4, 20]",
        "for r in 0..4; for s in 0..4; Y[h, w, c] += X[4*h + r, 4*w + s, c]",
        "gemm_f32",
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_run_on_a_matrix_unit(name: str) -> None:
    buffers, statement, instruction = SUMS[name]
    kernel = _kernel(buffers, statement)
    # A matrix unit alone, so that it is used whatever the figures say.
    report = _report(kernel, _without("acc_add", "acc_mac"))
    assert _rules(report) == ["insert-identity"]
    assert _instructions(report) == [instruction]
    with pytest.raises(NoMappingError):
        make_report(kernel, _without("acc_add", "acc_mac"), Options(rewrite=()))


def test_a_rewriting_is_chosen_where_its_estimate_is_lower() -> None:
    buffers, statement, _ = SUMS["rows"]
    kernel = _kernel(buffers, statement)
    plain = make_report(kernel, _gemm16(), Options(rewrite=()))
    assert plain.result.rewritings == ()
    assert plain.result.mapped == kernel
    report = _report(kernel)
    assert _rules(report) == ["insert-identity"]
    assert report.result.estimate.cycles < plain.result.estimate.cycles


def test_a_mean_is_a_sum_on_the_matrix_unit_and_a_product() -> None:
    kernel = _kernel(
        "in X : f32[40, 50]; local S : f32[40]; out Y : f32[40]",
        "S[i] += X[i, j]; Y[i] = S[i] * 0.02",
    )
    report = _report(kernel, _without("acc_add", "acc_mac"))
    before, rewriting = report.result.rewritten[0]
    assert (before.target.buffer, rewriting.rule) == ("S", "insert-identity")
    assert _instructions(report)[0] == "gemm_f32"


def test_a_copy_and_a_transpose_accumulate_where_nothing_stores_what_was_loaded() -> None:
    """The accumulators cannot be filled from memory: only arithmetic writes them."""
    machine = _without("acc_in", "acc_pick", "acc_row", "acc_add", "acc_sub", "acc_max", "acc_min")
    for target in ("Y[i, j]", "Y[j, i]"):
        shape = "[40, 50]" if target == "Y[i, j]" else "[50, 40]"
        kernel = _kernel(f"in X : f32[40, 50]; out Y : f32{shape}", f"{target} = X[i, j]")
        report = _report(kernel, machine)
        assert _rules(report) == ["copy-by-identity"]
        assert _instructions(report) == ["gemm_f32"]


def test_maxima_run_on_a_unit_of_maxima_of_sums() -> None:
    machine = _gemm16()
    entry = next(e for e in machine.entries if e.name == "acc_mac_f32")
    text = (
        "kernel k {\nin a : f32[16, 16]\nin b : f32[16, 16]\ninout c : f32[16, 16]\n"
        "c[i, j] max= a[i, j] + b[i, j]\n}"
    )
    (body,) = parse_module(text).kernels
    instruction = replace(entry.instruction, statements=body.statements)
    tropical = replace(entry, instruction=instruction)
    kept = [e for e in machine.entries if not e.name.startswith(("acc_m", "acc_add", "acc_sub"))]
    only = replace(machine, entries=(*kept, tropical))
    kernel = _kernel(
        "in X : f32[16, 16, 20]; out Y : f32[8, 8, 20]",
        "for r in 0..2; for s in 0..2; Y[h, w, c] max= X[2*h + r, 2*w + s, c]",
    )
    report = _report(kernel, only)
    assert _rules(report) == ["insert-identity"]
    assert _instructions(report) == ["acc_mac_f32"]


def test_three_factors_are_two_matrix_products() -> None:
    kernel = _kernel(
        "in A : f32[3, 20, 30]; in B : f32[3, 30, 40]; in C : f32[3, 40, 24];"
        "out Y : f32[3, 20, 24]",
        "Y[b, i, l] += A[b, i, j] * B[b, j, k] * C[b, k, l]",
        " permit distribute",
    )
    report = _report(kernel)
    assert _rules(report) == ["contract"]
    assert _instructions(report) == ["gemm_f32", "gemm_f32"]
    assert report.result.kernel == kernel
    assert len(report.result.mapped.statements) == 2


def test_estimates_are_not_below_their_floors() -> None:
    machine = _gemm16()
    buffers, statement, _ = SUMS["pooling"]
    product = "in A : f32[40, 50]; in B : f32[50, 30]; out C : f32[40, 30]"
    scaled = "in X : f32[40, 50]; out Y : f32[40, 50]"
    for kernel in (
        _kernel(buffers, statement),
        _kernel(product, "C[i, j] += A[i, k] * B[k, j]"),
        _kernel(scaled, "Y[i, j] = X[i, j] * 3.0 + X[i, j]"),
    ):
        own = normal(kernel)
        costs = Costs(machine, needles(machine), {}, 1, Producers(machine))
        found = costs.mapped(own, 0)
        tried = alternatives(own, Judge(machine, costs.producers, {}), 0, found)
        assert found.mappings
        for one in tried:
            if one.estimate is not None:
                calls = issue_cycles(one.mapping, own, {})
                assert costs.least(own.statements[0]) <= calls <= one.estimate.cycles


@pytest.mark.parametrize(
    ("buffers", "statement"),
    [
        (
            "in A : f32[3, 20, 30]; in B : f32[3, 30, 40]; in C : f32[3, 40, 24];"
            "out Y : f32[3, 20, 24]",
            "Y[b, i, l] += A[b, i, j] * B[b, j, k] * C[b, k, l]",
        ),
        (
            "in X : f32[10, 32]; const W : f32[3, 32, 32]; out Y : f32[8, 32]",
            "Y[p, k] += X[p + r, c] * W[r, c, k]",
        ),
        SUMS["pooling"][:2],
    ],
)
def test_what_bounds_leave_out_would_not_have_won(
    monkeypatch: pytest.MonkeyPatch, buffers: str, statement: str
) -> None:
    kernel = _kernel(buffers, statement, " permit distribute")
    bounded = make_report(kernel, _gemm16(), Options(prove=False)).result

    def nothing(costs: Costs, candidate: Candidate) -> dict[int, float]:
        return dict.fromkeys(candidate.group, 0.0)

    monkeypatch.setattr(Costs, "bounds", nothing)
    whole = make_report(kernel, _gemm16(), Options(prove=False)).result
    assert [r.note for r in bounded.rewritings] == [r.note for r in whole.rewritings]
    assert bounded.estimate.cycles == whole.estimate.cycles


def test_symbolic_extents_are_rewritten_for_all_sizes() -> None:
    kernel = _kernel("in X : f32[N, 50]; out Y : f32[N]", "Y[i] += X[i, j]", "", "(N)")
    report = _report(kernel, _without("acc_add", "acc_mac"))
    assert _rules(report) == ["insert-identity"]


def test_statements_are_rewritten_one_by_one() -> None:
    kernel = _kernel(
        "in X : f32[40, 50]; in A : f32[16, 20]; in B : f32[20, 30]; in C : f32[30, 24];"
        "out S : f32[40]; out Y : f32[16, 24]",
        "S[i] += X[i, j]; Y[a, d] += A[a, b] * B[b, c] * C[c, d]",
        " permit distribute",
    )
    report = _report(kernel)
    assert sorted(_rules(report)) == ["contract", "insert-identity"]
    assert _instructions(report) == ["gemm_f32"] * 3


def test_a_variable_that_is_renamed_for_its_two_ranges_is_mapped_by_its_new_name() -> None:
    kernel = _kernel(
        "in X : u8[57]; local T : u16[57]; local S : u16[53]; out Y : u8[53]",
        "for r in 0..5; T[h] = u16(X[h]); S[h] += T[h + r];"
        "Y[h] = u8((u32(S[h]) * 2622 + 32768) >> 16)",
    )
    report = _report(kernel, load_hardware("x86_avx512"), "in-steps")
    assert _rules(report) == ["in-steps"]
    for mapping, statement in zip(
        report.result.mappings, report.result.mapped.statements, strict=True
    ):
        assert mapping.matching.statement == statement


def test_only_statements_without_any_mapping_are_told_to_have_none() -> None:
    kernel = _kernel(
        "in X : f32[40, 50]; in Z : f32[40]; out S : f32[40]; out Y : f32[40]",
        "S[i] += X[i, j]; Y[i] = exp(Z[i])",
    )
    with pytest.raises(NoMappingError) as caught:
        make_report(kernel, _without("acc_add", "acc_mac"), Options())
    (told,) = caught.value.diagnostics
    assert "computes statement Y of" in told.message


def test_only_chosen_rules_are_applied() -> None:
    buffers, statement, _ = SUMS["rows"]
    kernel = _kernel(buffers, statement)
    assert _rules(_report(kernel, None, "contract", "reassociate")) == []


def test_what_rewriting_enables_is_listed_with_its_mappings() -> None:
    buffers, statement, instruction = SUMS["rows"]
    ways, refused = offered(_kernel(buffers, statement), _gemm16())
    assert refused == ()
    (way,) = ways
    assert way.rewriting.rule == "insert-identity"
    found = {m.matching.needle.name for one in way.enumerations for m in one.mappings}
    assert instruction in found


def test_what_other_instructions_compute_before_counts_in_the_competition() -> None:
    """A sum of products that are computed before is cheap only in its own calls."""
    kernel = _kernel(
        "in A : u8[32, 32]; const B : s8[32, 32]; in Z : u8[]; out Y : s32[32, 32]",
        "Y[m, n] += (s32(A[m, k]) - s32(Z[])) * s32(B[k, n])",
    )
    report = _report(kernel, load_hardware("x86_avx2"), "zero-points")
    assert [r.rule for r in report.result.rewritings] == ["zero-points"]


MAX_PLUS = """\
format: 1
name: max_plus
title: sums of pairs and their maximum
extends: base.yaml
source: made for tests
instructions:
  - semantics: |
      instruction max_plus {
        in a : s32[4, 4] @ t   in b : s32[4, 4] @ t   inout c : s32[4, 4] @ t
        c[i, j] max= a[i, k] + b[k, j]
      }
    throughput: 1
    latency: 1
    units: alu
"""


def test_rules_that_were_refused_are_told_where_no_code_can_be_made(tmp_path: Path) -> None:
    """Sums may wrap, so that a maximum is not taken out of them; and nothing else adds."""
    misfits = Path(__file__).parents[1] / "explain" / "misfits"
    (tmp_path / "base.yaml").write_text((misfits / "base.yaml").read_text())
    (tmp_path / "max_plus.yaml").write_text(MAX_PLUS)
    kernel = _kernel(
        "in A : s32[8, 8]; in B : s32[8, 8]; in C : s32[8, 8]; out Y : s32[8, 8]",
        "Y[m, n] max= A[m, k] + B[k, l] + C[l, n]",
    )
    others = ("in-steps", "last-step", "compute-once")
    rules = tuple(name for name in NAMES if name not in others)
    with pytest.raises(NoMappingError) as caught:
        make_report(kernel, load_hardware(str(tmp_path / "max_plus.yaml")), Options(rewrite=rules))
    (found,) = caught.value.diagnostics
    notes = [note.message for note in found.notes]
    assert any(
        "no instruction that writes s32[4, 4] in t computes A[m, k] + B[k, l]" in n for n in notes
    )
    assert any(n.startswith("not rewritten by contract: 'max(x, y) + z = ") for n in notes)


def test_statements_in_rounds_may_be_rewritten_in_another_way_than_each_by_itself() -> None:
    """A row of its own wants several registers of partial results; rows side by side want one."""
    text = (
        "in X : f32[1024, 1024]; out Y : f32[1024, 1024]; local M : f32[1024]",
        "M[r] += X[r, c]; Y[r, c] = exp(X[r, c] - M[r])",
    )
    machine = load_hardware("x86_avx512")
    alone = make_report(
        _kernel("in X : f32[1024, 1024]; out M : f32[1024]", text[1].split(";")[0]), machine
    )
    both = make_report(_kernel(*text), machine)
    assert both.result.schedule.companions(0)
    notes = [report.result.rewritings[0].note.split(" of ")[0] for report in (alone, both)]
    assert notes == ["16 partial results", "64 partial results"]


def test_ways_for_rounds_are_those_that_are_best_for_one_row() -> None:
    """Several registers of partial results: one alone waits for itself, row by row."""
    kernel = _kernel(
        "in X : f32[512, 1024]; local S : f32[512]; local V : f32[512]; out Y : f32[512, 1024]",
        "S[r] += X[r, c]; V[r] += (X[r, c] - S[r]) * (X[r, c] - S[r]); "
        "Y[r, c] = (X[r, c] - S[r]) * rsqrt(V[r])",
    )
    result = make_report(kernel, load_hardware("x86_avx512_zen4"), Options(prove=False)).result
    assert result.schedule.companions(0)
    lanes = [
        int(one.note.split(" ")[0]) for one in result.rewritings if one.rule == "split-reduction"
    ]
    assert len(lanes) == 2
    assert min(lanes) >= 32


def test_statements_that_can_be_scheduled_stay_as_they_are_where_another_one_cannot() -> None:
    product = "S[m, n] += s32(A[m, k]) * s32(B[k, n])"
    roots = "C[m, n] = sat[s8](sqrt(f32(T[m, n])))"
    first = "in A : s8[64, 64]; const B : s8[64, 64]; out S : s32[64, 64]"
    second = "in T : s32[64, 64] values 0 .. 10000; out C : s8[64, 64]"
    machine = load_hardware(str(Path(__file__).parent / "in_steps.yaml"))

    def rules(buffers: str, statements: str) -> tuple[float, list[str]]:
        result = map_kernel(_kernel(buffers, statements), machine)
        return result.estimate.cycles, [own.rule for own in result.rewritings]

    alone = [rules(first, product), rules(second, roots)]
    assert [found for _, found in alone] == [[], ["sat-in-steps"]]
    cycles, found = rules(f"{first}; {second}", f"{product}; {roots}")
    assert found == ["sat-in-steps"]
    assert cycles <= 1.1 * sum(own for own, _ in alone)


def test_calls_that_wait_for_operands_are_tried_in_steps() -> None:
    """Put together, a product and a maximum take both factors packed; a product does not."""
    machine = load_hardware(str(Path(__file__).parent / "tiles_of_words.yaml"))
    given = "in A : f32[64, 64]; in S : f32[64]; out C : f32[64, 64]"
    alone = map_kernel(_kernel(given, "C[m, n] = A[m, n] * S[m]"), machine)
    result = map_kernel(_kernel(given, "C[m, n] = max(A[m, n] * S[m], 0)"), machine)
    assert [own.rule for own in result.rewritings] == ["in-steps"]
    assert result.estimate.cycles <= 1.1 * alone.estimate.cycles


def test_what_the_closed_form_hardly_tells_apart_is_estimated() -> None:
    buffers = "in A : bf16[13, 37]; in B : bf16[37, 29]; out C : f32[13, 29]"
    kernel = _kernel(buffers, "C[m, n] += f32(A[m, k]) * f32(B[k, n])")
    machine = load_hardware("wasm_relaxed")
    written = map_kernel(kernel, machine, Options(rewrite=()))
    assert map_kernel(kernel, machine).estimate.cycles <= 0.95 * written.estimate.cycles
