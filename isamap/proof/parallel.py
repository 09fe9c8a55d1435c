"""Parallel iterations do not meet: what one writes no other one reads or writes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import LoweredKernel
from isamap.proof.dims import dimensions, is_product
from isamap.proof.touched import Touch, touches
from isamap.proof.walk import Context, Site, Terms, conjunction, disjunction, number
from isamap.solver.lemma import Lemma


@dataclass(frozen=True, slots=True)
class _Run:
    """Touches of the elements from ``address`` and a constant on, ``length`` of them."""

    address: Index
    length: int
    context: Context
    writes: bool


def parallel_lemmas(
    kernel: Kernel, machine: Accelerator, lowered: LoweredKernel, found: Iterable[Site]
) -> tuple[Lemma, ...]:
    """Return a claim for each parallel loop and each array that its iterations write.

    Arrays that exist once per thread are left out.
    """
    entries = {entry.name: entry for entry in machine.entries}
    private = {a.name for a in lowered.arrays if a.private}
    groups: dict[tuple[str, str], dict[_Run, set[int]]] = {}
    for site in found:
        if not site.context.parallel:
            continue
        for touch in touches(site, entries):
            if touch.array not in private:
                run, start = _run(touch)
                for counter in touch.context.parallel:
                    group = groups.setdefault((counter, touch.array), {})
                    group.setdefault(run, set()).add(start)
    buffers = {b.name: b for b in kernel.buffers}
    lemmas = []
    for (counter, array), runs in groups.items():
        if not any(run.writes for run in runs):
            continue
        claim = f"iterations of {counter} do not touch what others write in {array}"
        terms = Terms(lowered.symbols, kernel)
        shape = _joined_rows(runs, buffers[array].shape) if array in buffers else ()
        if not any(is_product(run.address) for run in runs) or not _indexed(runs, shape):
            shape = (const(0),)  # The address is the only index, without an end.
        negation = _Conflict(counter, shape, terms).of(runs)
        lemmas.append(Lemma("parallel", claim, terms.script(negation, lowered.requires)))
    return tuple(lemmas)


def _joined_rows(runs: Mapping[_Run, set[int]], shape: Sequence[Index]) -> tuple[Index, ...]:
    """Return a shape whose last dimension holds whole runs.

    What lies across rows of constant length (several pixels of few channels) is an element of one
    longer row; where it ends is asked of that one.
    """
    *outer, last = shape or (const(1),)
    reach = max(max(starts) + run.length for run, starts in runs.items())
    while outer and last.constant is not None and last.constant < reach:
        last = outer.pop() * last
    return (*outer, last)


def _indexed(runs: Iterable[_Run], shape: Sequence[Index]) -> bool:
    return bool(shape) and all(dimensions(run.address, shape) is not None for run in runs)


@dataclass(frozen=True, slots=True)
class _Conflict:
    """Writes that some iteration of ``counter`` touches which a different one writes.

    With several dimensions an element is told by its indices, and an index outside its extent
    counts as a conflict, too.
    """

    counter: str
    shape: tuple[Index, ...]
    terms: Terms

    def of(self, runs: Mapping[_Run, set[int]]) -> str:
        """Return the conflict of any two of these."""
        one = [self._reached(run, starts) for run, starts in runs.items() if run.writes]
        other = []
        for run, starts in runs.items():
            names = [name for name, _ in run.context.counters]
            inner = names[names.index(self.counter) :]
            other.append(self._reached(_primed(run, inner), starts))
        apart = f"(not (= |{self.counter}| |{self.counter}'|))"
        meeting = conjunction([apart, disjunction(one), disjunction(other)])
        if len(self.shape) < 2:
            return meeting
        return disjunction([meeting, *(self._outside(run, starts) for run, starts in runs.items())])

    def _indices(self, address: Index) -> tuple[Index, ...]:
        if len(self.shape) < 2:
            return (address,)
        found = dimensions(address, self.shape)
        assert found is not None
        return found

    def _reached(self, run: _Run, starts: Iterable[int]) -> str:
        *outer, last = self._indices(run.address)
        self.terms.names.update(dict.fromkeys(_element(n) for n in range(len(outer) + 1)))
        same = [f"(= |{_element(n)}| {self.terms.term(i)})" for n, i in enumerate(outer)]
        here, address = f"|{_element(len(outer))}|", self.terms.term(last)
        places = []
        for low, high in _joined(sorted(starts), run.length):
            first, end = f"(+ {address} {number(low)})", f"(+ {address} {number(high)})"
            places.append(f"(and (<= {first} {here}) (<= {here} {end}))")
        return conjunction([*self.terms.context(run.context), *same, disjunction(places)])

    def _outside(self, run: _Run, starts: set[int]) -> str:
        indices = self._indices(run.address)
        cases = []
        for n, (index, extent) in enumerate(zip(indices, self.shape, strict=True)):
            inner = n == len(indices) - 1
            low, high = (min(starts), max(starts) + run.length - 1) if inner else (0, 0)
            term, end = self.terms.term(index), self.terms.term(extent)
            cases.append(f"(< (+ {term} {number(low)}) 0)")
            cases.append(f"(>= (+ {term} {number(high)}) {end})")
        return conjunction([*self.terms.context(run.context), disjunction(cases)])


def _element(dimension: int) -> str:
    return f"index {dimension}"


def _joined(starts: list[int], length: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of the stretches that runs of one length cover."""
    low = high = None
    for start in starts:
        if low is None or high is None:
            low, high = start, start + length - 1
        elif start <= high + 1:
            high = max(high, start + length - 1)
        else:
            yield low, high
            low, high = start, start + length - 1
    if low is not None and high is not None:
        yield low, high


def _primed(run: _Run, names: list[str]) -> _Run:
    other = {name: var(f"{name}'") for name in names}

    def moved(index: Index) -> Index:
        return index.substitute(other)

    context = run.context
    return replace(
        run,
        address=moved(run.address),
        context=replace(
            context,
            counters=tuple(
                (f"{name}'" if name in other else name, moved(count))
                for name, count in context.counters
            ),
            conditions=tuple(map(moved, context.conditions)),
            failed=tuple(tuple(map(moved, failed)) for failed in context.failed),
        ),
    )


def _run(touch: Touch) -> tuple[_Run, int]:
    """Return a touch with one axis of neighbouring elements as a length, and its constant apart.

    This is exact: elements between those that are touched are not counted.
    """
    address, context, length = touch.address, touch.context, 1
    for name, count in context.counters:
        last = count.constant
        others = [c for failed in context.failed for c in failed]
        used = [*context.conditions, *others, *(c for _, c in context.counters)]
        free = name not in context.parallel and not any(name in index.names for index in used)
        if free and last is not None and last >= 1 and address.coefficient(name).constant == 1:
            if not address.is_linear_in((name,)):
                continue
            address, length = address.substitute({name: 0}), last
            kept = tuple(pair for pair in context.counters if pair[0] != name)
            context = replace(context, counters=kept)
            break
    offset = address.offset
    return _Run(address - offset, length, context, touch.writes), offset
