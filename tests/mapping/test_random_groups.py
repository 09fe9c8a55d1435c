"""Random instructions of several statements on random runs of statements: all judges agree.

A reduction, or a single step, is followed by a term that is added, and by bounds.  What the
solver lists is what the checker finds legal; a few of either are put to the laws' meaning on a
tile, to the lemmas, and to an execution that sums first and computes what follows once for each
element.
"""

import random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from isamap.diagnostics import Source
from isamap.ir.nodes import Instruction, Statement
from isamap.ir.statements import reduces
from isamap.mapping.checks.legal import violations
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.groups import groups, whole_variables
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Matching, Needle
from isamap.mapping.needles.needles import Bindings, needles, roots
from isamap.text.load import parse_instructions, parse_module
from tests.mapping.running import all_placements, roomy, runs_right
from tests.mapping.small import STORAGES, machine
from tests.mapping.test_thousand import proved
from tests.profiles import examples

FEW = 3
FIRST = (("+=", "*"), ("+=", "-"), ("max=", "+"), ("=", "*"))
"""Reductions and bodies of the first statement."""


@st.composite
def tails(draw: st.DrawFn) -> tuple[bool, bool]:
    """Whether a term is added, and whether the value is bounded; one of them at least."""
    return draw(st.sampled_from([(True, False), (False, True), (True, True)]))


@st.composite
def texts(
    draw: st.DrawFn,
    names: str,
    extents: dict[str, int],
    body: tuple[str, str],
    tail: tuple[bool, bool],
    head: str,
    place: str,
) -> str:
    """A kernel, or an instruction, of two or three statements over some variables."""
    reduction, op = body
    upper = head.startswith("kernel")
    t, u, c, a, b, d = "TUYABD" if upper else "tucabd"
    some = st.lists(st.sampled_from([*names]), unique=True)
    out = [*names] if reduction == "=" else draw(some)
    left, right = draw(some), draw(some)
    assume(set(names) == {*out, *left, *right})
    term = draw(st.lists(st.sampled_from(out), unique=True)) if out else []

    def buffer(role: str, name: str, own: list[str], at: str = place) -> str:
        return f"  {role} {name} : s64[{', '.join(str(extents[n]) for n in own)}]{at}\n"

    def element(name: str, own: list[str]) -> str:
        return f"{name}[{', '.join(own)}]"

    add, bound = tail
    lines = [f"{element(t, out)} {reduction} {element(a, left)} {op} {element(b, right)}"]
    last = u if add and bound else c
    if add:
        lines.append(f"{element(last, out)} = {element(t, out)} + {element(d, term)}")
    if bound:
        before = element(u if add else t, out)
        lines.append(f"{element(c, out)} = min(max({before}, 7), 900000000)")
    return (
        f"{head} {{\n"
        + buffer("in", a, left)
        + buffer("in", b, right)
        + (buffer("in", d, term) if add else "")
        + buffer("local", t, out, "")
        + (buffer("local", u, out, "") if add and bound else "")
        + buffer("out", c, out)
        + "".join(f"  for {n} in 0..{extents[n]}\n" for n in names)
        + "".join(f"  {line}\n" for line in lines)
        + "}"
    )


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Statement, Needle, Bindings]:
    body, tail = draw(st.sampled_from(FIRST)), draw(tails())
    lanes = draw(st.sampled_from(["i", "ij", "ijk"]))
    inner = draw(texts(lanes, dict.fromkeys(lanes, 6), body, tail, "instruction x", " @ reg"))
    names = draw(st.sampled_from(["u", "uv", "uvw"]))
    extents = {n: draw(st.integers(2, 3)) for n in names}
    outer = draw(texts(names, extents, body, tail, "kernel k", ""))
    (instruction,) = instructions(inner)
    (kernel,) = parse_module(outer).kernels
    whole = max(groups(kernel), key=lambda group: group.count)
    assume(whole.count == len(kernel.statements))
    index = needles(machine(instruction))
    found = [r for r in roots(whole.statement, index) if not r[0].fixed and not r[0].tied]
    assume(found)
    return whole.statement, *found[0]


def instructions(text: str) -> tuple[Instruction, ...]:
    storages = frozenset(storage.name for storage in STORAGES)
    return tuple(parse_instructions(Source("made", text), storages))


@examples(2)
@given(pairs(), st.integers(0, 1 << 30))
def test_all_judges_agree(pair: tuple[Statement, Needle, Bindings], seed: int) -> None:
    statement, needle, operands = pair
    assert reduces(statement.value) or statement.reduction == "="
    whole = problem(statement, needle, operands)
    assume(len(whole.forms) * len(whole.axes) <= 8)
    found, complete, reason = enumerate_matchings(
        statement, needle, operands, 10**6, listed="every"
    )
    assert complete, reason
    # What comes after a reduction needs all of it at once.
    must = whole_variables(statement)
    listed = {frozenset(m.placements) for m in found if must <= set(m.inner)}
    legal: list[Matching] = []
    illegal: list[Matching] = []
    for matching in all_placements(statement, needle, operands):
        (illegal if violations(matching) else legal).append(matching)
    assert listed == {frozenset(m.placements) for m in legal}
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    tile = {v.name: v.extent.constant or 0 for v in statement.variables}
    for matching in choose.sample(legal, min(FEW, len(legal))):
        on_axes = roomy(matching, tile, spare=seed % 2)
        assert legal_on_tile(on_axes, tile)
        assert runs_right(on_axes, tile, rng)
        assert proved(statement, needle, operands, matching)
    for matching in choose.sample(illegal, min(FEW, len(illegal))):
        if must <= set(matching.inner):
            assert not proved(statement, needle, operands, matching)
            assert not legal_on_tile(roomy(matching, tile), tile)
