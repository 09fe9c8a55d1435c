"""Reading the text of a schedule.

::

    schedule: "schedule" NAME ["on" NAME] "{" item* "}"
    item: "rewrite" RULE "of" STATEMENT ["way" INT]
        | "together" STATEMENT ("," STATEMENT)*
        | "calls" ORDER ("," ORDER)*
        | STATEMENT "{" clause* "}"
    clause: "instruction" NAME ("+" NAME)* ["(" NAME "=" EXPR ("," NAME "=" EXPR)* ")"] ["way" INT]
          | "axes" ("none" | AXIS "<-" forms ("," AXIS "<-" forms)*)
          | "tile" ("none" | VARIABLE "=" INT ("," VARIABLE "=" INT)*)
          | "loops" ("none" | level ("," level)*)
          | "operands" ACCESS ["as" NAME] TREATMENT ("," ACCESS ["as" NAME] TREATMENT)*
          | "stream" ACCESS
          | "past" ("none" | ACCESS ["as" NAME] ("," ACCESS ["as" NAME])*)
          | "prefetch" ("none" | early ("," early)*)
          | "buffers" ("none" | ACCESS ["as" NAME] INT ("," ACCESS ["as" NAME] INT)*)
          | "results" ("cached" | "uncached" | "later") ("," ("cached" | "uncached" | "later"))*
          | "within" STATEMENT ["by" NAME ("+" NAME)*]
          | "along" STATEMENT
    ORDER: "abreast" | "following" | "once" | "again"
    level: VARIABLE "/" INT (["parallel"] ["overlap"] | "overlap" "parallel")
    early: ACCESS ["as" NAME] [(INT | "next") "of" VARIABLE]
    AXIS: NAME ("*" NAME)*
    forms: EXPR | "[" EXPR ("," EXPR)* "]"
    STATEMENT: NAME | NAME#INT

Expressions are those that the report prints; they are compared, not computed.  ``#`` begins a
comment unless it follows a name at once.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from isamap.diagnostics import Diagnostic, ScheduleError, Source, Span, fail
from isamap.schedule.tokens import Stop, Tokens
from isamap.schedule.treatment import KINDS
from isamap.schedule.written import (
    CLAUSES,
    Word,
    WrittenBuffers,
    WrittenEarly,
    WrittenInstruction,
    WrittenLevel,
    WrittenLoads,
    WrittenOperand,
    WrittenRewriting,
    WrittenSchedule,
    WrittenStatement,
)
from isamap.text.files import read_source

T = TypeVar("T")

STORED = ("cached", "uncached")
"""How results are stored: as any store does it, or past the caches."""

BESIDE = ("abreast", "following")
"""Whether calls are put where queues would wait, or follow each other as they are computed."""

BROUGHT = ("once", "again")
"""How often what does not change in a loop is brought."""

LATER = "later"
"""When results are finished: while the next ones are computed."""


def read_schedule(path: Path) -> WrittenSchedule:
    """Return the schedule of a file.

    ScheduleError with every fault of its syntax, ParseError if it is no text that can be read.
    """
    return parse_schedule(read_source(path))


def parse_schedule(source: Source) -> WrittenSchedule:
    """Return the schedule of a text; ScheduleError with every fault of its syntax."""
    reader = _Reader(source)
    found = reader.schedule()
    if reader.errors.errors:
        raise ScheduleError(reader.errors.errors)
    assert found is not None, "there is an error otherwise"
    return found


def squeezed(text: str) -> str:
    """Return an expression as a :class:`~isamap.schedule.written.Word` holds it."""
    return "".join(text.split())


def said_twice(message: str, again: Word, first: Word) -> Diagnostic:
    """Return the error that something is said again, with the place where it is said first."""
    return _twice(message, again.span, first.span)


def _twice(message: str, span: Span, first: Span) -> Diagnostic:
    note = Diagnostic("", "first here", first, severity="note")
    return Diagnostic("E411", message, span, notes=(note,))


class _Reader(Tokens):
    """Recursive descent, and recovery at the next clause or block."""

    def schedule(self) -> WrittenSchedule | None:
        """Read everything."""
        try:
            self._expect("schedule", "a schedule begins with 'schedule KERNEL {'")
            kernel = self._name("the name of a kernel")
            machine = self._name("the name of a machine") if self._skip("on") else None
            self._expect("{")
        except Stop:
            return None
        rewritings: list[WrittenRewriting] = []
        together: list[tuple[Word, ...]] = []
        statements: list[WrittenStatement] = []
        calls: list[Word] = []
        while not self._is("}"):
            if self._next.kind == "end":
                self._stop("a statement's name or '}'")
                return None
            try:
                self._item(rewritings, together, statements, calls)
            except Stop:
                self._resume(())
        self._take()
        if self._next.kind != "end":
            self._stop("the end of the text", "a file holds one schedule")
        return WrittenSchedule(
            self.source,
            kernel,
            machine,
            tuple(rewritings),
            tuple(together),
            tuple(statements),
            tuple(calls),
        )

    def _item(
        self,
        rewritings: list[WrittenRewriting],
        together: list[tuple[Word, ...]],
        statements: list[WrittenStatement],
        calls: list[Word],
    ) -> None:
        self._begun = self._at
        if self._is("rewrite") and self._after != "{":
            self._take()
            rewritings.append(self._rewriting())
        elif self._is("together") and self._after != "{":
            self._take()
            together.append(self._list(self._statement_name))
        elif self._is("calls") and self._after != "{":
            token = self._take()
            words = self._list(self._order)
            if calls:
                self._twice("'calls' is said twice", self._span(token), calls[0].span)
            calls += words
        else:
            statements.append(self._statement(statements))

    def _order(self) -> Word:
        return self._one_of((*BESIDE, *BROUGHT), "how calls are ordered")

    def _statement_name(self) -> Word:
        return self._name("the name of a statement")

    def _rewriting(self) -> WrittenRewriting:
        start = last = self._next
        while self._next.kind == "name" and not self._is("of"):
            last = self._take()
            if not self._skip("-"):
                break
        if start is self._next:
            raise self._stop("the name of a rule")
        rule = Word(self.source.text[start.start : last.end], self._span(start, last))
        self._expect("of")
        name = self._statement_name()
        return WrittenRewriting(rule, name, self._way())

    def _way(self) -> Word | None:
        return self._number("a number") if self._skip("way") else None

    def _statement(self, before: list[WrittenStatement]) -> WrittenStatement:
        name = self._statement_name()
        for other in before:
            if other.name.text == name.text:
                self._twice(f"statement {name.text} has two blocks", name.span, other.name.span)
        self._expect("{")
        found = WrittenStatement(name)
        spans: dict[str, Span] = {}
        while not self._skip("}"):
            if self._next.kind == "end":
                raise self._stop("'}'")
            try:
                found = self._clause(found, spans)
            except Stop:
                self._resume(CLAUSES)
        return replace(found, spans=spans)

    def _clause(self, found: WrittenStatement, spans: dict[str, Span]) -> WrittenStatement:
        self._begun = self._at
        token = self._next
        if token.text not in CLAUSES:
            raise self._stop(f"one of {', '.join(CLAUSES)}, or '}}'")
        self._take()
        if token.text in spans:
            self._twice(f"'{token.text}' is said twice", self._span(token), spans[token.text])
        spans[token.text] = self._span(token)
        reader: Callable[[], Any] = {
            "instruction": self._instruction,
            "axes": lambda: self._or_none(self._axis),
            "tile": lambda: self._or_none(self._extent),
            "loops": lambda: self._or_none(self._level),
            "operands": lambda: self._list(self._operand),
            "stream": lambda: self._expression("an access"),
            "past": lambda: self._or_none(self._loaded),
            "prefetch": lambda: self._or_none(self._early),
            "buffers": lambda: self._or_none(self._buffers),
            "results": lambda: self._list(self._stored),
            "within": self._statement_name,
            "along": self._statement_name,
        }[token.text]
        value = reader()
        if token.text == "within" and self._skip("by"):
            found = replace(found, by=self._sequence())
        spans[token.text] = self._span(token, self._tokens[self._at - 1])
        if not (self._next.first or self._is("}")):
            raise self._stop("',' or the next clause on a line of its own")
        return replace(found, **{token.text: value})

    def _or_none(self, item: Callable[[], T]) -> tuple[T, ...]:
        token = self._next
        after = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if token.text == "none" and (after.first or after.text == "}"):
            self._take()
            return ()
        return self._list(item)

    def _instruction(self) -> WrittenInstruction:
        name, bound = self._sequence(), None
        if self._skip("("):
            bound = self._list(self._binding)
            self._expect(")")
        return WrittenInstruction(name, bound, self._way())

    def _sequence(self) -> Word:
        start = last = self._next
        parts = [self._name("the name of an instruction").text]
        while self._skip("+"):
            last = self._next
            parts.append(self._name("the name of an instruction").text)
        return Word(" + ".join(parts), self._span(start, last))

    def _binding(self) -> tuple[Word, Word]:
        start = last = self._next
        parts = []
        # An operand that is read at several places is told by its access: a[i + 1] = X[w + 1].
        while not (self._is("=") or self._is("}") or self._next.kind == "end"):
            last = self._take()
            parts.append(last.text)
        if not parts:
            raise self._stop("an operand")
        self._expect("=")
        operand = Word("".join(parts), self._span(start, last))
        return operand, self._expression("an expression of the body")

    def _axis(self) -> tuple[Word, tuple[Word, ...]]:
        first = self._next
        axis = self._name("the name of an axis")
        while self._skip("*"):
            last = self._next
            part = self._name("the name of an axis")
            axis = Word(f"{axis.text}*{part.text}", self._span(first, last))
        self._expect("<-")
        if not self._skip("["):
            return axis, (self._expression("a form"),)
        forms = self._list(lambda: self._expression("a form"))
        self._expect("]")
        return axis, forms

    def _extent(self) -> tuple[Word, Word]:
        name = self._name("a variable")
        self._expect("=")
        return name, self._number("an extent")

    def _level(self) -> WrittenLevel:
        name = self._name("a variable")
        self._expect("/", "a loop is a variable and a step: m/32")
        step, parallel, word = self._number("a step"), self._skip("parallel"), self._next
        overlap = Word(word.text, self._span(word)) if self._skip("overlap") else None
        parallel = parallel or self._skip("parallel")  # in either order
        return WrittenLevel(name, step, parallel, overlap)

    def _loaded(self) -> WrittenLoads:
        what = self._expression("a buffer or an access")
        operand = self._name("an operand of the instruction") if self._skip("as") else None
        return WrittenLoads(what, operand)

    def _operand(self) -> WrittenOperand:
        what = self._expression("a buffer or an access")
        operand = self._name("an operand of the instruction") if self._skip("as") else None
        if self._next.text not in KINDS:
            raise self._stop(f"one of {', '.join(KINDS)}")
        how = self._name("a treatment")
        inside = self._inside()
        pitch = self._number("a number of elements") if self._skip("pitch") else None
        return WrittenOperand(what, operand, how, inside or self._inside(), pitch)

    def _inside(self) -> Word | None:
        return self._number("a number of loops") if self._skip("inside") else None

    def _early(self) -> WrittenEarly:
        what = self._expression("a buffer or an access", before_ahead=True)
        operand = self._name("an operand of the instruction") if self._skip("as") else None
        shared = self._skip("next")
        if not shared and self._next.kind != "number":
            return WrittenEarly(what, operand)
        count = None if shared else self._number("a number of iterations")
        self._expect("of", "how far ahead is said in iterations of a loop: 2 of k, or next of n")
        return WrittenEarly(what, operand, count, self._name("a variable"), shared)

    def _buffers(self) -> WrittenBuffers:
        what = self._expression("a buffer or an access", before_ahead=True)
        operand = self._name("an operand of the instruction") if self._skip("as") else None
        return WrittenBuffers(what, operand, self._number("a number of places"))

    def _stored(self) -> Word:
        return self._one_of((*STORED, LATER), "how results are stored")

    def _one_of(self, words: tuple[str, ...], what: str) -> Word:
        if self._next.text not in words:
            raise self._stop(" or ".join(words))
        return self._name(what)

    # --- errors -----------------------------------------------------------------------------------
    def _twice(self, message: str, span: Span, first: Span) -> None:
        self.errors.add(_twice(message, span, first))

    def _resume(self, words: tuple[str, ...]) -> None:
        """Go on at the next of some words that is first on its line, or at a closing brace.

        Without words: at something that begins a line, or after the next closing brace if a block
        has been passed over, which its own brace or its clauses tell.
        """
        block = False
        while (token := self._next).kind != "end":
            if token.text == "}":
                self._at += block and not words
                return
            clause = token.first and token.text in CLAUSES
            block = block or clause or token.text == "{"
            fresh = token.first and self._at > self._begun
            if fresh and (token.text in words if words else not clause):
                return
            self._take()


def schedule_fault(code: str, message: str, span: Span, hint: str | None = None) -> ScheduleError:
    """Return the error that a written schedule has one fault."""
    return ScheduleError(fail(code, message, span, hint))
