"""What the writer of an unexpected token may have meant: other spellings, other languages."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import pairwise

from isamap.text.tables import Tables
from isamap.text.tokens import Token

_NEAR = 0.75
"""How alike a word and a keyword are, from 0 to 1: less would take 'i' for 'in'."""

_JOIN = "conditions are joined with & and |, each in parentheses: (a < b) & (c < d)"
_COMMENT = "a comment begins with #"
_PAIRS = {
    "-=": "there is no -=: add the negative, Y[i] += -X[i]",
    "/=": "there is no /=: multiply by the inverse, Y[i] *= 1 / X[i]",
    "&=": "this is written and=",
    "|=": "this is written or=",
    "^=": "this is written xor=",
    ":=": "elements are written with =",
    "**": "there is no power: write a product, X[i] * X[i]",
    "&&": _JOIN,
    "||": _JOIN,
    "][": "all indices stand in one pair of brackets: X[i, j]",
    "/*": _COMMENT,
}
"""Two tokens without a space between them, the second or the first of which is unexpected."""


def slip_hint(
    tokens: Sequence[Token], position: int, expected: frozenset[str], tables: Tables
) -> str | None:
    """Return what to write in place of the unexpected token at a position, where that is seen."""
    token = tokens[position]
    for one, other in pairwise(tokens[max(0, position - 1) : position + 2]):
        if one.end == other.start and (hint := _PAIRS.get(one.text + other.text)):
            return hint
    if token.text == "//":
        return _COMMENT
    if token.text == "==" and "ASSIGN" in expected:
        return _PAIRS[":="]
    word = meant(token, expected, tables)
    if word is None and position and expected <= {"LSQB", "LPAR"}:
        # The word before was taken for a buffer's or a kernel's name.
        word = meant(tokens[position - 1], tables.shown, tables)
    return f"did you mean '{tables.shown[word]}'?" if word else None


def meant(token: Token, kinds: Iterable[str], tables: Tables) -> str | None:
    """Return which of some keywords a name is nearly spelled like."""
    if token.kind != "NAME":
        return None
    words = {tables.shown[kind]: kind for kind in kinds if tables.shown.get(kind, "").isalpha()}
    close = get_close_matches(token.text.lower(), words, n=1, cutoff=_NEAR)
    return words[close[0]] if close else None
