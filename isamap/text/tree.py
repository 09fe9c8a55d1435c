"""Builds the syntax of a file while it is parsed: one function for each rule of the grammar."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from isamap.diagnostics import Collector, Span, fail
from isamap.ir.operations import OPERATIONS
from isamap.text.syntax import (
    Apply,
    AttributeItem,
    Broken,
    BufferItem,
    CallItem,
    Contents,
    Convert,
    Definition,
    Element,
    Expression,
    ExtentItem,
    File,
    Include,
    LoopItem,
    Named,
    Number,
    PermitItem,
    RangeItem,
    StateItem,
    StatementItem,
    TypeParameter,
    Word,
)
from isamap.text.tokens import MAX_NESTING, Places, Token

Build = Callable[[Sequence[Any], int, int], Any]
"""Takes what the symbols of a rule were built to, and the offsets of the text they cover."""

_BAD = ("BAD_NUMBER", "BAD_CHARACTER")
_NEGATION = {"-": "neg"}


class Group(tuple[Any, ...]):
    """Several nodes in a row: expressions, extents, names."""

    __slots__ = ()


@cache
def _methods() -> tuple[tuple[str, str], ...]:
    """Return the rules that are built, and the methods that do it."""
    names = (name for name in dir(Builder) if name.startswith("_on_"))
    return tuple((name.removeprefix("_on_"), name) for name in names)


def word(token: Token) -> Word:
    """Return a token as a word."""
    return Word(token.text, token.start, token.end)


class Builder:
    """The functions that build each rule; ``build[name]`` is that of the rule ``name``."""

    def __init__(self, places: Places, errors: Collector) -> None:
        self._places = places
        self._errors = errors
        self.build: dict[str, Build] = {rule: getattr(self, name) for rule, name in _methods()}

    def span(self, start: int, end: int) -> Span:
        """Return the place of the text between two offsets."""
        return self._places.span(start, end)

    # --- the file -------------------------------------------------------------------------------
    def _on_file(self, parts: Sequence[Any], start: int, end: int) -> File:
        version = parts[0] if parts and isinstance(parts[0], Word) else None
        return File(
            version,
            tuple(part for part in parts if isinstance(part, Include)),
            tuple(part for part in parts if isinstance(part, Definition)),
        )

    def _on_version(self, parts: Sequence[Any], start: int, end: int) -> Word:
        return word(parts[0])

    def _on_include(self, parts: Sequence[Any], start: int, end: int) -> Include:
        token: Token = parts[0]
        return Include(token.text[1:-1], token.start, token.end)

    def _on_kernel(self, parts: Sequence[Any], start: int, end: int) -> Definition:
        return self._definition("kernel", parts, start, end)

    def _on_instruction(self, parts: Sequence[Any], start: int, end: int) -> Definition:
        return self._definition("instruction", parts, start, end)

    def _on_program(self, parts: Sequence[Any], start: int, end: int) -> Definition:
        return self._definition("program", parts, start, end)

    def _definition(self, kind: str, parts: Sequence[Any], start: int, end: int) -> Definition:
        parameters, extents, permits, items = [], [], [], []
        flat = (p for part in parts[1:] for p in (part if isinstance(part, Group) else (part,)))
        for part in flat:
            match part:
                case TypeParameter():
                    parameters.append(part)
                case ExtentItem():
                    extents.append(part)
                case PermitItem():
                    permits.append(part)
                case _:
                    items.append(part)
        return Definition(
            kind,
            word(parts[0]),
            tuple(parameters),
            tuple(extents),
            tuple(permits),
            tuple(items),
            start,
            end,
        )

    def _on_type_parameters(self, parts: Sequence[Any], start: int, end: int) -> Group:
        return Group(parts)

    _on_extents = _on_type_parameters
    _on_permits = _on_type_parameters

    # --- extents, permissions ---------------------------------------------------------------------
    def _on_type_parameter(self, parts: Sequence[Any], start: int, end: int) -> TypeParameter:
        return TypeParameter(word(parts[0]), tuple(word(token) for token in parts[1:]))

    def _on_extent_symbol(self, parts: Sequence[Any], start: int, end: int) -> ExtentItem:
        return ExtentItem(word(parts[0]))

    def _on_extent_value(self, parts: Sequence[Any], start: int, end: int) -> ExtentItem:
        return ExtentItem(word(parts[0]), parts[1])

    def _on_extent_range(self, parts: Sequence[Any], start: int, end: int) -> ExtentItem:
        return ExtentItem(word(parts[0]), None, parts[1], parts[2])

    def _on_extent_open(self, parts: Sequence[Any], start: int, end: int) -> ExtentItem:
        kind = word(parts[2]) if len(parts) > 2 else None
        return ExtentItem(word(parts[0]), least=parts[1], kind=kind)

    def _on_permit_licence(self, parts: Sequence[Any], start: int, end: int) -> PermitItem:
        return PermitItem(word(parts[-1]), len(parts) > 1, None)

    def _on_permit_approximate(self, parts: Sequence[Any], start: int, end: int) -> PermitItem:
        return PermitItem(Word("approximate", start, end), False, parts[0])

    # --- items ------------------------------------------------------------------------------------
    def _on_buffer(self, parts: Sequence[Any], start: int, end: int) -> BufferItem:
        role, name, dtype, *rest = parts
        shape, storage, attributes, contents = (), None, [], None
        for part in rest:
            match part:
                case Group():
                    shape = tuple(part)
                case Word():
                    storage = part
                case Contents() | Number() | Broken():
                    contents = part
                case _:
                    attributes.append(part)
        words = word(role), word(name), word(dtype)
        return BufferItem(*words, shape, storage, tuple(attributes), start, end, contents)

    def _on_contents(self, parts: Sequence[Any], start: int, end: int) -> Any:
        return parts[0]

    def _on_content_row(self, parts: Sequence[Any], start: int, end: int) -> Contents:
        return Contents(tuple(parts), start, end)

    def _on_place(self, parts: Sequence[Any], start: int, end: int) -> Word:
        return word(parts[0])

    def _on_pad(self, parts: Sequence[Any], start: int, end: int) -> AttributeItem:
        return AttributeItem("pad", tuple(parts), None, start, end)

    def _on_values(self, parts: Sequence[Any], start: int, end: int) -> AttributeItem:
        return AttributeItem("values", tuple(parts), None, start, end)

    def _on_strides(self, parts: Sequence[Any], start: int, end: int) -> AttributeItem:
        return AttributeItem("strides", tuple(parts[0]) if parts else (), None, start, end)

    def _on_order(self, parts: Sequence[Any], start: int, end: int) -> AttributeItem:
        return AttributeItem("order", (), word(parts[0]), start, end)

    def _on_range(self, parts: Sequence[Any], start: int, end: int) -> RangeItem:
        return RangeItem(word(parts[0]), parts[1], parts[2], start, end)

    def _on_state(self, parts: Sequence[Any], start: int, end: int) -> StateItem:
        return StateItem(word(parts[0]), word(parts[1]), word(parts[2]), start, end)

    def _on_statement(self, parts: Sequence[Any], start: int, end: int) -> StatementItem:
        assign: Token = parts[1]
        # `max =` may be written with a space.
        reduction = Word("".join(assign.text.split()), assign.start, assign.end)
        return StatementItem(parts[0], reduction, parts[2], start, end)

    def _on_call(self, parts: Sequence[Any], start: int, end: int) -> CallItem:
        arguments = tuple(word(token) for token in parts[1]) if len(parts) > 1 else ()
        return CallItem(word(parts[0]), arguments, start, end)

    def _on_loop(self, parts: Sequence[Any], start: int, end: int) -> LoopItem:
        depth = 1 + max((part.depth for part in parts[3:] if isinstance(part, LoopItem)), default=0)
        # Deeper loops are dropped: their braces are reported by the lexer.
        body = tuple(parts[3:]) if depth <= MAX_NESTING else ()
        depth = min(depth, MAX_NESTING)
        return LoopItem(word(parts[0]), parts[1], parts[2], body, start, end, depth)

    # --- expressions ------------------------------------------------------------------------------
    def _on_number(self, parts: Sequence[Any], start: int, end: int) -> Number | Broken:
        token: Token = parts[0]
        if token.kind in _BAD:
            return Broken(start, end)
        # From here on whole numbers are decimal.
        other = token.kind == "INT" and not token.text.isdigit()
        return Number(str(int(token.text, 0)) if other else token.text, start, end)

    def _on_literal(self, parts: Sequence[Any], start: int, end: int) -> Number | Broken:
        number: Number | Broken = parts[-1]
        if len(parts) == 1 or isinstance(number, Broken):
            return number
        return Number(f"-{number.text}", start, end)

    def _on_name(self, parts: Sequence[Any], start: int, end: int) -> Named:
        return Named(parts[0].text, start, end)

    def _on_parens(self, parts: Sequence[Any], start: int, end: int) -> Expression:
        inner: Expression = parts[0]
        if isinstance(inner, Number):
            return Number(inner.text, start, end, enclosed=True)
        return inner

    def _on_exprs(self, parts: Sequence[Any], start: int, end: int) -> Group:
        return Group(parts)

    _on_names = _on_exprs

    def _on_access(self, parts: Sequence[Any], start: int, end: int) -> Element | Broken:
        indices: tuple[Expression, ...] = tuple(parts[1]) if len(parts) > 1 else ()
        depth = self._depth(indices, start, end)
        if depth is None:
            return Broken(start, end)
        return Element(word(parts[0]), indices, start, end, depth)

    def _on_binary(self, parts: Sequence[Any], start: int, end: int) -> Expression:
        left, op, right = parts
        return self._apply(op.text, (left, right), start, end)

    def _on_unary(self, parts: Sequence[Any], start: int, end: int) -> Expression:
        op, arg = parts
        text = _NEGATION.get(op.text, op.text)
        if text != op.text and isinstance(arg, Number) and not arg.enclosed and arg.text[0] != "-":
            return Number(op.text + arg.text, start, end)
        return self._apply(text, (arg,), start, end)

    def _on_function_call(self, parts: Sequence[Any], start: int, end: int) -> Expression:
        args = tuple(parts[1]) if len(parts) > 1 else ()
        return self._apply(parts[0].text, args, start, end)

    def _on_cast(self, parts: Sequence[Any], start: int, end: int) -> Expression:
        return self._convert(parts[0], parts[1:], False, start, end)

    def _on_named_call(self, parts: Sequence[Any], start: int, end: int) -> Expression:
        args = parts[1] if len(parts) > 1 else ()
        if not args:
            message = f"{parts[0].text}() has no value to convert"
            self._errors.add(fail("E034", message, self.span(start, end)))
            return Broken(start, end)
        return self._convert(parts[0], args, False, start, end)

    def _on_saturate(self, parts: Sequence[Any], start: int, end: int) -> Expression:
        return self._convert(parts[0], parts[1:], True, start, end)

    def _convert(
        self, dtype: Token, args: Sequence[Expression], saturate: bool, start: int, end: int
    ) -> Expression:
        depth = self._depth(args, start, end)
        if depth is None:
            return Broken(start, end)
        return Convert(word(dtype), args[0], saturate, start, end, depth, len(args) - 1)

    def _apply(self, op: str, args: tuple[Expression, ...], start: int, end: int) -> Expression:
        depth = self._depth(args, start, end)
        if depth is None:
            return Broken(start, end)
        rule = OPERATIONS[op].rule
        typed = args[1:] if rule == "select" else args
        loose = rule != "compare" and all(arg.loose for arg in typed)
        return Apply(op, args, start, end, depth, loose)

    def _depth(self, args: Sequence[Expression], start: int, end: int) -> int | None:
        """Return the depth of an expression around ``args``, or None after telling it is too
        deep.
        """
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth <= MAX_NESTING:
            return depth
        message = f"the expression is nested too deeply: more than {MAX_NESTING} operations"
        hint = "split it with a local buffer"
        self._errors.add(fail("E010", message, self.span(start, end), hint))
        return None
