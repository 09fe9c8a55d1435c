"""Which few of many ranked candidates are tried: the best, and others that differ from them."""

from collections.abc import Sequence

from isamap_search.objective import Candidate

# A diverse candidate costs at most this many times the best, by the model.
_WORTH = 2.0
# Beyond these the model's ranking is not looked at: the choice takes quadratic time.
_LOOKED_AT = 2000


def best_and_diverse(ranked: Sequence[Candidate], count: int) -> list[Candidate]:
    """Return ``count`` of the ranked candidates at most, half of them the first ones.

    The others are taken one by one, each the one that differs in most choices from all taken so
    far, the better ranked one where several do; none is expected to take twice the least time.
    """
    if not count:
        return []
    taken = list(ranked[: (count + 1) // 2])
    least = min((candidate.cycles for candidate in ranked), default=0.0)
    rest = [c for c in ranked[len(taken) : _LOOKED_AT] if c.cycles <= _WORTH * least]
    apart = [min(_distance(c, other) for other in taken) for c in rest]
    while rest and len(taken) < count:
        at = max(range(len(rest)), key=lambda n: (apart[n], -n))
        taken.append(rest.pop(at))
        apart.pop(at)
        apart = [min(d, _distance(c, taken[-1])) for c, d in zip(rest, apart, strict=True)]
    return taken


def _distance(one: Candidate, other: Candidate) -> int:
    return sum(a != b for a, b in zip(one.point, other.point, strict=True))
