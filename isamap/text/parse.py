"""Parsing: tokens through the LALR tables to the syntax of a file, with all errors of syntax.

After an error the parser goes on at the next item of a block (a declaration or statement that is
first on its line, a closing brace, the next definition), with everything before the error's item
kept.  A definition with an error in it is marked as damaged.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from isamap.diagnostics import Collector, Diagnostic, Source, fail
from isamap.text.expected import describe_expected, describe_found, permission_hint
from isamap.text.slips import meant, slip_hint
from isamap.text.syntax import Damage, File, StatementItem
from isamap.text.tables import Tables, load_tables
from isamap.text.tokens import Places, Token, tokenize
from isamap.text.tree import Builder

MAX_CHARACTERS = 1 << 20
"""Longest text that is read."""

_DEFINITIONS = frozenset(("KERNEL", "INSTRUCTION", "PROGRAM", "INCLUDE"))
_ITEMS = frozenset(("IN", "CONST", "OUT", "INOUT", "LOCAL", "FOR", "STATE"))
_ASSIGNMENTS = frozenset(("EQUAL", "ASSIGN"))
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_JOINING = frozenset("&|^")
_AFTER_NAME = frozenset(("LSQB", "LPAR", "COLON"))


class _Repeated(list[Any]):
    """What a repetition of the grammar matched; it belongs to the rule around it."""


def parse_text(source: Source, errors: Collector) -> tuple[File, Places]:
    """Return the syntax of a text, and its places; errors go to ``errors``."""
    places = Places(source)
    if len(source.text) > MAX_CHARACTERS:
        message = f"the text has {len(source.text)} characters; {MAX_CHARACTERS} are allowed"
        errors.add(fail("E003", message, places.span(0, 1)))
        return File(damaged=True), places
    before = len(errors.found)
    tables = load_tables()
    tokens = tokenize(places, tables, errors)
    file = Parser(places, tables, tokens, errors).run()
    file = _same_line(file, places, errors)
    wrong = {d.span.line for d in errors.found[before:] if d.span is not None}
    if not wrong:
        return file, places
    shift = source.first_line - 1
    declarations = {places.line(t.start) + shift for t in tokens if t.first and t.kind != "NAME"}
    definitions = []
    for definition in file.definitions:
        span = places.span(definition.start, definition.end)
        hit = {line for line in wrong if span.line <= line <= span.end_line}
        damage: Damage = "declarations" if hit & declarations else "statements" if hit else ""
        definitions.append(replace(definition, damaged=damage))
    return replace(file, definitions=tuple(definitions), damaged=True), places


def _same_line(file: File, places: Places, errors: Collector) -> File:
    """Refuse a statement on the line on which another one ends: an operator may be missing."""
    for definition in file.definitions:
        for one, other in zip(definition.items, definition.items[1:], strict=False):
            if not isinstance(one, StatementItem) or not isinstance(other, StatementItem):
                continue
            if places.line(one.end - 1) == places.line(other.start):
                message = "a statement begins on the line where another one ends"
                hint = "begin a new line, or write the operator that is missing"
                errors.add(fail("E009", message, places.span(other.start, other.start + 1), hint))
    return file


class Parser:
    """The token loop over the tables, and its recovery from errors."""

    def __init__(
        self, places: Places, tables: Tables, tokens: Sequence[Token], errors: Collector
    ) -> None:
        self._places = places
        self._tables = tables
        self._tokens = list(tokens)
        self._errors = errors
        self._build = Builder(places, errors).build
        self._states = [tables.start]
        self._values: list[Any] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._stopped = -1  # the token at which parsing went on after the last error
        self._rewound = -1  # the token to which the last swallowed line was rewound

    def run(self) -> File:
        """Parse all tokens."""
        position, last = 0, len(self._tokens) - 1
        while position < last:
            token = self._tokens[position]
            stray = token.kind == "BAD_CHARACTER" and not self._accepts(token.kind)
            if stray or self._feed(token):  # what is told already is passed over
                position += 1
            else:
                resume = self._recover(position)
                # Whatever stops the parser twice at one place is left out.
                stuck = resume == position == self._stopped
                self._stopped, position = resume, resume + stuck
        while not self._finish():
            self._recover(last)
        file: File = self._values[0]
        return file

    # --- the automaton ----------------------------------------------------------------------------
    def _feed(self, token: Token) -> bool:
        """Reduce and shift one token; False if it cannot stand here."""
        actions, states = self._tables.actions, self._states
        while (action := actions[states[-1]].get(token.kind)) is not None:
            if action >= 0:
                states.append(action)
                self._values.append(token)
                self._starts.append(token.start)
                self._ends.append(token.end)
                return True
            self._reduce(-1 - action)
        return False

    def _finish(self) -> bool:
        """Reduce to the whole file; False if it is not complete."""
        while (action := self._tables.actions[self._states[-1]].get("$END")) is not None:
            if action >= 0:
                return True
            rule = self._tables.rules[-1 - action]
            self._reduce(-1 - action)
            if rule.origin == "file":
                return True
        return False

    def _reduce(self, number: int) -> None:
        rule = self._tables.rules[number]
        states, values = self._states, self._values
        size = rule.size
        if rule.single and size == 1:  # one level of precedence: nothing but the state changes
            states[-1] = self._tables.gotos[states[-2]][rule.origin]
            return
        if size:
            taken = values[-size:]
            start, end = self._starts[-size], self._ends[-1]
            for stack in (states, values, self._starts, self._ends):
                del stack[-size:]
        else:
            taken, start = [], self._ends[-1] if self._ends else 0
            end = start
        if rule.single:
            value = taken[rule.kept[0]]
        else:
            children: list[Any] = []
            for n in rule.kept:
                child = taken[n]
                if isinstance(child, _Repeated):
                    children += child
                else:
                    children.append(child)
            value = self._made(rule.origin, rule.name, children, start, end)
        states.append(self._tables.gotos[states[-1]].get(rule.origin, -1))
        values.append(value)
        self._starts.append(start)
        self._ends.append(end)

    def _made(self, origin: str, name: str, children: list[Any], start: int, end: int) -> Any:
        if origin.startswith("__"):
            return _Repeated(children)
        build = self._build.get(name)
        # A rule without a builder only names a choice of tokens.
        return build(children, start, end) if build else children[0]

    # --- recovery ---------------------------------------------------------------------------------
    def _recover(self, position: int) -> int:
        """Report the token at ``position`` and return that at which parsing goes on."""
        resume = self._swallowed(position)
        if resume is not None:
            self._rewound = resume
            self._report_unfinished(resume, position)
        else:
            resume = position
            self._report(position)
        if not self._in_block():
            return self._recover_outside(resume)
        if resume == position:
            resume = self._next_sync(position)
        token = self._tokens[resume]
        if token.kind in _DEFINITIONS or token.kind == "$END":
            self._close_blocks(token)
            return resume
        self._unwind(block=True)
        return resume

    def _swallowed(self, position: int) -> int | None:
        """Return where the line begins that an unfinished line before it has swallowed."""
        token = self._tokens[position]
        head = self._line(position)
        if head == 0 or head <= self._rewound:
            return None
        if token.first:
            if not self._is_item(position) and token.kind not in ("RBRACE", "$END"):
                return None
            unfinished = self._in_block() and not self._accepts("RBRACE")
            return position if unfinished else None
        if token.kind not in _ASSIGNMENTS or not self._is_item(head):
            return None
        if self._tokens[head].kind == "FOR" and position == head + 2:
            return None  # 'for r = 0..3'
        middle = self._tokens[head:position]
        return None if any(t.kind in _ASSIGNMENTS for t in middle) else head

    def _report_unfinished(self, resume: int, position: int) -> None:
        token, following = self._tokens[resume - 1], self._tokens[position]
        closing = following.kind == "$END" or following.kind in _DEFINITIONS
        if resume == position and closing and "RBRACE" in self._expected():
            return  # told by _close_blocks
        message = "the line is not finished"
        if resume == position:
            expected = describe_expected(self._expected(), self._tables)
            message += f": expected {expected} after {describe_found(token)}"
        self._errors.add(fail("E008", message, self._places.span(token.end, token.end + 1)))

    def _report(self, position: int) -> None:
        token = self._tokens[position]
        span = self._places.span(token.start, max(token.end, token.start + 1))
        if token.kind == "RBRACE" and not self._in_block():
            self._errors.add(fail("E009", "there is no '{' that this '}' closes", span))
            return
        expected = self._expected()
        closing = token.kind == "$END" or (token.kind in _DEFINITIONS and token.first)
        if closing and "RBRACE" in expected:
            return  # told by _close_blocks
        found = describe_found(token)
        message = f"expected {describe_expected(expected, self._tables)}, found {found}"
        code, hint = "E007", permission_hint(token, expected)
        if hint is None:
            code, hint = self._code_and_hint(position, expected)
        self._errors.add(fail(code, message, span, hint))

    def _code_and_hint(self, position: int, expected: frozenset[str]) -> tuple[str, str | None]:
        """Return the code of an unexpected token, and what its writer may have meant."""
        token = self._tokens[position]
        if "NAME" in expected and token.kind not in ("NAME", "$END") and token.text.isidentifier():
            if not (token.first and token.kind in _DEFINITIONS | _ITEMS):
                return "E011", f"{describe_found(token)} is a keyword: choose another name"
        elif token.kind == "EQUAL" and "STAR" in expected:
            return "E007", "values are compared with =="
        elif token.text in _COMPARISONS and "ASSIGN" not in expected:
            return "E007", self._comparison_hint(position)
        elif self._tokens[self._line(position)].kind == "FOR":
            return "E007", self._range_hint(position)
        return "E007", slip_hint(self._tokens, position, expected, self._tables)

    def _comparison_hint(self, position: int) -> str:
        """Return how several comparisons are written, for the second one of an expression."""
        for token in reversed(self._tokens[self._line(position) : position]):
            if token.text in _COMPARISONS:
                break
            if token.text in _JOINING:
                sign = token.text
                return f"{sign} is stronger than comparisons: write (a < b) {sign} (c < d)"
        return "comparisons do not chain: write (a < b) & (b < c)"

    def _range_hint(self, position: int) -> str | None:
        """Return how ranges are written, for an error on a line that begins with one."""
        header = self._header(position)
        if header is None or header.kind == "PROGRAM":
            return None
        first, following = self._tokens[self._line(position) + 1], self._tokens[position + 1]
        match self._tokens[position].kind:
            case "COMMA":
                names = [t.text if t.kind == "NAME" else "r" for t in (first, following)]
                ranges = " ".join(f"for {name} in 0..3" for name in names)
                return f"each variable has a 'for' of its own, as in '{ranges}'"
            case "LBRACE":
                return "a range has no braces: it stands before the statements and holds for all"
        return (
            "a range is written 'for r in 0..3' (0, 1, 2), the next one after it, with 'for' again"
        )

    def _line(self, position: int) -> int:
        """Return the first token of a token's line."""
        while position > 0 and not self._tokens[position].first:
            position -= 1
        return position

    def _expected(self) -> frozenset[str]:
        """Return the terminals that may stand here."""
        return frozenset(k for k in self._tables.actions[self._states[-1]] if self._accepts(k))

    def _accepts(self, kind: str) -> bool:
        states = list(self._states)
        while (action := self._tables.actions[states[-1]].get(kind)) is not None:
            rule = self._tables.rules[-1 - action] if action < 0 else None
            if rule is None or rule.origin == "file":
                return True
            del states[len(states) - rule.size :]
            states.append(self._tables.gotos[states[-1]][rule.origin])
        return False

    def _recover_outside(self, position: int) -> int:
        """Go on after an error outside all blocks: in a header, or between definitions."""
        token = self._tokens[position]
        if kind := meant(token, self._expected() & _DEFINITIONS, self._tables):
            self._tokens[position] = token._replace(kind=kind)
            return position
        begun = self._tokens[position].kind == "RBRACE"
        head = self._header(position)
        self._unwind(block=False)
        at = position
        while (token := self._tokens[at]).kind != "$END":
            if at > position and token.kind in _DEFINITIONS and token.first:
                return at
            if token.kind in _DEFINITIONS and token.first and head is not token:
                return at
            if token.kind == "LBRACE" and head is not None and not begun:
                # The header was wrong: a made-up one lets the body be checked all the same.
                place = (head.start, head.start, False)
                self._feed(Token(head.kind, head.text, *place))
                self._feed(Token("NAME", "_", *place))
                return at
            at += 1
        return at

    def _header(self, position: int) -> Token | None:
        """Return the word that began the definition whose header holds a token."""
        for token in reversed(self._tokens[: position + 1]):
            if token.kind in ("KERNEL", "INSTRUCTION", "PROGRAM"):
                return token
            if token.kind in ("RBRACE", "INCLUDE"):
                return None
        return None

    def _next_sync(self, position: int) -> int:
        """Return the next token at which an item begins or a block ends, from ``position`` on."""
        for at in range(position, len(self._tokens)):
            token = self._tokens[at]
            if token.kind in ("RBRACE", "$END"):
                return at
            begins = token.first and (token.kind in _DEFINITIONS or self._is_item(at))
            if begins and (at > position or not self._is_block(self._states[-1])):
                return at
        return len(self._tokens) - 1

    def _is_item(self, position: int) -> bool:
        token = self._tokens[position]
        if token.kind in _ITEMS:
            return True
        return token.kind == "NAME" and self._tokens[position + 1].kind in _AFTER_NAME

    def _is_block(self, state: int) -> bool:
        """Return whether a state is that of a list of items within braces."""
        row = self._tables.actions[state]
        return row.get("FOR", -1) >= 0 and row.get("RBRACE", -1) >= 0

    def _is_outside(self, state: int) -> bool:
        """Return whether a state is that of the list of definitions."""
        return self._tables.actions[state].get("KERNEL", -1) >= 0

    def _in_block(self) -> bool:
        kinds = [value.kind for value in self._values if isinstance(value, Token)]
        return kinds.count("LBRACE") > kinds.count("RBRACE")

    def _unwind(self, block: bool) -> None:
        """Forget what was begun since the innermost list of items (or of definitions)."""
        while True:
            # Only a state that shifts is that of a list; others reduce on the same words.
            state = self._states[-1]
            if self._is_block(state) if block else self._is_outside(state):
                return
            self._states.pop()
            self._values.pop()
            self._starts.pop()
            self._ends.pop()

    def _close_blocks(self, token: Token) -> None:
        """Report braces that are never closed, and close them before ``token``."""
        while self._in_block():
            if not self._accepts("RBRACE"):
                self._unwind(block=True)
            opened = self._opening()
            note = Diagnostic("", "this '{' is not closed", opened, severity="note")
            place = self._places.span(token.start, max(token.end, token.start + 1))
            message = f"expected '}}', found {describe_found(token)}"
            self._errors.add(Diagnostic("E009", message, place, notes=(note,)))
            self._feed(Token("RBRACE", "}", token.start, token.start, False))
            following = "RBRACE" if self._in_block() else token.kind
            while (action := self._tables.actions[self._states[-1]].get(following, 0)) < 0:
                if self._tables.rules[-1 - action].origin == "file":
                    break
                self._reduce(-1 - action)

    def _opening(self) -> Any:
        braces = [v for v in self._values if isinstance(v, Token) and v.kind == "LBRACE"]
        return self._places.span(braces[-1].start, braces[-1].end)
