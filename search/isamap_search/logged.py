"""What the values of a log can be: a replay looks at what it takes from a stranger's file."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Protocol, TypeAlias

Fits: TypeAlias = Callable[[Any], bool]
"""Says whether a logged value is one that the search could have met."""


class Options(Protocol):
    """A choice of a space."""

    @property
    def options(self) -> Sequence[str]:
        """What it may be."""
        ...


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number from 0."""
    return type(value) is int and value >= 0


def is_flag(value: Any) -> bool:
    """Return whether a value is true or false."""
    return type(value) is bool


def is_time(value: Any) -> bool:
    """Return whether a value is a finite number above 0."""
    return type(value) in (int, float) and isfinite(value) and value > 0


def is_value(value: Any) -> bool:
    """Return whether a value is a finite number from 0."""
    return type(value) in (int, float) and isfinite(value) and value >= 0


def point_of(choices: Sequence[Options]) -> Fits:
    """Return what says whether a value is a point of a space."""
    sizes = [len(choice.options) for choice in choices]

    def fits(value: Any) -> bool:
        if not isinstance(value, list) or len(value) != len(sizes):
            return False
        return all(is_count(n) and n < size for n, size in zip(value, sizes, strict=True))

    return fits


def list_of(each: Fits) -> Fits:
    """Return what says whether a value is a list of such."""
    return lambda value: isinstance(value, list) and all(map(each, value))


def samples_of(runners: int, rounds: int) -> Fits:
    """Return what says whether a value is the samples of so many candidates in so many rounds.

    None stands for one that failed; those of the others are equally many.
    """

    def fits(value: Any) -> bool:
        if not isinstance(value, list) or len(value) != runners:
            return False
        taken = [own for own in value if own is not None]
        if not all(map(list_of(is_time), taken)):
            return False
        lengths = {len(own) for own in taken}
        return not lengths or (len(lengths) == 1 and 1 <= lengths.pop() <= rounds)

    return fits


def news_of(choices: Sequence[Options], outcomes: Sequence[str]) -> Fits:
    """Return what says whether a value is what others have finished: point, outcome, values."""
    is_point, are_values = point_of(choices), list_of(is_value)

    def fits(value: Any) -> bool:
        if not isinstance(value, list) or len(value) != 3:
            return False
        point, outcome, values = value
        return is_point(point) and outcome in outcomes and are_values(values)

    return list_of(fits)
