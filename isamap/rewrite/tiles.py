"""The statements of a convolution in transformed tiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from isamap.ir.box import box, is_nonnegative
from isamap.ir.index import Index, ceil_div, const, var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Op, Reduction, Statement
from isamap.ir.statements import (
    accesses,
    identity,
    names,
    names_in_order,
    read_indices,
    reduction_variables,
    substitute_expr,
)
from isamap.rewrite.build import Draft, extents, fresh, local
from isamap.rewrite.combine import combination
from isamap.rewrite.copies import copied, with_part
from isamap.rewrite.toom_cook import Matrix, Transforms
from isamap.rewrite.windows import Slide


@dataclass(frozen=True, slots=True)
class Tiled:
    """A slide with its transforms and its number of tiles."""

    slide: Slide
    transforms: Transforms
    tiles: Index

    @property
    def reach(self) -> Index:
        """How many places of the data the tiles read."""
        return self.transforms.outputs * (self.tiles - 1) + self.transforms.products


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be computed: ``data * window``, summed into the statement's target.

    The sums are ``all`` of the target, so that it need not be 0 before.
    """

    kernel: Kernel
    statement: Statement
    data: Expr
    window: Expr
    tiled: tuple[Tiled, ...]
    all: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """Statements and the local buffers that they write."""

    drafts: tuple[Draft, ...]
    locals: tuple[Buffer, ...]


def statements(plan: Plan) -> Made:
    """Return the transforms of data and window, the batched product, and its transform.

    U holds the window, V the data, M the products, Z the outputs of all slides but the last; one
    slide is transformed at a time.  The window, which may be known ahead, comes first, so that
    nothing lies between the others.  The index of the first slide's tiles comes first, so that
    tiles of one row can be done at once; then come the products, the other tiles, and the other
    variables in the order in which they were, so that these are contiguous.
    """
    return _Maker(plan).make()


