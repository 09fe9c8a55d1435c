"""The accesses of one statement, apart from types."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from isamap.ir.index import Index
from isamap.text.context import Declared, Placed, Scope
from isamap.text.indices import element_indices
from isamap.text.syntax import Apply, Convert, Element, Expression, Named, StatementItem


@dataclass(frozen=True, slots=True)
class Use:
    """An access of a statement: to its target, or a read, perhaps of an index."""

    node: Element
    buffer: Declared
    indices: tuple[Index, ...]
    target: bool

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self.buffer.item.name.text

    @property
    def padded(self) -> bool:
        """Whether the access may leave the shape: only reads may."""
        return self.buffer.padded and not self.target

    @property
    def dimensions(self) -> Iterator[tuple[int, Index, Index]]:
        """The dimensions: number, index, extent."""
        pairs = zip(self.indices, self.buffer.shape, strict=True)
        return ((n, index, extent) for n, (index, extent) in enumerate(pairs))


@dataclass(frozen=True, slots=True)
class Uses:
    """All accesses of a statement, the target's first, and where each variable occurs first.

    ``bare`` are the names that occur as values and in no index.

    ``elements`` has the indices of every access by node identity, None where they are wrong;
    ``complete`` says that none is.
    """

    item: StatementItem
    accesses: tuple[Use, ...]
    names: dict[str, Placed]
    bare: frozenset[str]
    elements: dict[int, tuple[Index, ...] | None]

    @property
    def complete(self) -> bool:
        """Whether every access is understood."""
        return isinstance(self.item.target, Element) and None not in self.elements.values()

    @property
    def target(self) -> Use | None:
        """The access that the statement writes, if it is understood."""
        return next((use for use in self.accesses if use.target), None)

    def without(self, left_out: Collection[Use]) -> "Uses":
        """Return the same without some accesses."""
        return replace(self, accesses=tuple(u for u in self.accesses if u not in left_out))


def uses_of(scope: Scope, item: StatementItem) -> Uses:
    """Return the accesses of a statement; errors in them are reported."""
    accesses: list[Use] = []
    names: dict[str, Placed] = {}
    elements: dict[int, tuple[Index, ...] | None] = {}
    leaves = [*_leaves(item.target), *_leaves(item.value)]
    for leaf in leaves:
        if isinstance(leaf, Named):
            _take(scope, names, (leaf.name,), leaf)
            continue
        indices = elements[id(leaf)] = element_indices(scope, leaf)
        if indices is None:
            continue
        declared = scope.buffers[leaf.buffer.text]
        target = leaf is item.target
        accesses.append(Use(leaf, declared, indices, target))
        for index, node in zip(indices, leaf.indices, strict=True):
            _take(scope, names, sorted(index.names), node)
            for read in index.reads:
                inner = scope.buffers[read.buffer]
                accesses.append(Use(leaf, inner, read.indices, False))
    indexing = {name for use in accesses for index in use.indices for name in index.names}
    bare = frozenset(names) - indexing
    return Uses(item, tuple(accesses), names, bare, elements)


def _take(
    scope: Scope,
    names: dict[str, Placed],
    found: Iterator[str] | tuple[str, ...] | list[str],
    node: Placed,
) -> None:
    for name in found:
        taken = name in scope.extents or name in scope.buffers or name in scope.broken
        if not taken and name not in scope.derived and name not in scope.parameters:
            names.setdefault(name, node)


def _leaves(node: Expression) -> Iterator[Element | Named]:
    match node:
        case Element() | Named():
            yield node
        case Apply(_, args):
            for arg in args:
                yield from _leaves(arg)
        case Convert():
            yield from _leaves(node.arg)
        case _:
            return
