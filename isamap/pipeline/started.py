"""Kernels in which reductions begin by themselves, where other statements start them."""

from collections.abc import Sequence
from dataclasses import dataclass

from isamap.ir.nodes import Kernel
from isamap.rewrite.apply import judge
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.start_last import NAME, begins_alike, start_last


@dataclass(frozen=True, slots=True)
class Started:
    """A kernel, and the rewritings by which it came from the one that was written."""

    kernel: Kernel
    rewritings: tuple[Rewriting, ...] = ()


def started(kernel: Kernel, chosen: Sequence[str] | None) -> tuple[Started, ...]:
    """Return the kernels that compete: first the one without starts that reductions have anyway.

    The second one has all other starts last; there is none where none is left.  ``chosen`` are the
    names of rules that may be used, None for all.
    """
    if chosen is not None and NAME not in chosen:
        return (Started(kernel),)
    plain = _applied(Started(kernel), alike=True)
    last = _applied(plain, alike=False)
    return (plain,) if last is plain else (plain, last)


def _applied(before: Started, alike: bool) -> Started:
    """Apply the rule for as long as it finds something; ``alike`` to starts that change nothing."""
    while (found := _first(before.kernel, alike)) is not None:
        before = Started(normal(found.kernel), (*before.rewritings, found))
    return before


def _first(kernel: Kernel, alike: bool) -> Rewriting | None:
    own = normal(kernel)
    for number in range(len(own.statements)):
        for one in start_last(own, number):
            if (begins_alike(one) or not alike) and judge([one]).proved:
                return one
    return None
