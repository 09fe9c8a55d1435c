"""The words of a schedule's text, one after the other."""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from isamap.diagnostics import Collector, Diagnostic, Source, Span
from isamap.schedule.treatment import KINDS
from isamap.schedule.written import CLAUSES, Word
from isamap.text.tokens import Places

T = TypeVar("T")

_LEXER = re.compile(
    r"(?P<space>[ \t\r\n\f]+)|(?P<comment>#[^\n]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*(?:#[1-9][0-9]{0,5})?)"
    r"|(?P<number>[0-9]+)|(?P<arrow><-)|(?P<other>.)"
)
_DIGITS = 18
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
# An expression ends before these; none of them is a variable there that anyone would name so.
_AFTER = frozenset(("as", "parallel", "way", *KINDS))


class Token(NamedTuple):
    """A word with its place in the text; the ``first`` of its line."""

    kind: str
    text: str
    start: int
    end: int
    first: bool


class Stop(Exception):
    """What comes next makes no sense: told, and to be passed over."""


class Tokens:
    """The words that are still to be read, and what was wrong so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.errors = Collector()
        self._places = Places(source)
        self._tokens: list[Token] = []
        self._at = 0
        self._begun = 0  # where the clause or the item that is being read begins
        fresh = True
        for match in _LEXER.finditer(source.text):
            kind, text = str(match.lastgroup), match.group()
            if kind in ("space", "comment"):
                fresh = fresh or "\n" in text
                continue
            self._tokens.append(Token(kind, text, *match.span(), fresh))
            fresh = False
        size = len(source.text)
        self._tokens.append(Token("end", "", size, size, True))

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    @property
    def _after(self) -> str:
        """The text of the token after the next."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)].text

    def _span(self, token: Token, last: Token | None = None) -> Span:
        return self._places.span(token.start, (last or token).end)

    def _take(self) -> Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _is(self, text: str) -> bool:
        return self._next.text == text and self._next.kind != "end"

    def _skip(self, text: str) -> bool:
        """Take a token if it is this one."""
        found = self._is(text)
        self._at += found
        return found

    def _stop(self, expected: str, hint: str | None = None) -> Stop:
        token = self._next
        found = "the end of the text" if token.kind == "end" else f"'{token.text}'"
        text = f"expected {expected}, found {found}"
        self.errors.add(Diagnostic("E410", text, self._span(token), hint=hint))
        return Stop()

    def _expect(self, text: str, hint: str | None = None) -> Token:
        if not self._is(text):
            raise self._stop(f"'{text}'", hint)
        return self._take()

    def _name(self, what: str) -> Word:
        token = self._next
        clause = token.first and token.text in CLAUSES and self._after != "{"
        if token.kind != "name" or clause:
            raise self._stop(what)
        token = self._take()
        return Word(token.text, self._span(token))

    def _number(self, what: str) -> Word:
        token = self._next
        if token.kind != "number" or len(token.text) > _DIGITS or token.text.startswith("0"):
            raise self._stop(what, "numbers are decimal, from 1 on")
        self._take()
        return Word(token.text, self._span(token))

    def _expression(self, what: str, before_ahead: bool = False) -> Word:
        """Return all up to a comma, a closing bracket, a treatment or a clause on a new line.

        Also up to a number outside brackets, or the word next, if how far ahead may follow.
        """
        start = last = self._next
        depth = 0
        parts: list[str] = []
        while (token := self._next).kind != "end":
            ends = token.text in _CLOSE or token.text == "," or token.text in _AFTER
            if depth == 0 and (ends or (token.first and token.text in CLAUSES)):
                break
            ahead = token.kind == "number" or (token.text == "next" and parts)
            if token.text == "}" or (before_ahead and not depth and ahead):
                break
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
            parts.append(token.text)
            last = self._take()
        if not parts:
            raise self._stop(what)
        if depth:
            raise self._stop("a closing bracket")
        return Word("".join(parts), self._span(start, last))

    def _list(self, item: Callable[[], T]) -> tuple[T, ...]:
        found = [item()]
        while self._skip(","):
            found.append(item())
        return tuple(found)
