from isamap_search.diverse import best_and_diverse
from isamap_search.objective import rank
from tests.search.bowl import model


def test_half_are_the_best_and_the_others_differ_from_them() -> None:
    ranked = rank(model(), 10_000, seed=0)
    taken = best_and_diverse(ranked, 10)
    assert taken[:5] == ranked[:5]
    assert len({c.point for c in taken}) == 10
    assert all(c.cycles <= 2 * ranked[0].cycles for c in taken)
    nearest = [
        min(sum(a != b for a, b in zip(c.point, o.point, strict=True)) for o in taken[:n])
        for n, c in enumerate(taken)
        if n >= 5
    ]
    assert nearest[0] == 3  # no choice in common with any of the best
    assert nearest == sorted(nearest, reverse=True)


def test_there_may_be_fewer() -> None:
    ranked = rank(model(), 10_000, seed=0)
    assert best_and_diverse(ranked[:3], 10) == ranked[:3]
    assert best_and_diverse([], 10) == []
    assert best_and_diverse(ranked, 1) == ranked[:1]
