"""How far walks through memory go, and how fast what they touch comes."""

from dataclasses import replace
from fractions import Fraction

import pytest

from isamap.hw.accelerator import Storage
from isamap.pipeline.source import load_hardware
from isamap.schedule.walk import (
    FOLLOWED,
    IN_FLIGHT,
    cycles_a_byte,
    unforeseen,
    walk,
)

MEMORY = Storage("memory", "memory", read=Fraction(10), latency=Fraction(320))


def test_a_walk_goes_on_where_steps_meet() -> None:
    # Rows of 62 steps of 16, each row 1000 after the one before.
    assert walk(16, [(62, 16), (5, 1000)]) == 992 + 4 * 1000
    # Four rows side by side: the next four begin elsewhere.
    assert walk(16, [(62, 16), (5, 4000)]) == 992
    # Two rows leave out as much as they touch.
    assert walk(16, [(64, 16), (5, 2048)]) == 1024


def test_walks_side_by_side_are_one_once_they_meet() -> None:
    # Four rows side by side, 1000 apart, which 62 steps walk: then the next four.
    rows = [1000 * n for n in range(4)]
    assert walk(16, [(62, 16), (5, 4000)], rows) == 992 + 3000 + 4 * 4000
    # Two pairs of rows: each pair is one walk, and the next begins elsewhere.
    assert walk(16, [(62, 16), (5, 40000)], [0, 1000, 20000, 21000]) == 1992
    # Rows that are walked in part only do not meet.
    assert walk(16, [(8, 16), (5, 4000)], rows) == 128


def test_a_description_says_how_hardware_looks_ahead() -> None:
    assert load_hardware("x86_amx").regional
    assert not load_hardware("x86_avx512").regional


def test_loops_that_stand_still_or_run_once_change_nothing() -> None:
    assert walk(16, [(8, 0), (1, 5000), (4, 16)]) == 64


def test_walks_backwards_are_as_long() -> None:
    assert walk(16, [(4, -16)]) == walk(16, [(4, 16)])


@pytest.mark.parametrize(("beside", "part"), [(1, 0.5), (2, 0.5), (8, 0.25)])
def test_several_walks_wait_together(beside: int, part: float) -> None:
    assert unforeseen(2 * FOLLOWED, beside) == part


def test_all_of_a_short_walk_is_unforeseen() -> None:
    assert unforeseen(FOLLOWED / 4, 1) == 1.0


def test_what_nobody_foresees_comes_by_its_latency() -> None:
    alone = IN_FLIGHT * 64 / 320
    assert cycles_a_byte(MEMORY, 0.0) == pytest.approx(1 / 10)
    assert cycles_a_byte(MEMORY, 1.0) == pytest.approx(1 / alone)
    assert cycles_a_byte(MEMORY, 0.5) == pytest.approx((1 / 10 + 1 / alone) / 2)


def test_a_short_latency_makes_nothing_faster() -> None:
    near = replace(MEMORY, latency=Fraction(4))
    assert cycles_a_byte(near, 1.0) == cycles_a_byte(near, 0.0)


def test_a_storage_without_a_rate_takes_no_time() -> None:
    assert cycles_a_byte(replace(MEMORY, read=None), 1.0) == 0.0
