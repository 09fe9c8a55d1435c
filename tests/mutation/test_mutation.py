"""Every mutant of a lowered kernel is caught, or computes the same: a few of every example."""

import pytest

from tests.mutation.faults import FAULTS
from tests.mutation.survey import MACHINES, distinct_examples, survey

EXAMPLES = distinct_examples()


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


def test_there_are_many_kinds_of_fault() -> None:
    assert len(FAULTS) >= 12
