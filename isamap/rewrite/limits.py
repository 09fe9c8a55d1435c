"""The rule that moves limits over operations that keep the order of numbers."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from isamap.ir.literal import canonical, value
from isamap.ir.nodes import Expr, Kernel, Literal, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.ranges import (
    Interval,
    Intervals,
    exact_interval_of,
    full,
    interval_of,
    intervals_before,
)
from isamap.rewrite.arithmetic import NoTermError, Terms, equal
from isamap.rewrite.build import Draft, extents, replaced
from isamap.rewrite.ordered import Chain, Step, carried, chain_of, limit, taken_back, unknown
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.term_lemmas import real
from isamap.rewrite.zeros import tells_zeros_apart
from isamap.solver.lemma import Lemma

NAME = "move-limits"


def move_limits(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield ``max(sat[s8](f32(x) * 0.5), 0)`` for ``sat[s8](f32(max(x, 0)) * 0.5)``, and back.

    What keeps the order of numbers, as conversions, positive factors and sums with constants do,
    may come before a limit or after it.  All limits are moved as far out as they go, as far in, and
    one by one to each place between.
    """
    statement = kernel.statements[number]
    mover = _Mover(statement, intervals_before(kernel, number), tells_zeros_apart(kernel))
    for moved, lemmas in mover.moved(statement.value):
        draft = Draft(statement.target, statement.reduction, moved, extents(statement))
        note = f"{print_expr(statement.value)} is {print_expr(moved)}: what is between a limit's "
        note += "two places keeps the order of numbers"
        yield Rewriting(NAME, number, replaced(kernel, number, [draft]), lemmas, note)


@dataclass(frozen=True, slots=True)
class _Moved:
    """A chain after limits of it were moved, and what proves that."""

    chain: Chain
    lemmas: tuple[Lemma, ...] = ()


@dataclass(frozen=True, slots=True)
class _Mover:
    """Moves limits within the value of a statement; ``zeros`` if it tells the zeros apart."""

    statement: Statement
    known: Intervals
    zeros: bool

    def moved(self, expr: Expr) -> Iterator[tuple[Expr, tuple[Lemma, ...]]]:
        """Yield values that an expression has as well, each with what proves that."""
        chain = chain_of(expr)
        for other in self._places(_Moved(chain)):
            yield other.chain.value(), other.lemmas
        base = chain.base
        if isinstance(base, Op):
            for at, arg in enumerate(base.args):
                for new, lemmas in self.moved(arg):
                    own = replace(base, args=(*base.args[:at], new, *base.args[at + 1 :]))
                    yield replace(chain, base=own).value(), lemmas

    def _places(self, given: _Moved) -> Iterator[_Moved]:
        """Yield a chain with all limits moved outwards, with all moved inwards, then one by one."""
        count = len(given.chain.steps)
        outwards, inwards = given, given
        for number in range(count):
            outwards = self._runs(outwards, number, -1)[-1]
            inwards = self._runs(inwards, count - 1 - number, 1)[-1]
        every = [outwards, inwards]
        for number in range(count):
            every += [*self._runs(given, number, -1), *self._runs(given, number, 1)]
        found: dict[tuple[Step, ...], _Moved] = {given.chain.steps: given}
        for one in every:
            if one.chain.steps not in found:
                found[one.chain.steps] = one
                yield one

    def _runs(self, moved: _Moved, number: int, way: int) -> list[_Moved]:
        """Return where a limit goes, place by place, outwards (-1) or inwards (1).

        No limit goes over another one.
        """
        found = [moved]
        steps = moved.chain.steps
        while steps[number].is_limit and 0 <= number + way < len(steps):
            after = number + way
            if steps[after].is_limit:
                break
            new = self._swapped(moved, min(number, after), way)
            if new is None:
                break
            moved, number, steps = new, after, new.chain.steps
            found.append(moved)
        return found

    def _swapped(self, moved: _Moved, at: int, way: int) -> _Moved | None:
        """Return a chain after a limit and the step beside it changed places, None if they cannot.

        The limit comes from the inside if it goes outwards (-1).
        """
        chain, steps = moved.chain, moved.chain.steps
        own, step = (steps[at + 1], steps[at]) if way < 0 else (steps[at], steps[at + 1])
        inside = own.constant if way < 0 else taken_back(step, own.constant)
        outside = carried(step, own.constant) if way < 0 else own.constant
        if inside is None or outside is None:
            return None
        op, bare = own.op.op, chain.value(at + 2)
        if not self._keeps(step, bare, op, outside, chain.base.dtype.is_float):
            return None
        new = (limit(op, outside), step) if way < 0 else (step, limit(op, inside))
        known = interval_of(bare, self.statement, self.known)
        lemmas = _lemmas(step, op, inside, outside, known, chain.base.dtype.is_float, self.zeros)
        return _Moved(
            replace(chain, steps=(*steps[:at], *new, *steps[at + 2 :])),
            tuple(dict.fromkeys((*moved.lemmas, *lemmas))),
        )

    def _keeps(self, step: Step, bare: Expr, op: str, outside: Literal, nan: bool) -> bool:
        """Return whether a step keeps the order of all that it is applied to, a NaN among it."""
        if step.source.is_integer and step.dtype.is_integer:
            exact = exact_interval_of(step.of(bare), self.statement, self.known)
            return step.op.op == "sat" or (exact is not None and exact.fits(step.dtype))
        if step.op.op in ("+", "-", "*") and self.zeros:
            return False  # What vanishes has a sign, which the limit has not.
        if step.source.is_float and step.dtype.is_integer and nan:
            # NaN becomes 0, and no limit changes NaN.
            return value(outside) <= 0 if op == "max" else value(outside) >= 0
        return True


