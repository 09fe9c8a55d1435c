"""Units that several queues share."""

import random

from isamap.sim.shared import Lanes


def test_what_comes_later_takes_what_is_left_free_before() -> None:
    unit = Lanes(1)
    unit.take(100, 50)
    assert unit.next(0, 100) == 0
    assert unit.next(0, 101) == 150
    assert unit.next(120, 1) == 150
    unit.take(0, 100)
    assert unit.next(0, 1) == 150


def test_of_two_the_one_that_is_free_is_taken() -> None:
    units = Lanes(2)
    units.take(0, 10)
    assert units.next(0, 10) == 0
    units.take(0, 10)
    assert units.next(0, 10) == 10


def test_nothing_is_taken_twice() -> None:
    chance = random.Random(3)
    unit, taken = Lanes(1), set[int]()
    for _ in range(300):
        length = chance.randint(1, 9)
        start = unit.next(chance.randint(0, 900), length)
        assert not taken & set(range(start, start + length))
        taken |= set(range(start, start + length))
        unit.take(start, length)
    for time in range(1000):
        assert (unit.next(time, 1) == time) == (time not in taken)
