"""Every instruction and copy of a lowered kernel, with what holds where it stands.

This reads the lowered kernel as data; it shares no code with the lowering that made it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from isamap.ir.index import Div, Index, Mod, Name, Read, const, var
from isamap.ir.nodes import Kernel
from isamap.ir.smt import at_least, term
from isamap.ir.statements import accesses
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Prefetch,
    Scope,
    Setting,
    Token,
)

UNBOUNDED = "; what an array holds is an index here, of which nothing is known"
"""The first line of a script that can decide nothing."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a node stands.

    ``counters`` are those of the loops around it, ``conditions`` are at least 0, and of each of
    ``failed`` one is below 0.  ``parallel`` is the outermost parallel loop around the node, whose
    iterations threads share; those inside it are loops like others.
    """

    counters: tuple[tuple[str, Index], ...] = ()
    conditions: tuple[Index, ...] = ()
    failed: tuple[tuple[Index, ...], ...] = ()
    parallel: tuple[str, ...] = ()

    def inside(
        self, counters: tuple[tuple[str, Index], ...], conditions: tuple[Index, ...] = ()
    ) -> "Context":
        """Return the context of what is inside more loops and conditions."""
        return replace(
            self,
            counters=(*self.counters, *counters),
            conditions=(*self.conditions, *conditions),
        )


@dataclass(frozen=True, slots=True)
class Site:
    """A call or a copy in its context."""

    node: Call | Copy
    context: Context


class Malformed(Exception):
    """A lowered kernel whose names do not say what they stand for."""


def sites(lowered: LoweredKernel) -> Iterator[Site]:
    """Yield every call and copy, in order.

    :class:`Malformed` where a counter hides a name, or the place of a prefetch is not known ahead.
    """
    taken = frozenset(lowered.symbols)
    yield from _within(lowered.code, Context(), taken)


def _within(nodes: tuple[Node, ...], context: Context, taken: frozenset[str]) -> Iterator[Site]:
    for node in nodes:
        match node:
            case Call() | Copy():
                yield Site(node, context)
            case Token() | Setting():
                pass
            case Prefetch(_, buffer, offset):
                # It touches nothing, wherever it lies; but finding the place must not, either.
                if offset.reads:
                    raise Malformed(f"what is prefetched of {buffer} depends on what arrays hold")
                if unknown := sorted(offset.names - taken):
                    raise Malformed(f"{unknown[0]}, by which {buffer} is prefetched, is nothing")
            case Loop(counter, count, body, parallel):
                if counter in taken:
                    raise Malformed(f"the counter {counter} hides another one")
                inner = context.inside(((counter, count),))
                if parallel and not context.parallel:
                    inner = replace(inner, parallel=(counter,))
                yield from _within(body, inner, taken | {counter})
            case Guard(conditions, body, otherwise):
                yield from _within(body, context.inside((), conditions), taken)
                other = replace(context, failed=(*context.failed, conditions))
                yield from _within(otherwise, other, taken)
            case Scope(_, body):
                yield from _within(body, context, taken)


# --- as SMT-LIB ---------------------------------------------------------------------------------
class Terms:
    """Writes index expressions as SMT-LIB terms; what arrays hold becomes a name with a range."""

    def __init__(self, symbols: tuple[str, ...], kernel: Kernel) -> None:
        self.symbols = symbols
        self.kernel = kernel
        self.buffers = {b.name: b for b in kernel.buffers}
        self.reads: dict[Read, str] = {}
        self.names: dict[str, None] = {}

    def term(self, index: Index) -> str:
        """Return the term of an index expression."""
        plain = self.plain(index)
        self.names.update(dict.fromkeys(sorted(plain.names)))
        return term(plain)

    def nonnegative(self, index: Index) -> str:
        """Return the term of ``index >= 0``."""
        plain = self.plain(index)
        self.names.update(dict.fromkeys(sorted(plain.names)))
        return at_least(plain, 0)

    def plain(self, index: Index) -> Index:
        """Return an index with a name for everything that an array holds."""
        if not index.reads:
            return index
        total = const(0)
        for monomial, factor in index.terms:
            product = const(factor)
            for atom in monomial:
                match atom:
                    case Name(name):
                        product = product * var(name)
                    case Div(value, divisor):
                        product = product * (self.plain(value) // divisor)
                    case Mod(value, divisor):
                        product = product * (self.plain(value) % divisor)
                    case Read():
                        name = self.reads.setdefault(atom, f"{atom.buffer} read {len(self.reads)}")
                        product = product * var(name)
            total += product
        return total

    def context(self, context: Context) -> list[str]:
        """Return the terms of all that holds in a context."""
        found = []
        for name, count in context.counters:
            self.names[name] = None
            found.append(f"(and (<= 0 |{name}|) (< |{name}| {self.term(count)}))")
        found += [self.nonnegative(condition) for condition in context.conditions]
        for failed in context.failed:
            found.append(f"(not {conjunction([self.nonnegative(c) for c in failed])})")
        return found

    def script(self, negation: str, requires: tuple[Index, ...]) -> str:
        """Return the script that asks for values at which ``negation`` holds."""
        given = [self.nonnegative(condition) for condition in requires]
        bounds = []
        free = False
        for read, name in self.reads.items():
            if name in self.names:
                own = [f"(< |{name}| {self.term(extent)})" for extent in self.limits(read.buffer)]
                bounds += [f"(assert (and (<= 0 |{name}|) {' '.join(own)}))"] if own else []
                free |= not own and self._held(read) is None
        lines = [UNBOUNDED] if free else []
        lines += [f"(declare-const |{name}| Int)" for name in sorted(self.names)]
        lines += bounds
        lines += [f"(assert (<= 1 |{name}|))" for name in self.symbols if name in self.names]
        for read, name in self.reads.items():
            if name in self.names and (held := self._held(read)):
                lines.append(f"(assert (and (<= {held[0]} |{name}|) (<= |{name}| {held[1]})))")
        lines += [f"(assert {condition})" for condition in given]
        return "\n".join([*lines, f"(assert {negation})"])

    def limits(self, buffer: str) -> tuple[Index, ...]:
        """Return the extents below which each element of a buffer is as it serves as an index.

        Indices that arrays hold are looked at before each call.
        """
        found: dict[Index, None] = {}
        for statement in self.kernel.statements:
            for access in (statement.target, *accesses(statement.value)):
                for n, index in enumerate(access.indices):
                    match index.terms:
                        case (((Read(name),), 1),) if name == buffer:
                            found.setdefault(self.buffers[access.buffer].shape[n])
        return tuple(found)

    def _held(self, read: Read) -> tuple[str, str] | None:
        values = self.buffers[read.buffer].values if read.buffer in self.buffers else None
        if values is None:
            return None
        low, high = (number(int(v.text)) for v in values)
        return low, high


def conjunction(terms: list[str]) -> str:
    """Return the term of all of these."""
    return terms[0] if len(terms) == 1 else f"(and {' '.join(terms)})" if terms else "true"


def disjunction(terms: list[str]) -> str:
    """Return the term of any of these."""
    return terms[0] if len(terms) == 1 else f"(or {' '.join(terms)})" if terms else "false"


def number(value: int) -> str:
    """Return an integer as SMT-LIB writes it."""
    return str(value) if value >= 0 else f"(- {-value})"