@dataclass(slots=True)
class _Maker:
    plan: Plan
    drafts: list[Draft] = field(default_factory=list)
    locals: list[Buffer] = field(default_factory=list)
    sizes: dict[str, Index] = field(default_factory=dict)

    def make(self) -> Made:
        """Return all statements."""
        plan, own = self.plan, extents(self.plan.statement)
        self.sizes |= own
        tiled = plan.tiled
        products = self._names("a", [const(t.transforms.products) for t in tiled])
        tiles = self._names("t", [t.tiles for t in tiled])
        sliding = {name for t in tiled for name in (t.slide.position, t.slide.tap)}
        in_data = [v for v in _in_order(plan.data) if v in own and v not in sliding]
        in_window = [v for v in _in_order(plan.window) if v in own and v not in sliding]
        reduced = reduction_variables(plan.statement)
        kept = [v for v in own if v in {*in_data, *in_window} and v not in reduced]
        window = self._window(products, in_window)
        data = self._data(products, tiles, in_data)
        product = self._buffer("M", [tiles[0], *products, *tiles[1:], *kept])
        self._add(product, "+=", Op("*", (window, data), product.dtype))
        self._outputs(product, products, tiles, kept)
        return Made(tuple(self.drafts), tuple(self.locals))

    # --- the transforms ---------------------------------------------------------------------------
    def _data(self, products: Sequence[str], tiles: Sequence[str], others: Sequence[str]) -> Expr:
        """Write the transformed data, one slide after the other; return an element of them."""
        tiled = self.plan.tiled
        places = self._names("x", [t.reach for t in tiled])
        values: dict[str, Index] = {}
        for tile, place in zip(tiled, places, strict=True):
            values |= tile.slide.data_at(var(place))
        element = self._inside(substitute_expr(self.plan.data, values))
        for at, tile in enumerate(tiled):
            done = [tiles[0], *products[: at + 1], *tiles[1 : at + 1]]
            dims = [*done, *places[at + 1 :], *others]
            start = tile.transforms.outputs * var(tiles[at])
            inputs = _along(element, places[at], start, tile.transforms.products)
            element = self._stage("V", dims, products[at], tile.transforms.data, inputs)
        return element

    def _window(self, products: Sequence[str], others: Sequence[str]) -> Expr:
        """Write the transformed window; return an element of it."""
        tiled = self.plan.tiled
        places = self._names("y", [const(t.slide.taps) for t in tiled])
        values: dict[str, Index] = {}
        for tile, place in zip(tiled, places, strict=True):
            values |= tile.slide.window_at(var(place))
        element = substitute_expr(self.plan.window, values)
        for at, tile in enumerate(tiled):
            dims = [*products[: at + 1], *places[at + 1 :], *others]
            inputs = _along(element, places[at], const(0), tile.slide.taps)
            element = self._stage("U", dims, products[at], tile.transforms.window, inputs)
        return element

    def _outputs(
        self,
        product: Access,
        products: Sequence[str],
        tiles: Sequence[str],
        kept: Sequence[str],
    ) -> None:
        """Write the outputs of the tiles, and what exists of them into the target."""
        tiled, target = self.plan.tiled, self.plan.statement.target
        outputs = self._names("z", [t.transforms.outputs * t.tiles for t in tiled])
        element: Expr = product
        last = len(tiled) - 1
        known = tiled[last].slide.size.constant is not None
        for at, tile in enumerate(tiled):
            inputs = _along(element, products[at], const(0), tile.transforms.products)
            if at == last and known:
                self._write(inputs, outputs, tiles[at])
                return
            dims = [*outputs[: at + 1], *products[at + 1 :], *tiles[at + 1 :], *kept]
            start = tile.transforms.outputs * var(tiles[at])
            matrix = tile.transforms.output
            element = self._stage("Z", dims, outputs[at], matrix, inputs, start)
        positions = {z: var(t.slide.position) for z, t in zip(outputs, tiled, strict=True)}
        self._add(target, self._ends, substitute_expr(element, positions))

    def _write(self, inputs: Sequence[Expr], outputs: Sequence[str], tile_name: str) -> None:
        """Add the outputs along the last slide to the target, as far as there are any."""
        *earlier, tile = self.plan.tiled
        count, size = tile.transforms.outputs, tile.slide.size
        positions = {z: var(t.slide.position) for z, t in zip(outputs, earlier, strict=False)}
        found = [substitute_expr(each, positions) for each in inputs]
        for number, row in enumerate(tile.transforms.output):
            self.sizes[tile_name] = ceil_div(size - number, count)
            at = {tile.slide.position: count * var(tile_name) + number}
            target = substitute_expr(self.plan.statement.target, at)
            assert isinstance(target, Access)
            self._add(target, self._ends, combination(row, found))

    @property
    def _ends(self) -> Reduction:
        return "=" if self.plan.all else "+="

    def _stage(
        self,
        letter: str,
        dims: Sequence[str],
        out: str,
        matrix: Matrix,
        inputs: Sequence[Expr],
        start: Index | None = None,
    ) -> Access:
        """Write a buffer over ``dims`` whose row ``start + k`` along ``out`` is the matrix's k."""
        element = self._buffer(letter, dims)
        for number, row in enumerate(matrix):
            target = substitute_expr(element, {out: (start or const(0)) + number})
            assert isinstance(target, Access)
            self._add(target, "=", combination(row, inputs))
        return element

    # --- the data's edge --------------------------------------------------------------------------
    def _inside(self, data: Expr) -> Expr:
        """Return the data, read from a padded copy where tiles reach beyond its buffer."""
        (access,) = accesses(data)
        buffer = self.plan.kernel.buffer(access.buffer)
        stays = zip(access.indices, buffer.shape, strict=True)
        if buffer.pad is not None or all(self._stays(index, size) for index, size in stays):
            return data
        name = self._fresh(f"{buffer.name}_padded")
        zero = identity("+=", buffer.dtype)
        made = copied(self.plan.kernel, buffer.name, name, lambda source: source, zero)
        self.drafts.append(made.draft)
        self.locals.append(made.buffer)
        return with_part(data, access, replace(access, buffer=name))

    def _stays(self, index: Index, size: Index) -> bool:
        known = {v: extent for v, extent in self.sizes.items() if v in index.names}
        if not any(v not in extents(self.plan.statement) for v in known):
            return True  # no slide moves it
        low, high = box(index, known)
        if low is None or high is None:
            return False
        return is_nonnegative(low) and is_nonnegative(size - 1 - high)

    # --- parts ------------------------------------------------------------------------------------
    def _add(self, target: Access, reduction: Reduction, value: Expr) -> None:
        used = names(target) | names(value)
        own = {v: size for v, size in self.sizes.items() if v in used}
        self.drafts.append(Draft(target, reduction, value, own))

    def _buffer(self, letter: str, dims: Sequence[str]) -> Access:
        dtype = self.plan.statement.target.dtype
        name = self._fresh(letter)
        self.locals.append(local(name, dtype, [self.sizes[v] for v in dims]))
        return Access(name, tuple(map(var, dims)), dtype)

    def _names(self, letter: str, sizes: Sequence[Index]) -> list[str]:
        """Return new variables of some sizes."""
        found = []
        for size in sizes:
            name = self._fresh(letter)
            self.sizes[name] = size
            found.append(name)
        return found

    def _fresh(self, wanted: str) -> str:
        return fresh(self.plan.kernel, wanted, [*self.sizes, *(b.name for b in self.locals)])


def _in_order(expr: Expr) -> list[str]:
    found = (name for index in read_indices(expr) for name in names_in_order(index))
    return list(dict.fromkeys(found))


def _along(element: Expr, name: str, start: Index, count: int) -> list[Expr]:
    """Return an element at ``count`` places along a variable."""
    values: list[Mapping[str, Index]] = [{name: start + place} for place in range(count)]
    return [substitute_expr(element, value) for value in values]
