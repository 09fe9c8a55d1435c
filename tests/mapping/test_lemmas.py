"""The lemmas of a placement are proved exactly where the laws hold, by ranks and by brute force."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.nodes import Instruction
from isamap.mapping.checks.lemmas import mixed_radix, placement_lemmas, prove_placement
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.mapping.checks.script import Names
from isamap.mapping.laws.enumerate import components
from isamap.mapping.laws.laws import Placed, breaches, is_legal
from isamap.mapping.laws.placements import local_placements
from isamap.mapping.laws.problem import Local, problem
from isamap.solver.lemma import Lemma, prove
from tests.mapping.running import all_placements, roomy
from tests.mapping.small import DOT, GEMM, KERNELS, LANES, OUTER, root

MATRIX_PRODUCT = Local(
    3,
    (((1, 0, 0), (0, 1, 0)), ((1, 0, 0), (0, 0, 1)), ((0, 0, 1), (0, 1, 0))),
    (frozenset({0, 1}), frozenset({0, 2}), frozenset({2, 1})),
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    3,
    (frozenset({0, 1, 2}),),
)


@pytest.mark.parametrize(
    ("name", "inner"),
    [("conv1d", GEMM), ("strided", LANES), ("gemv", OUTER), ("scatter", DOT), ("flipped", DOT)],
    ids=lambda i: i.name if isinstance(i, Instruction) else i,
)
def test_proved_is_legal_on_the_tile(name: str, inner: Instruction) -> None:
    kernel = KERNELS[name]
    needle, operands = root(kernel, inner)
    whole = problem(kernel, needle, operands)
    (filling,) = whole.fillings
    tile = {v.name: v.extent.constant or 0 for v in kernel.variables}
    verdicts = set()
    for matching in all_placements(kernel, needle, operands):
        placed = whole.placed(matching.placements)
        assert placed is not None
        verdict = prove_placement(whole.local(filling), placed).verdict
        assert (verdict == "proved") == legal_on_tile(roomy(matching, tile), tile)
        verdicts.add(verdict)
    assert verdicts == {"proved", "refuted"}


@given(st.data())
def test_proved_is_legal_by_ranks(data: st.DataObject) -> None:
    """Statements, instructions and witnesses of any kind."""
    size, axes = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    vectors = st.tuples(*[st.integers(-2, 3)] * size).filter(any)
    operands = data.draw(st.integers(2, 4))
    seen = st.frozensets(st.integers(0, axes - 1))
    witness = st.frozensets(st.integers(1, operands - 1)).map(lambda w: w | {0})
    units = tuple(tuple(int(v == u) for u in range(size)) for v in range(size))
    forms = tuple(dict.fromkeys((*units, *data.draw(st.lists(vectors, max_size=2)))))
    local = Local(
        size,
        tuple(tuple(data.draw(st.lists(vectors, max_size=2))) for _ in range(operands)),
        tuple(data.draw(seen) for _ in range(operands)),
        forms,
        axes,
        tuple(data.draw(st.lists(witness, min_size=1, max_size=2, unique=True))),
    )
    pairs = st.sampled_from(list(product(range(len(forms)), range(axes))))
    placed = data.draw(st.frozensets(pairs, max_size=5))
    proved = prove_placement(local, placed).verdict
    assert proved == ("proved" if is_legal(local, placed) else "refuted")
    each = {prove(lemma).verdict for lemma in placement_lemmas(local, placed)}
    assert each <= {"proved", "refuted"}
    assert ("refuted" in each) == (proved == "refuted")


@pytest.mark.parametrize("name", KERNELS)
def test_all_that_is_listed_is_proved(name: str) -> None:
    needle, operands = root(KERNELS[name], GEMM)
    whole = problem(KERNELS[name], needle, operands)
    for component in components(whole.local(whole.fillings[0])):
        for placed in local_placements(component.local, "every").found:
            assert prove_placement(component.local, placed).verdict == "proved"


@pytest.mark.parametrize(
    ("placed", "law"),
    [
        ({(0, 1)}, "law 1"),  # m on the axis that only the second input and the target see
        ({(2, 0)}, "law 2"),  # k on an axis of the target
        ({(0, 2), (2, 2)}, "law 1"),  # m where the target does not see it
        ({(2, 2), (2, 0)}, "law 2"),
    ],
)
def test_the_broken_law_is_named(placed: Placed, law: str) -> None:
    names = Names(("m", "n", "k"), ("c", "a", "b"))
    lemmas = placement_lemmas(MATRIX_PRODUCT, frozenset(placed), names)
    refuted = [lemma for lemma in lemmas if prove(lemma).verdict == "refuted"]
    assert law in {lemma.name for lemma in refuted}
    numbers = {f"law {b.law}" for b in breaches(MATRIX_PRODUCT, frozenset(placed))}
    assert law in numbers


def test_padding_is_a_law_of_its_own() -> None:
    """A sum of one input with two digits of one variable: a stray adds live elements."""
    local = Local(
        1, (((1,),), ((1,),)), (frozenset({0}), frozenset({1})), ((1,),), 2, (frozenset({0}),)
    )
    refuted = [
        lemma.name
        for lemma in placement_lemmas(local, frozenset({(0, 0), (0, 1)}))
        if prove(lemma).verdict == "refuted"
    ]
    assert refuted == ["law 4"]


def test_a_forbidden_order_is_refuted() -> None:
    barred = replace(MATRIX_PRODUCT, barred=frozenset({(2, 2)}))
    assert prove_placement(MATRIX_PRODUCT, frozenset({(2, 2)})).verdict == "proved"
    assert prove_placement(barred, frozenset({(2, 2)})).verdict == "refuted"
    assert prove_placement(barred, frozenset({(0, 0)})).verdict == "proved"


def test_a_counterexample_is_of_the_tile() -> None:
    names = Names(("m", "n", "k"), ("c", "a", "b"))
    (lemma,) = (
        found
        for found in placement_lemmas(MATRIX_PRODUCT, frozenset({(2, 0)}), names)
        if found.name == "law 2"
    )
    values = dict(prove(lemma).counterexample)
    assert values["k"] != values["k'"]
    assert max(int(values["k"]), int(values["k'"])) < int(values["extent of k"])


def test_mixed_radix() -> None:
    lemma = mixed_radix()
    assert prove(lemma).verdict == "proved"
    weaker = lemma.script.replace("(< inner radix)", "(<= inner radix)")
    assert prove(Lemma(lemma.name, lemma.claim, weaker)).verdict == "refuted"
