"""What isamap wants to reach of each family, over the best peer of the same run."""

from collections.abc import Sequence
from dataclasses import dataclass

from beside.peers import OWN, TUNED
from beside.record import Record, geometric_mean

BANDWIDTH = 0.9
"""The part of the measured bandwidth that is as good as any ratio, where memory is the limit."""


@dataclass(frozen=True)
class Goal:
    """The geometric mean of the ratios, on one core and on several, and the least of them."""

    one: float
    several: float
    least: float | None = None


_MATRICES, _IMAGES = Goal(1.15, 1.4, 0.97), Goal(1.02, 1.3, 0.95)
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
    wanted = goal.one if threads == 1 else goal.several
    ratios = [r.ratio for r in records if r.ratio is not None]
    mean = geometric_mean(ratios)
    least = goal.least if threads == 1 else None
    text = f"{wanted:g}" + (f", least {least:g}" if least is not None else "")
    if mean is None:
        return f"{text}: nothing to compare with"
    met = mean >= wanted and (least is None or min(ratios) >= least)
    if goal is _ROWS and not met:
        own = [(r, r.timing(OWN)) for r in records]
        shares = [r.share(t) or 0.0 for r, t in own if t is not None]
        met = bool(shares) and (geometric_mean(shares) or 0.0) >= BANDWIDTH
        text += f" or {BANDWIDTH:.0%} of the bandwidth"
    room = geometric_mean(r.room for r in records if r.room)
    if met:
        return f"{text}: met"
    if room is None or mean >= wanted:
        return f"{text}: not met"
    if room < wanted:
        return f"{text}: not met, the bound is {room:.2f}"
    return f"{text}: not met, it takes {wanted / room:.0%} of the bound"
