"""The parser's tables: made from the grammar by Lark, shipped as JSON, read without Lark.

``python -m isamap.text.tables`` writes them anew; a test checks that they are fresh.  Reading them
takes a millisecond, building them with Lark a fifth of a second.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from isamap.resources import shipped

TABLES = Path(__file__).with_name("tables.json")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a reduction does: how many symbols it takes, and which of them the builder sees.

    ``name`` is the alias or the rule's name; names that begin with ``_`` are splices: their
    children belong to the rule around them.  ``single`` rules stand for their only child.
    """

    origin: str
    name: str
    size: int
    kept: tuple[int, ...]
    single: bool


@dataclass(frozen=True, slots=True)
class Tables:
    """A lexer and an LALR automaton.

    ``actions[state][terminal]`` is the next state of a shift, or ``-1 - rule`` of a reduction;
    ``gotos[state][origin]`` is the state after a reduction.  ``shown`` is how a terminal that is
    a fixed text is written.
    """

    lexer: re.Pattern[str]
    ignored: frozenset[str]
    keywords: dict[str, str]
    shown: dict[str, str]
    rules: tuple[Rule, ...]
    actions: tuple[dict[str, int], ...]
    gotos: tuple[dict[str, int], ...]
    start: int


@cache
def load_tables() -> Tables:
    """Return the shipped tables."""
    data = json.loads(TABLES.read_text(encoding="utf-8"))
    parts = [f"(?P<{name}>{pattern})" for name, pattern in data["terminals"]]
    return Tables(
        lexer=re.compile("|".join(parts)),
        ignored=frozenset(data["ignored"]),
        keywords=data["keywords"],
        shown=data["shown"],
        rules=tuple(Rule(o, n, size, tuple(kept), one) for o, n, size, kept, one in data["rules"]),
        actions=tuple(data["actions"]),
        gotos=tuple(data["gotos"]),
        start=data["start"],
    )


def grammar_text() -> str:
    """Return the text of the grammar."""
    return (shipped("grammars") / "isamap.lark").read_text(encoding="utf-8")


def build(grammar: str) -> dict[str, Any]:
    """Return the tables of a grammar as plain data."""
    from lark import Lark  # needed only here
    from lark.lexer import PatternStr
    from lark.parsers.lalr_analysis import Shift

    parser = Lark(grammar, parser="lalr", lexer="basic", start="file", maybe_placeholders=False)
    table: Any = parser.parser.parser._parse_table
    fixed = {t.name: t.pattern.value for t in parser.terminals if isinstance(t.pattern, PatternStr)}
    words = {text: name for name, text in fixed.items() if text.isalpha()}
    ordered = sorted(
        (t for t in parser.terminals if t.name not in words.values()),
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    found = {a[1] for row in table.states.values() for a in row.values() if a[0] is not Shift}
    rules = sorted(found, key=lambda rule: (_rule(rule), [s.name for s in rule.expansion]))
    numbers = {rule: n for n, rule in enumerate(rules)}
    terminals = {t.name for t in parser.terminals} | {"$END"}
    order = _states(table)
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in order:
        row = sorted(table.states[state].items())
        actions.append(
            {
                name: order[target] if action is Shift else -1 - numbers[target]
                for name, (action, target) in row
                if name in terminals
            }
        )
        gotos.append({n: order[target] for n, (_, target) in row if n not in terminals})
    return {
        "terminals": [[t.name, t.pattern.to_regexp()] for t in ordered],
        "ignored": sorted(parser.ignore_tokens),
        "keywords": words,
        "shown": fixed,
        "rules": [_rule(rule) for rule in rules],
        "actions": actions,
        "gotos": gotos,
        "start": order[table.start_states["file"]],
    }


def _states(table: Any) -> dict[int, int]:
    """Number the states as they are reached: Lark's own numbers differ from run to run."""
    order: dict[int, int] = {}
    waiting = [table.start_states["file"]]
    while waiting:
        state = waiting.pop(0)
        if state not in order:
            order[state] = len(order)
            row = sorted(table.states[state].items())
            waiting += [target for _, (_, target) in row if isinstance(target, int)]
    return order


def _rule(rule: Any) -> list[Any]:
    kept = [
        n
        for n, symbol in enumerate(rule.expansion)
        if not (symbol.is_term and symbol.filter_out) or rule.options.keep_all_tokens
    ]
    origin = str(rule.origin.name)
    single = bool(rule.options.expand1 and rule.alias is None and len(kept) == 1)
    return [origin, str(rule.alias or origin), len(rule.expansion), kept, single]


def dump(tables: dict[str, Any]) -> str:
    """Return the text of the table file."""
    return json.dumps(tables, separators=(",", ":"), sort_keys=True) + "\n"


if __name__ == "__main__":
    TABLES.write_text(dump(build(grammar_text())), encoding="utf-8")