def _lemmas(
    step: Step,
    op: str,
    inside: Literal,
    outside: Literal,
    known: Interval | None,
    nan: bool,
    zeros: bool,
) -> tuple[Lemma, ...]:
    """Return what proves that a step and a limit may change places.

    ``known`` are the values before the step, if they are integers; if they are floats, ``nan`` says
    whether NaN is one of them.
    """
    one = limit(op, outside).of(step.op)
    other = step.of(limit(op, inside).op)
    x, terms = unknown(step.source), Terms("bits", signed_zeros=zeros)
    claim = f"{print_expr(one)} = {print_expr(other)}".replace("x[]", "x")
    if _has_term(step):
        with suppress(NoTermError):
            left, right, name = (terms.of(expr) for expr in (one, other, x))
            premise = ""
            if step.source.is_float and not nan:
                premise, claim = f"(assert (not (fp.isNaN {name})))\n", f"{claim}, x not NaN"
            elif known is not None and known != full(step.source):
                ends = (canonical(str(n), step.source) for n in (known.low, known.high))
                low, high = (terms.of(Literal(end, step.source)) for end in ends)
                sign = "bvsle" if step.source.kind == "signed" else "bvule"
                premise = f"(assert (and ({sign} {low} {name}) ({sign} {name} {high})))\n"
                claim = f"{claim} for x in {known}"
            same = terms.same(left, right, step.dtype)
            return (Lemma(NAME, claim, f"{terms.declarations()}{premise}(assert (not {same}))\n"),)
    return (*_order(step), _kept(op), *_constants(step, inside, outside))


def _has_term(step: Step) -> bool:
    """Return whether the solver is asked about a step bit for bit.

    Sums and products of floats take it long, or are beyond it.
    """
    to_integer, from_integer = step.dtype.is_integer, step.source.is_integer
    match step.op.op:
        case "sat":
            return to_integer
        case "cast":
            return to_integer == from_integer
        case op:
            return to_integer and op in ("+", "-", "*")


def _order(step: Step) -> tuple[Lemma, ...]:
    """Return the lemma that a step keeps the order of numbers before it rounds, if it does more."""
    op, sort = step.op.op, "Real" if step.dtype.is_float else "Int"
    if op not in ("+", "-", "*", "//", ">>"):
        return ()
    by = (
        real(step.number)
        if sort == "Real"
        else str(int(step.number) if op == "//" else 2 ** int(step.number))
    )
    smt = "div" if op in ("//", ">>") else op
    text = f"(declare-const x {sort})\n(declare-const y {sort})\n(assert (<= x y))\n"
    text += f"(assert (not (<= ({smt} x {by}) ({smt} y {by}))))\n"
    told = f"{op} {step.constant.text}"
    return (Lemma(NAME, f"x <= y gives x {told} <= y {told}, before both are rounded", text),)


def _kept(op: str) -> Lemma:
    """Return the lemma that what keeps the order of numbers, as rounding does, keeps limits."""
    order = "<=" if op == "min" else ">="

    def limited(one: str, other: str) -> str:
        return f"(ite ({order} {one} {other}) {one} {other})"

    text = "(declare-fun f (Real) Real)\n(declare-const x Real)\n(declare-const c Real)\n"
    text += "(assert (=> (<= x c) (<= (f x) (f c))))\n(assert (=> (<= c x) (<= (f c) (f x))))\n"
    text += f"(assert (not (= {limited('(f x)', '(f c)')} (f {limited('x', 'c')}))))\n"
    claim = f"{op}(f(x), f(c)) = f({op}(x, c)) where f keeps the order of numbers, as rounding does"
    return Lemma(NAME, claim, text)


def _constants(step: Step, inside: Literal, outside: Literal) -> tuple[Lemma, ...]:
    """Return the lemma that a sum or product with one limit is the other one."""
    if step.op.op not in ("+", "-", "*"):
        return ()
    made = step.of(inside)
    return (equal(NAME, f"{print_expr(made)} = {outside.text}", [(made, outside)], "bits"),)
