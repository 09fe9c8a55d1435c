"""What a trial gives according to the statements of its instructions: many sets at once."""

from collections.abc import Container, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from isamap.hw.accelerator import Entry
from isamap.interp.arithmetic import Arithmetic, declared
from isamap.interp.call import Place, Plan
from isamap.interp.rounding import Values
from isamap.interp.steps import Stepped, spelled_out
from isamap.ir.index import Atom, Div, Index, Mod, Name, Read, const, var
from isamap.ir.nodes import Access, Coordinate, Expr, Instruction, Literal, Op, Variable
from isamap.lower.nodes import Register, Window
from isamap.targets.probe.trial import Trial

_SET = "set of operands"  # no name that a text can have

Fill = Mapping[str, Values]
"""The elements of each slot's array: of the operand's shape, a set after the other."""


class Meaning:
    """Computes what a trial gives with given extents, for a number of sets.

    ``way`` is the one of the ways that the tested instruction may go, by number.
    """

    def __init__(self, trial: Trial, symbols: Mapping[str, int], sets: int, way: int) -> None:
        self.trial = trial
        self.sets = sets
        self._arithmetics: list[Arithmetic] = []
        self._plans: list[Plan] = []
        for number, entry in enumerate(trial.entries):
            own = symbols if number == trial.tested else trial.symbols[number]
            alone = {
                name for name, place in trial.calls[number].operands if isinstance(place, Literal)
            }
            chosen = way if number == trial.tested else 0
            arithmetic, instruction = stated(entry, own, chosen)
            plan = Plan(many(instruction, sets, alone), own, {}, arithmetic)
            self._arithmetics.append(arithmetic)
            self._plans.append(plan)

    def compute(self, fill: Fill) -> dict[str, Values]:
        """Return the elements of every array that is written, in the types of their elements."""
        registers: dict[str, Values] = {}
        memory: dict[str, Values] = {}
        found = {}
        with np.errstate(all="ignore"):
            for number, plan in enumerate(self._plans):
                self._call(number, plan, fill, registers, memory)
            for slot in self.trial.slots:
                if slot.operand.role != "in":
                    arithmetic = self._arithmetics[slot.call]
                    values = memory[slot.array].reshape(fill[slot.array].shape)
                    found[slot.array] = arithmetic.decode(values, slot.operand.dtype)
        return found

    def _call(
        self,
        number: int,
        plan: Plan,
        fill: Fill,
        registers: dict[str, Values],
        memory: dict[str, Values],
    ) -> None:
        arithmetic, places = self._arithmetics[number], dict(self.trial.calls[number].operands)
        given: list[Place] = []
        for operand in plan.instruction.operands:
            carrier = arithmetic.carrier(operand.dtype)
            match places.get(operand.name):
                case Register(name):
                    size = prod(plan.shapes[operand.name])
                    held = registers.get(name)
                    if held is None:
                        held = registers[name] = np.zeros(size, carrier)
                    elif operand.role != "in" or held.dtype != carrier:
                        held = registers[name] = held.astype(carrier)
                    given.append((held, 0))
                case Window(array):
                    content = arithmetic.encode(fill[array], operand.dtype)
                    memory[array] = np.array(content, order="C").reshape(-1)
                    given.append((memory[array], 0))
                case Literal() as literal:
                    given.append((arithmetic.constant(literal).reshape(-1), 0))
                case _:
                    given.append((np.zeros(0), 0))  # what is local has its place from the plan
        plan.run(given)


def stated(entry: Entry, symbols: Mapping[str, int], way: int) -> tuple[Arithmetic, Instruction]:
    """Return the arithmetic and the statements by which an instruction is judged."""
    if not entry.numeric:
        return declared(), entry.instruction
    numeric = entry.numeric[way]
    return Stepped(numeric=numeric), spelled_out(entry.instruction, numeric, symbols)


def many(instruction: Instruction, sets: int, alone: Container[str]) -> Instruction:
    """Return an instruction that works on many sets of operands, one after the other in memory.

    Operands named in ``alone`` and tables are the same for all sets.
    """
    shared = {o.name for o in instruction.operands if o.role == "table" or o.name in alone}
    first = (var(_SET),)

    def widened(value: Expr) -> Expr:
        match value:
            case Access(buffer, indices):
                inner = tuple(index_of(i) for i in indices)
                return replace(value, indices=inner if buffer in shared else (*first, *inner))
            case Coordinate(index):
                return replace(value, index=index_of(index))
            case Op(args=args):
                return replace(value, args=tuple(widened(a) for a in args))
            case _:
                return value

    def index_of(index: Index) -> Index:
        if not index.reads:
            return index
        total = const(0)
        for monomial, factor in index.terms:
            part = const(factor)
            for atom in monomial:
                part = part * atom_of(atom)
            total = total + part
        return total

    def atom_of(atom: Atom) -> Index:
        match atom:
            case Name(name):
                return var(name)
            case Div(value, divisor):
                return index_of(value) // divisor
            case Mod(value, divisor):
                return index_of(value) % divisor
            case Read(buffer, indices):
                inner = tuple(index_of(i) for i in indices)
                read = Read(buffer, inner if buffer in shared else (*first, *inner))
                return Index((((read,), 1),))

    statements = []
    for statement in instruction.statements:
        target = widened(statement.target)
        assert isinstance(target, Access)
        variables = (Variable(_SET, const(0), const(sets)), *statement.variables)
        value = widened(statement.value)
        statements.append(replace(statement, target=target, value=value, variables=variables))
    operands = tuple(
        o if o.name in shared else replace(o, shape=(const(sets), *o.shape), strides=None)
        for o in instruction.operands
    )
    return replace(instruction, operands=operands, statements=tuple(statements))
