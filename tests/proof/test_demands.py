"""What a description demands at every use is claimed, proved, and missed where it does not hold."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.ir.constraint import Constraint
from isamap.ir.index import const, var
from isamap.ir.statements import bind_extents
from isamap.lower.nodes import Call, LoweredKernel, Node
from isamap.mapping.matching import Mapping
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.proof.certificate import Certificate, Limits, certify, decide
from isamap.proof.demands import code_demands, mapping_demands
from isamap.proof.walk import sites
from tests.mutation.faults import FAULTS, Site
from tests.proof.samples import changed, mapped

MACHINE = str(Path(__file__).parent / "demanding.yaml")
TOGETHER = str(Path(__file__).parents[1] / "together" / "restricted.yaml")
LIMITS = Limits(calls=20_000, iterations=10**6)

PRODUCT = """kernel mm(M = 14, N = 20, K = 12) {
  in A : s8[M, K]  in B : s8[K, N]  out C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}"""
CLIP = """kernel clip(M = 14, N = 20) {
  in A : s32[M, N]  in B : s32[M, N]  out C : s32[M, N]
  C[m, n] = max(A[m, n], B[m, n]) - B[m, n]
}"""
SMOOTH = """kernel smooth(N = 29) {
  in X : f32[N + 2]
  const W : f32[3] = [0.25, 0.5, 0.25]
  out Y : f32[N]
  Y[i] += X[i + r] * W[r]
}"""


def certificate(text: str, hardware: str = MACHINE) -> Certificate:
    return prove_result(mapped(text, hardware), LIMITS)


def told(found: Certificate, name: str) -> list[tuple[str, str, str]]:
    return [(c.subject, c.claim, c.verdict) for c in found.claims if c.name == name]


def verdicts(result: Result, lowered: LoweredKernel) -> set[tuple[str, str]]:
    bound = bind_extents(result.kernel)
    found = code_demands(bound, result.accelerator, lowered, tuple(sites(lowered)), frozenset())
    return {(claim.name, claim.verdict) for claim in decide(found, LIMITS)}


def test_constraints_are_claimed_of_the_tiles_and_of_each_call() -> None:
    found = certificate(PRODUCT)
    assert found.verdict == "proved"
    of_mapping, of_code = told(found, "constraints")
    assert of_mapping == ("C", "k % 2 == 0 of mac in every tile, whole or short", "proved")
    assert of_code[0] == "code"
    assert of_code[1].startswith("rows % 2 == 0 of fetch, P % 4 == 0 of fetch, j <= cols of fetch")


def test_a_length_or_pitch_that_breaks_a_constraint_is_refuted() -> None:
    result = mapped(PRODUCT, MACHINE)
    assert ("constraints", "proved") in verdicts(result, result.lowered)
    wrong = list(_masks(result))
    assert len(wrong) >= 4
    for lowered in wrong:
        assert ("constraints", "refuted") in verdicts(result, lowered)


def _masks(result: Result) -> Iterator[LoweredKernel]:
    """Yield the code with one length or pitch of a constrained movement one off."""
    for place, lowered in FAULTS["wrong mask or pitch"](Site(result.lowered, result.accelerator)):
        pairs = zip(sites(result.lowered), sites(lowered), strict=True)
        (old, new), *_ = [(a.node, b.node) for a, b in pairs if a.node != b.node]
        assert isinstance(old, Call)
        assert isinstance(new, Call)
        ((name, _), *_) = set(new.symbols) - set(old.symbols)
        if place == "call of fetch" and name in ("rows", "P"):
            yield lowered


@pytest.mark.parametrize(
    ("steps", "holds"), [({}, True), ({"k": (6,)}, True), ({"k": (5,)}, False)]
)
def test_short_tiles_of_every_step_are_looked_at(
    steps: dict[str, tuple[int, ...]], holds: bool
) -> None:
    """12 is 3 tiles of 4; cut into 6, 6 there are short tiles of 2; into 5, 5, 2 some of 1."""
    mapping = _whole(mapped(PRODUCT, MACHINE))
    (claim,) = mapping_demands(mapping, steps, mapped(PRODUCT, MACHINE).kernel.permissions, "C")
    assert claim.verdict == ("proved" if holds else "refuted")
    assert ("k = " in claim.detail) is not holds


def _whole(result: Result) -> Mapping:
    """Return the mapping with just k on the axis k, in tiles of 4."""
    for mapping in result.statements[0].mappings:
        on_axis = [str(form) for form in mapping.matching.on_axis("k")]
        if on_axis == ["k"] and mapping.tile["k"] == 4:
            return mapping
    raise AssertionError("no such mapping")


def test_a_tile_that_an_instruction_does_not_take_is_refuted() -> None:
    """As a certificate would say it that was made without looking at constraints."""
    evidence = certificate(PRODUCT).evidence
    strict = Constraint(var("k"), ">", const(4), "k > 4")
    (own,) = evidence.schedule.statements
    needle = own.mapping.matching.needle
    entry = replace(needle.entry, constraints=(strict,))
    matching = replace(own.mapping.matching, needle=replace(needle, entry=entry))
    schedule = replace(own, mapping=replace(own.mapping, matching=matching))
    other = replace(evidence, schedule=replace(evidence.schedule, statements=(schedule,)))
    (claim,) = [c for c in certify(other, LIMITS).claims if c.claim.startswith("k > 4")]
    assert claim.verdict == "refuted"
    assert "does not hold: k = " in claim.detail


def test_operands_that_must_be_one_register_are_claimed_to_be() -> None:
    result = mapped(CLIP, MACHINE)
    found = certificate(CLIP)
    assert found.verdict == "proved"
    assert told(found, "same") == [
        ("code", "a and r of clip are one register in each call", "proved")
    ]

    def apart(node: Node) -> Node | None:
        if not isinstance(node, Call) or node.instruction != "clip":
            return None
        places = dict(node.operands)
        return replace(node, operands=tuple((places | {"r": places["b"]}).items()))

    assert ("same", "refuted") in verdicts(result, changed(result.lowered, apart))


def test_the_numbers_of_a_table_are_claimed() -> None:
    found = certificate(SMOOTH, TOGETHER)
    text = "the kernel has the numbers that are built into smooth3"
    assert told(found, "tables") == [("Y", text, "proved")]


def test_a_constraint_that_calls_do_not_show_is_assumed() -> None:
    """A movement without lengths moves all positions; which of them are used, its call hides."""
    result = mapped(PRODUCT, MACHINE)
    strict = Constraint(var("i"), "<=", const(4), "i <= 4")
    entries = tuple(
        replace(e, constraints=(strict,)) if e.name == "set" else e
        for e in result.accelerator.entries
    )
    machine = replace(result.accelerator, entries=entries)
    found = code_demands(
        bind_extents(result.kernel),
        machine,
        result.lowered,
        tuple(sites(result.lowered)),
        frozenset({"mac"}),
    )
    assumed = [c for c in decide(found, LIMITS) if c.verdict == "assumed"]
    assert [c.claim for c in assumed] == ["i <= 4 of set holds in each call"]
