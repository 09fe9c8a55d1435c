"""All rules, in the order in which they are tried."""

from isamap.rewrite.offset import flip_sign, zero_points
from isamap.rewrite.rule import Rule

RULES: tuple[tuple[str, Rule], ...] = (
    ("flip-sign", flip_sign),
    ("zero-points", zero_points),
)
"""Each rule with the name by which it can be chosen."""
