"""All rules, in the order in which they are tried."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from isamap.ir.nodes import Statement
from isamap.rewrite.alike import NAME as SHARE
from isamap.rewrite.alike import share_local
from isamap.rewrite.by_exp import NAME as BY_EXP
from isamap.rewrite.by_exp import REPLACED as SIGMOID
from isamap.rewrite.by_exp import sigmoid_by_exp
from isamap.rewrite.choice_last import NAME as CHOICE_LAST
from isamap.rewrite.choice_last import choice_last
from isamap.rewrite.contraction import contract
from isamap.rewrite.digits import NAME as DIGITS
from isamap.rewrite.digits import split_variables
from isamap.rewrite.inverse import NAME as BY_INVERSE
from isamap.rewrite.inverse import by_inverse
from isamap.rewrite.join_rows import NAME as ROWS
from isamap.rewrite.join_rows import join_rows
from isamap.rewrite.limits import NAME as LIMITS
from isamap.rewrite.limits import move_limits
from isamap.rewrite.multiplier import NAME as BY_MULTIPLIER
from isamap.rewrite.multiplier import by_multiplier
from isamap.rewrite.narrow import narrow_arithmetic
from isamap.rewrite.narrow_copies import narrow_copies
from isamap.rewrite.narrow_factors import narrow_factors
from isamap.rewrite.offset import flip_sign, zero_points
from isamap.rewrite.once import NAME as ONCE
from isamap.rewrite.once import compute_once
from isamap.rewrite.partial import NAME as SPLIT
from isamap.rewrite.partial import splitting
from isamap.rewrite.positions import NAME as POSITIONS
from isamap.rewrite.positions import positions_from_memory
from isamap.rewrite.reciprocal import REPLACED as DIVIDED
from isamap.rewrite.reciprocal import reciprocal
from isamap.rewrite.rule import Rule
from isamap.rewrite.shape import Shapes
from isamap.rewrite.shaped import COPY, INSERT, REASSOCIATE, copying, inserting, reassociating
from isamap.rewrite.shifts import NAME as BY_SHIFT
from isamap.rewrite.shifts import by_shift
from isamap.rewrite.spelled import BY_SUM, IN_STEPS, SPELLED
from isamap.rewrite.split_terms import split_terms
from isamap.rewrite.start_last import NAME as START
from isamap.rewrite.start_last import start_last
from isamap.rewrite.steps import LAST as LAST_STEP
from isamap.rewrite.steps import NAME as STEPS
from isamap.rewrite.steps import in_steps, last_step
from isamap.rewrite.turned import NAME as TURN
from isamap.rewrite.turned import turn_windows
from isamap.rewrite.widen import NAME as WIDEN
from isamap.rewrite.widen import widening
from isamap.rewrite.winograd import winograd

Named: TypeAlias = tuple[str, Rule]

RULES: tuple[Named, ...] = (
    ("contract", contract),
    (CHOICE_LAST, choice_last),
    (DIGITS, split_variables),
    ("flip-sign", flip_sign),
    ("zero-points", zero_points),
    ("narrow-arithmetic", narrow_arithmetic),
    ("narrow-copies", narrow_copies),
    ("narrow-factors", narrow_factors),
    ("split-terms", split_terms),
    ("winograd", winograd),
    (ROWS, join_rows),
    ("reciprocal", reciprocal),
    (BY_INVERSE, by_inverse),
    (BY_SHIFT, by_shift),
    (BY_MULTIPLIER, by_multiplier),
    (BY_EXP, sigmoid_by_exp),
    *SPELLED,
    (LIMITS, move_limits),
    (ONCE, compute_once),
    (POSITIONS, positions_from_memory),
    (STEPS, in_steps),
    (TURN, turn_windows),
)
"""The rules that need to know nothing of a machine, each with the name that chooses it."""

NAMES = (
    REASSOCIATE,
    INSERT,
    COPY,
    *(name for name, _ in RULES),
    LAST_STEP,
    SPLIT,
    WIDEN,
    START,
    SHARE,
)
"""The names of all rules."""

APPROXIMATED = frozenset((DIVIDED, SIGMOID))
"""Operations on floats that rules compute in another way where that may be a little off."""

WHOLE = frozenset((START, SHARE))
"""Rules of several statements: kernels compete, not what becomes of a statement."""

SHAPED = frozenset((REASSOCIATE, INSERT, COPY))
"""Rules that bring a value into an instruction's shape: one of them is enough for a statement."""

ITSELF = frozenset((LAST_STEP,))
"""Rules for shapes that a value has by itself: those that others give it do not count."""

FINAL = frozenset((REASSOCIATE,))
"""Rules after which no other one finds what it would not have found before."""

UNMAPPED = frozenset((COPY, STEPS, LAST_STEP, BY_SUM, IN_STEPS, TURN))
"""Rules that gain nothing for a statement that has mappings, unless each call of the best one does
one iteration only, or waits for its operands as long as it works.
"""


def rules_for(
    bodies: Iterable[Statement], chosen: Sequence[str] | None = None
) -> tuple[Named, ...]:
    """Return the rules for a machine whose instructions have these statements.

    ``chosen`` are names of :data:`NAMES`; None chooses all but those of several statements.
    """
    shapes = Shapes(tuple(bodies))
    every: tuple[Named, ...] = (
        (REASSOCIATE, reassociating(shapes)),
        (INSERT, inserting(shapes)),
        (COPY, copying(shapes)),
        *RULES,
        (LAST_STEP, last_step(shapes)),
        (SPLIT, splitting(shapes)),
        (WIDEN, widening(shapes)),
        (START, start_last),
        (SHARE, share_local),
    )
    if chosen is None:
        chosen = [name for name in NAMES if name not in WHOLE]
    return tuple((name, rule) for name, rule in every if name in chosen)
