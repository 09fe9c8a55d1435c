"""From text to tokens, and from offsets to places in a file."""

from bisect import bisect_right
from typing import NamedTuple

from isamap.diagnostics import Collector, Diagnostic, Source, Span, fail
from isamap.text.tables import Tables

MAX_NESTING = 100
"""Deepest nesting of brackets and of operations: what comes after the parser is recursive."""

_MAX_NAME = 100
_SHOWN = 30
_OPENING = frozenset(("LPAR", "LSQB", "LBRACE"))
_CLOSING = frozenset(("RPAR", "RSQB", "RBRACE"))
_MEANT = {
    '"': 'the text ends with " on the same line',
    "?": "a choice is written select(condition, value, other)",
    ";": "nothing stands between statements: each begins a new line",
    "!": "the opposite of a condition is written ~(a < b)",
}


class Token(NamedTuple):
    """A terminal with its text, its offsets in the source, and whether it is the first of its
    line.
    """

    kind: str
    text: str
    start: int
    end: int
    first: bool


class Places:
    """The lines of a source: turns offsets into spans."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._starts = [0]
        position = source.text.find("\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = source.text.find("\n", position + 1)

    def line(self, offset: int) -> int:
        """Return the number of the line of the source, from 1, that holds an offset."""
        return bisect_right(self._starts, offset)

    def line_start(self, offset: int) -> int:
        """Return the offset at which the line of an offset begins."""
        return self._starts[self.line(offset) - 1]

    def span(self, start: int, end: int) -> Span:
        """Return the span of the characters ``start`` to ``end`` (exclusive) in the file."""
        source = self.source
        line, end_line = self.line(start), self.line(max(start, end - 1))
        column = start - self._starts[line - 1] + 1
        end_column = end - self._starts[end_line - 1] + 1
        shift, indent = source.first_line - 1, source.indent
        return Span(source, line + shift, column + indent, end_line + shift, end_column + indent)


def tokenize(places: Places, tables: Tables, errors: Collector) -> list[Token]:
    """Return the tokens of a text, ``$END`` last.

    Characters that are not of the language and numbers that are none are reported; they stay, so
    that the text around them is still checked.
    """
    text = places.source.text
    keywords, ignored = tables.keywords, tables.ignored
    found: list[Token] = []
    fresh, depth, stray = True, 0, -1
    for match in tables.lexer.finditer(text):
        kind = match.lastgroup
        assert kind is not None
        start, end = match.span()
        if kind in ignored:
            if kind == "SPACE" and not fresh and text.find("\n", start, end) >= 0:
                fresh = True
            continue
        if kind == "NAME":
            word = match.group()
            kind = keywords.get(word, kind)
            if end - start > _MAX_NAME:
                message = f"the name has {end - start} characters; {_MAX_NAME} are allowed"
                errors.add(fail("E006", message, places.span(start, end)))
        elif kind == "BAD_CHARACTER":
            run, stray = start == stray, end
            if run:  # one message for all of them
                continue
            errors.add(_bad_character(places, start))
        elif kind == "BAD_NUMBER":
            errors.add(_bad_number(places, match.group(), start))
        elif kind in _OPENING:
            depth += 1
            if depth == MAX_NESTING + 1:
                message = f"brackets are nested more than {MAX_NESTING} deep"
                errors.add(fail("E010", message, places.span(start, end)))
        elif kind in _CLOSING:
            depth = max(0, depth - 1)
        found.append(Token(kind, match.group(), start, end, fresh))
        fresh = False
    found.append(Token("$END", "", len(text), len(text), True))
    return found


def _bad_character(places: Places, start: int) -> Diagnostic:
    char = places.source.text[start]
    shown = f"'{char}'" if char.isprintable() else f"U+{ord(char):04X}"
    hint = "names are made of ASCII letters, digits and _" if char.isalpha() else _MEANT.get(char)
    message = f"the character {shown} is not of the language"
    return fail("E005", message, places.span(start, start + 1), hint)


def _bad_number(places: Places, text: str, start: int) -> Diagnostic:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    span = places.span(start, start + len(text))
    digits = text.lstrip("0123456789")
    hint = None
    if not digits:
        if text[0] == "0":
            hint = f"numbers do not begin with 0: write {shown.lstrip('0') or '0'}"
        else:
            hint = f"it has {len(text)} digits, 40 are allowed; use a power of ten, 1e60"
    elif digits in ("e", "E"):
        hint = f"an exponent has digits: {shown}3"
    elif digits != text and digits.isidentifier() and text[0] != "0":
        hint = f"a product is written with *: {shown[: len(text) - len(digits)]}*{digits[:_SHOWN]}"
    elif text.startswith("."):
        hint = f"write a digit before the point: 0{shown}"
    elif text.endswith("."):
        hint = f"write a digit after the point: {shown}0"
    elif text[:2].lower() in ("0x", "0b", "0o"):
        hint = "whole numbers are decimal, hexadecimal (0xFF) or binary (0b101)"
    return fail("E006", f"'{shown}' is no number", span, hint)
