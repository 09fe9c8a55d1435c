"""All rules, in the order in which they are tried."""

from isamap.rewrite.rule import Rule

RULES: tuple[tuple[str, Rule], ...] = ()
"""Each rule with the name by which it can be chosen."""
