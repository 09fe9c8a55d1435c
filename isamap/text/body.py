"""Statements: their accesses and ranges once, and their types for every instance."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from isamap.ir.dtype import DType
from isamap.ir.nodes import Reduction, Statement, Variable
from isamap.ir.operations import OPERATIONS, REDUCTION_OPERATIONS
from isamap.ir.statements import used_names
from isamap.text.context import Placed, Scope
from isamap.text.coverage import Writer, depends_on_data, sure, twice, unwritten, writer
from isamap.text.domains import Ranges, check_inside, ranges_of
from isamap.text.proof import Witness
from isamap.text.syntax import Broken, StatementItem
from isamap.text.uses import Use, Uses, uses_of
from isamap.text.values import Typing, applies

_NO_ORDER = (
    "its iterations have no order: read what was there before from a copy in a local buffer; a "
    "running sum is written Y[i] += select(r <= i, X[r], 0)"
)


@dataclass(slots=True)
class Plan:
    """A statement apart from types; ``order`` is that of its variables, once it is known."""

    uses: Uses
    ranges: Ranges | None
    order: tuple[str, ...] | None = None


@dataclass(slots=True)
class Body:
    """The statements of a definition, checked in order.

    ``writers`` are the targets so far of each buffer, ``first`` the reduction of its first one,
    ``settled`` the buffers about whose elements there is nothing more to say.
    """

    scope: Scope
    plans: list[Plan] = field(default_factory=list)
    writers: dict[str, list[Writer]] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)

    def add(self, item: StatementItem) -> None:
        """Check a statement's accesses, ranges and order, and keep it."""
        scope = self.scope
        uses = uses_of(scope, item)
        ranges = ranges_of(scope, uses)
        self.plans.append(Plan(uses, ranges))
        target = uses.target
        own = [use for use in uses.accesses if target and use.name == target.name]
        others = [use for use in own if target and use.indices != target.indices]
        for use in uses.accesses:
            if not use.target and use not in others:
                self._check_read(use, item)
        if target is None:
            self._forgive(item)
            return
        role = target.buffer.item.role
        if role.text in ("in", "const"):
            note = scope.note(f"{target.name} is declared here", target.buffer.item.name)
            message = f"{target.name} is '{role.text}' and cannot be written"
            hint = "what is written is out, inout or local"
            scope.fail("E026", message, item.target, hint, (note,))
        for use in others:
            message = f"the statement writes {target.name} and reads other elements of it"
            scope.fail("E047", message, use.node, _NO_ORDER)
        if ranges is None:
            self.settled.add(target.name)
        else:
            before = len(scope.errors.found)
            # What is read of the target's buffer lies where the target does, or is refused.
            check_inside(scope, uses.without([use for use in own if not use.target]), ranges)
            if len(scope.errors.found) > before:
                self.settled.add(target.name)
            else:
                self._check_target(uses, target, ranges, len(own) > 1)
        self.first.setdefault(target.name, item.reduction.text)

    def _forgive(self, item: StatementItem) -> None:
        """Say nothing about the elements of a buffer whose target is not understood."""
        if not isinstance(item.target, Broken):
            name = item.target.buffer.text
            self.settled.add(name)
            self.first.setdefault(name, item.reduction.text)

    # --- order ------------------------------------------------------------------------------------
    def _check_read(self, use: Use, item: StatementItem) -> None:
        """Report a read of elements that nothing has written yet."""
        scope, name = self.scope, use.name
        if use.buffer.item.role.text not in ("local", "out"):
            return
        if name not in self.first:
            message = f"{name} is read before it is written"
            hint = "write it in a statement before this one"
            if not isinstance(item.target, Broken) and item.target.buffer.text == name:
                hint = "to go on from what is there, write += or let the buffer be inout"
            scope.fail("E027", message, use.node, hint)
            self.first[name] = ""
        elif self.first[name] == "=" and name not in self.settled:
            self.settled.add(name)
            self._check_written(name, use.node, "E027", "read before it is written")

    def _check_written(
        self, name: str, node: Placed, code: str, what: str, hint: str | None = None
    ) -> None:
        scope = self.scope
        with scope.deciding(node, f"every element of {name} is written"):
            found = unwritten(scope, self.writers[name])
            if found is not None:
                element, symbols = found
                shown = f"{name}[{', '.join(map(str, element))}]"
                message = f"{shown} is {what}{_at(symbols)}"
                scope.fail(code, message, node, hint)

    def _check_target(self, uses: Uses, target: Use, ranges: Ranges, rereads: bool) -> None:
        scope = self.scope
        one = writer(scope, target, ranges)
        assigns = uses.item.reduction.text == "="
        if assigns or rereads:
            with scope.deciding(uses.item, f"{target.name} is written once everywhere"):
                pair = twice(scope, sure(one))
                if pair is not None and depends_on_data(one):
                    message = (
                        f"several points may write one element of {target.name}: data says which"
                    )
                    hint = "reduce, with += or max=: its iterations have no order"
                    scope.fail("E025", message, target.node, hint)
                elif pair is not None:
                    self._report_twice(uses, target, one, pair, assigns)
        self.writers.setdefault(target.name, []).append(one)

    def _report_twice(
        self,
        uses: Uses,
        target: Use,
        one: Writer,
        pair: tuple[Witness, Witness],
        assigns: bool,
    ) -> None:
        missing = [name for name in pair[0] if name in one.ranges and name not in one.used]
        if missing:
            reason = f"{missing[0]} is not in the target: every {missing[0]}"
            message = f"{reason} writes the same elements of {target.name}"
        else:
            at = [int(index.evaluate(pair[0])) for index in one.indices]
            points = [_point(point, one.used) for point in pair]
            message = (
                f"{target.name}[{', '.join(map(str, at))}] is written twice: "
                f"for {points[0]} and for {points[1]}"
            )
        if assigns:
            hint = "reduce, with += or max=, or let the target have every variable"
            self.scope.fail("E025", message, uses.item.target, hint)
        else:
            hint = "its iterations have no order: write to a local buffer first"
            self.scope.fail("E047", f"{message}, and reads them", uses.item.target, hint)

    def finish(self) -> None:
        """Check what only the whole body tells: that every element of an out is written."""
        scope = self.scope
        for name, declared in scope.buffers.items():
            if declared.item.role.text != "out" or name in self.settled:
                continue
            if name not in self.first:
                message = f"no statement writes {name}"
                scope.fail("E024", message, declared.item.name, "out buffers are written in full")
            elif self.writers.get(name):
                hint = (
                    "every element of an out buffer must be written; inout keeps its content"
                    if declared.item.storage is None
                    else "write all of it: what a load does not read is its pad; inout keeps its "
                    "content, and makes no load"
                )
                self._check_written(name, declared.item.name, "E024", "never written", hint)
        used = {name for plan in self.plans for name in plan.uses.names}
        for name in scope.ranges:
            if name not in used:
                scope.fail("E043", f"no statement uses the variable {name}", scope.first[name])

    # --- types ------------------------------------------------------------------------------------
    def statements(self, typing: Typing) -> list[Statement]:
        """Return the statements of one instance, those without errors."""
        found = (self._statement(typing, plan) for plan in self.plans)
        return [statement for statement in found if statement is not None]

    def _statement(self, typing: Typing, plan: Plan) -> Statement | None:
        item = plan.uses.item
        typing.elements.update(plan.uses.elements)
        target = None if isinstance(item.target, Broken) else typing.access(item.target)
        if target is None and item.value.loose:
            return None  # nothing else could tell its type
        value = typing.expr(item.value, target.dtype if target else None)
        if target is None or value is None:
            return None
        if value.dtype != target.dtype:
            message = f"{target.buffer} holds {target.dtype}, but the value is {value.dtype}"
            typing.scope.fail("E015", message, item.value, f"cast it: {target.dtype}(...)")
            return None
        reduction = cast(Reduction, item.reduction.text)
        if not self._reduces(typing, item, target.dtype) or plan.ranges is None:
            return None
        if plan.order is None:
            names = used_names(target, value)
            plan.order = tuple(name for name in names if name in plan.ranges)
        variables = tuple(Variable(name, *plan.ranges[name]) for name in plan.order)
        return Statement(target, reduction, value, variables, typing.span(item))

    def _reduces(self, typing: Typing, item: StatementItem, dtype: DType) -> bool:
        name = REDUCTION_OPERATIONS.get(item.reduction.text)
        if name is None or applies(OPERATIONS[name], dtype):
            return True
        message = f"'{item.reduction.text}' cannot be applied to {dtype}"
        typing.scope.fail("E035", message, item.reduction)
        return False


def _at(symbols: Witness) -> str:
    return f" for {', '.join(f'{n} = {v}' for n, v in symbols.items())}" if symbols else ""


def _point(point: Witness, used: Iterable[str]) -> str:
    return ", ".join(f"{name} = {point[name]}" for name in used)
