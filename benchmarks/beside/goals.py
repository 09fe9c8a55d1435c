"""What isamap wants to reach of each family, over the best peer of the same run."""

from collections.abc import Sequence
from dataclasses import dataclass

from beside.cases import Case
from beside.peers import OWN, TUNED
from beside.record import Record, geometric_mean

BANDWIDTH = 0.9
"""The part of the measured bandwidth that is as good as any ratio, where memory is the limit."""


@dataclass(frozen=True)
class Goal:
    """The geometric mean of the ratios, on one core and on several, and the least of them.

    On one core those of ``small`` products have a mean of their own.
    """

    one: float
    several: float
    least: float | None = None
    small: float | None = None


_MATRICES, _IMAGES = Goal(1.15, 1.4, 0.97, 1.3), Goal(1.02, 1.3, 0.95)
_ROWS = Goal(1.2, 1.2)

GOALS = {
    "gemm_f32": Goal(1.08, 1.4, 0.97),
    "linear_f32": Goal(1.08, 1.4, 0.97),
    **dict.fromkeys(("gemm_bf16", "gemm_u8s8", "linear_bf16", "linear_u8s8"), _MATRICES),
    **dict.fromkeys(("conv_f32", "conv_bf16", "pw_f32", "pw_bf16"), _IMAGES),
    **dict.fromkeys(("conv_u8s8", "pw_u8s8"), Goal(1.06, 1.3, 0.95)),
    "conv3x3_f32": Goal(1.4, 1.6),
    "dw_f32": Goal(1.8, 2.0),
    **dict.fromkeys(("dw_bf16", "dw_u8s8"), Goal(1.5, 2.0)),
    "dsblock_f32": Goal(1.1, 1.5),
    **dict.fromkeys(("softmax_f32", "layernorm_f32"), _ROWS),
    **dict.fromkeys(("silu_f32", "residual_f32", "chain_f32"), _ROWS),
}


FIRST = Goal(0.9, 0.9)
"""What a first schedule is to reach of the best one that a search finds."""


def judged(family: str, records: Sequence[Record], threads: int) -> str:
    """Return the goal of a family and whether these records meet it.

    Of one that is not met it tells what part of the bound would meet it, as long as all do.
    """
    others = {t.peer for r in records for t in r.timings} - {OWN}
    goal = FIRST if others == {TUNED.name} else GOALS[family]
    alone = threads == 1
    wanted = goal.one if alone else goal.several
    compared = [r for r in records if r.ratio is not None]
    mean = _mean(compared)
    small = [r for r in compared if is_small(r.case)] if alone and goal.small is not None else []
    least = goal.least if alone else None
    text = f"{wanted:g}"
    text += f", small {goal.small:g}" if small else ""
    text += f", least {least:g}" if least is not None else ""
    if mean is None:
        return f"{text}: nothing to compare with"
    if goal is _ROWS and mean < wanted:
        own = [(r, r.timing(OWN)) for r in records]
        shares = [r.share(t) or 0.0 for r, t in own if t is not None]
        text += f" or {BANDWIDTH:.0%} of the bandwidth"
        if shares and (geometric_mean(shares) or 0.0) >= BANDWIDTH:
            return f"{text}: met"
    missed = [_missed("", compared, mean, wanted)] if mean < wanted else []
    if small and goal.small is not None and (own_mean := _mean(small) or 0.0) < goal.small:
        missed.append(_missed(f"small {own_mean:.2f}", small, own_mean, goal.small))
    worst = min(compared, key=lambda r: r.ratio or 0.0)
    if least is not None and (lowest := worst.ratio or 0.0) < least:
        missed.append(_missed(f"least {lowest:.2f}", [worst], lowest, least))
    if not missed:
        return f"{text}: met"
    why = "; ".join(filter(None, missed))
    return f"{text}: not met" + (f", {why}" if why else "")


def is_small(case: Case) -> bool:
    """Return whether a product has few columns, or is a square of few rows."""
    sizes = [case.get(name, 0) for name in ("m", "n", "k")]
    return 0 < sizes[1] <= 32 or (len(set(sizes)) == 1 and 0 < sizes[0] <= 128)


def _mean(records: Sequence[Record]) -> float | None:
    return geometric_mean(r.ratio for r in records if r.ratio is not None)


def _missed(what: str, records: Sequence[Record], reached: float, wanted: float) -> str:
    """Return what a missed goal would take: of the bound, as long as all do."""
    room = geometric_mean(r.room for r in records if r.room)
    told = [what] if what else []
    if room is not None:
        told.append(
            f"the bound is {room:.2f}"
            if room < wanted
            else f"it takes {wanted / room:.0%} of the bound"
        )
    return ", ".join(told)
