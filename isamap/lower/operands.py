"""Where the operands of one statement's instruction lie: in their buffers, or in copies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from isamap.ir.index import Index, const, product, var
from isamap.ir.nodes import Access, Expr, Literal
from isamap.ir.printer import print_expr
from isamap.lower.context import Context
from isamap.lower.fault import bad
from isamap.lower.joint import Joint, Place, join
from isamap.lower.nodes import Copy
from isamap.lower.packing import gathering_copies, packing_copies, padded_at, padded_copy
from isamap.lower.position import Position
from isamap.mapping.fragments.fragment import Aside, Reference
from isamap.mapping.fragments.layout import PackedLayout, PaddedLayout, direct, padded
from isamap.mapping.laws.killing import is_nothing
from isamap.mapping.tiles.operand import packed, spare_rows
from isamap.mapping.tiles.shared import accesses_of, brought, gathered
from isamap.schedule.overlap import overlapped
from isamap.schedule.schedule import StatementSchedule, Treatment


class Operands:
    """Answers where accesses find their elements under a schedule, and collects the copies.

    ``copies`` are those that are made before all loops.  ``references`` changes as the loops are
    made that copies are inside of.
    """

    def __init__(
        self,
        context: Context,
        schedule: StatementSchedule,
        extents: Mapping[str, Index],
        tile: Mapping[str, int],
        block: Mapping[str, int],
        order: tuple[str, ...],
        fillers: Mapping[str, Literal | None],
    ) -> None:
        """The last ones are the statement's: iterations, tiles and register block of each variable,
        their order, and what dead elements of operands must hold.
        """
        self.context = context
        self.schedule = schedule
        self.mapping = schedule.mapping
        self.matching = schedule.mapping.matching
        self.extents = extents
        self.tile = tile
        self.block = block
        self.order = order
        self.fillers = fillers
        self.copies: list[Copy] = []
        self._later: list[tuple[int, str, Access]] = []
        self._kinds: dict[tuple[str, Access], Treatment] = {}
        self._rooms: dict[tuple[str, Access], str] = {}
        self._pitches: dict[tuple[str, Access], int] = {}
        self._joints: dict[Place, Joint] = {}
        self.references = self._references()

    @property
    def past(self) -> frozenset[str]:
        """The arrays from which loads go past the first cache, as far as the loops are made."""
        places = [
            (operand, access)
            for operand, _ in brought(self.matching)
            for access in accesses_of(self.matching, operand)
        ]
        return frozenset(
            self.references[o][a].array for o, a in map(places.__getitem__, self.schedule.past)
        )

    def _references(self) -> dict[str, dict[Access, Reference]]:
        treatments = iter(self.schedule.operands)
        pitches: dict[Place, int] = {}
        number = 0
        for operand, _ in brought(self.matching):
            places = gathered(self.matching, operand)
            for access in accesses_of(self.matching, operand):
                kind: Treatment = next(treatments, "direct")
                self._kinds[operand, access] = kind
                pitches[operand, access] = self._pitch(access, kind, number)
                if depth := self.schedule.copied_inside(number):
                    self._check_inside(operand, access, kind, depth, bool(places))
                    self._later.append((depth, operand, access))
                number += 1
        self._join(pitches)
        table: dict[str, dict[Access, Reference]] = {}
        loose = overlapped(self.schedule)
        for operand, _ in brought(self.matching):
            own = accesses_of(self.matching, operand)
            if places := gathered(self.matching, operand):
                if {self._kinds[operand, access] for access in own} != {"packed"}:
                    raise bad(f"operand '{places[0][0]}' is gathered from several places: packed")
                table[operand] = dict.fromkeys(own, self._gathered(operand, places))
                continue
            table[operand] = {
                access: replace(
                    self._reference(
                        operand, access, self._kinds[operand, access], pitches[operand, access]
                    ),
                    loose=loose,
                )
                for access in own
            }
        self._unpacked = {(o, a): table[o][a] for _, o, a in self._later}
        return table

    def _join(self, pitches: Mapping[Place, int]) -> None:
        """Find out which accesses share a padded copy."""
        depths = {(operand, access): depth for depth, operand, access in self._later}
        for depth in sorted({depths.get(place, 0) for place in pitches}):
            alike = [
                place
                for place in pitches
                if depths.get(place, 0) == depth
                and self._kinds[place] == "padded"
                and self._found(place[1]).guards
            ]
            self._joints |= join(alike, self._extents_inside(depth), pitches)

    def _found(self, access: Access) -> Reference:
        """Return where an access finds its elements in its buffer."""
        buffers = self.context.buffers
        return direct(buffers[access.buffer], access, self.extents, buffers)

    def _pitch(self, access: Access, treatment: str, number: int) -> int:
        """Return how far apart rows of an access's padded copy begin; 0 if they are not."""
        pitch = self.schedule.pitch(number)
        if pitch and treatment != "padded":
            raise bad(f"{access.buffer} has a pitch between rows, and is {treatment}")
        return pitch

    def _reference(self, operand: str, access: Access, treatment: str, pitch: int) -> Reference:
        found = self._found(access)
        if treatment == "direct":
            return found
        if treatment == "bordered":
            return self._bordered(access, found)
        later = (operand, access) in {(o, a) for _, o, a in self._later}
        if treatment == "padded" and later and found.guards:
            self._pitches[operand, access] = pitch
            return self._padding(access, pitch, operand=operand).reference()
        own = operand if treatment == "padded" else None
        found = self.unguarded(access, found, own, pitch)
        if treatment == "padded" or later:
            return found
        return self._packed(operand, access, found)

    def _bordered(self, access: Access, found: Reference) -> Reference:
        """Return the reference of an access whose fragments are copied aside where they are cut."""
        if not found.guards:
            return found
        extents = {v: const(self.tile[v]) for v in self.extents}
        layout = self._padding(access, 0, extents)
        name = f"{access.buffer}_aside"
        array = self.context.workspace(name, access.dtype, product(layout.room), private=True)
        return replace(found, aside=Aside(access, array))

    def _check_inside(
        self, operand: str, access: Access, treatment: str, depth: int, is_gathered: bool
    ) -> None:
        """Refuse to copy inside loops what is not copied, or where there are not as many."""
        if treatment in ("direct", "bordered") or is_gathered:
            raise bad(f"{access.buffer} is copied inside loops, and operand '{operand}' is not")
        if not 0 < depth <= len(self.schedule.levels):
            count = len(self.schedule.levels)
            raise bad(f"{access.buffer} is copied inside {depth} loops, and there are {count}")

    def useful(self) -> tuple[Index, ...]:
        """Return what must hold for a call of the instruction to do anything.

        Where one is negative, all that it takes of an access is padding, and padding adds nothing:
        0 to a sum of products, -inf to a maximum.
        """
        statement = self.matching.statement
        permissions = self.context.kernel.permissions
        laid = {v for v, tile in self.tile.items() if tile > 1}
        found: dict[Index, None] = {}
        for own in self.references.values():
            for access, reference in own.items():
                if reference.pad is not None and is_nothing(
                    statement.value, statement.reduction, access, reference.pad, permissions.finite
                ):
                    found |= dict.fromkeys(g for g in reference.guards if not g.names & laid)
        return tuple(found)

    def copied_inside(self, depth: int, here: Position) -> tuple[tuple[Copy, ...], frozenset[str]]:
        """Return the copies that are made of operands inside so many loops, of what is alive there,
        and whose operands' elements are found in them from then on.
        """
        copies: list[Copy] = []
        moved = [(operand, access) for at, operand, access in self._later if at == depth]
        for operand, access in moved:
            if self._kinds[operand, access] == "padded":
                copies += self._padded_here(operand, access, depth, here)
            else:
                copies += self._packed_here(operand, access, depth, here)
        return tuple(copies), frozenset(operand for operand, _ in moved)

    def _packed_here(
        self, operand: str, access: Access, depth: int, here: Position
    ) -> tuple[Copy, ...]:
        unpacked = self._unpacked[operand, access]
        layout = self._packed_layout(operand, access, here.live)
        if layout is None:
            raise bad(f"{access.buffer} cannot be packed for operand '{operand}'")
        layout = replace(layout, array=self._room(operand, access, depth))
        moved = {v: here.origin[v] + var(v) for v in self.extents}
        source = replace(unpacked, offset=unpacked.offset.substitute(moved))
        found = layout.reference()
        back = {v: var(v) - here.origin[v] for v in self.extents}
        self.references[operand][access] = replace(found, offset=found.offset.substitute(back))
        return packing_copies(self.context, layout, source)

    def _padded_here(
        self, operand: str, access: Access, depth: int, here: Position
    ) -> tuple[Copy, ...]:
        if (operand, access) not in self._pitches:
            return ()  # it never leaves its buffer
        joint = self._joints.get((operand, access))
        room = self._room(*(joint.first if joint else (operand, access)), depth)
        layout = padded_at(room, access, here, here.live)
        if layout is None:
            raise bad(f"the reach of {access.buffer} inside {depth} loops has no closed form")
        layout = layout if joint is None else joint.widened(layout)
        layout = replace(layout, pitch=self._pitches[operand, access])
        loose = overlapped(self.schedule)
        self.references[operand][access] = replace(layout.reference(), loose=loose)
        if joint is not None and joint.first != (operand, access):
            return ()  # it is made for that one
        return (padded_copy(self.context, layout, here.is_nonnegative),)

    def _room(self, operand: str, access: Access, depth: int) -> str:
        """Return the array for what is copied inside so many loops: each thread's own if threads
        share one of them.
        """
        if (operand, access) not in self._rooms:
            array, size = self._copy_size(operand, access, self._extents_inside(depth))
            private = any(level.parallel for level in self.schedule.levels[:depth])
            name = self.context.workspace(array, access.dtype, size, private)
            self._rooms[operand, access] = name
        return self._rooms[operand, access]

    def _extents_inside(self, depth: int) -> dict[str, Index]:
        """Return the iterations of each variable inside so many loops."""
        steps = {level.variable: level.step for level in self.schedule.levels[:depth]}
        return {
            v: extent if v not in steps else const(min(steps[v], extent.constant or steps[v]))
            for v, extent in self.extents.items()
        }

    def _copy_size(
        self, operand: str, access: Access, extents: Mapping[str, Index]
    ) -> tuple[str, Index]:
        """Return the name of a copy for so many iterations of each variable, and its elements."""
        if self._kinds[operand, access] != "padded":
            packed_ = self._packed_layout(operand, access, extents)
            assert packed_ is not None, "it was packed already"
            return packed_.array, packed_.size()
        layout = self._padding(access, self._pitches[operand, access], extents, operand)
        return layout.array, product(layout.room) + self._spare(operand, access, layout)

    def _spare(self, operand: str, access: Access, layout: PaddedLayout) -> Index:
        """Return the elements behind a padded copy that whole fragments read: of any operand."""
        joint = self._joints.get((operand, access))
        sharing = [
            place[0] for place, one in self._joints.items() if joint and one.first == joint.first
        ]
        rows = (
            spare_rows(self.mapping, name, layout.reference(), self.extents)
            for name in dict.fromkeys((operand, *sharing))
        )
        return max(rows, key=lambda index: index.constant or 0)

    def unguarded(
        self, access: Access, found: Reference, operand: str | None = None, pitch: int = 0
    ) -> Reference:
        """Return where an access finds its elements without leaving its buffer.

        Whole fragments of an ``operand`` may be read there; ``pitch`` is that of a padded copy.
        """
        if found.guards:
            layout = self._padding(access, pitch, operand=operand)
            joint = self._joints.get((operand or "", access))
            array = self._rooms.get(joint.first) if joint else None
            if array is None:
                size = product(layout.room)
                if operand is not None:
                    size += self._spare(operand, access, layout)
                array = self.context.workspace(layout.array, access.dtype, size)
                self.copies.append(padded_copy(self.context, replace(layout, array=array)))
                if joint:
                    self._rooms[joint.first] = array
            found = replace(layout, array=array).reference()
        return found

    def _padding(
        self,
        access: Access,
        pitch: int,
        extents: Mapping[str, Index] | None = None,
        operand: str | None = None,
    ) -> PaddedLayout:
        """Return the padded copy for all iterations, or for so many of each variable.

        That of an access of an ``operand`` may be one of several accesses.
        """
        array = f"{access.buffer}_padded"
        layout = padded(array, access, self.extents if extents is None else extents)
        if layout is None:
            raise bad(f"the reach of {access.buffer} has no closed form: it cannot be padded")
        if operand is not None and (joint := self._joints.get((operand, access))) is not None:
            layout = joint.widened(layout)
        length = layout.shape[-1].constant if layout.shape else None
        if pitch and (length is None or length > pitch):
            raise bad(f"rows of {array} are longer than {pitch} elements")
        return replace(layout, pitch=pitch)

    def _gathered(self, operand: str, places: Sequence[tuple[str, Expr]]) -> Reference:
        """Return where an operand lies that is packed from what several places want."""
        layouts: list[PackedLayout] = []
        sources: list[Reference] = []
        for place, expr in places:
            layout = self._packed_layout(place, expr) if isinstance(expr, Access) else None
            if layout is None or not isinstance(expr, Access):
                raise bad(f"{print_expr(expr)} cannot be packed for operand '{operand}'")
            buffers = self.context.buffers
            found = direct(buffers[expr.buffer], expr, self.extents, buffers)
            layouts.append(layout)
            sources.append(self.unguarded(expr, found))
        first = layouts[0]
        array = self.context.workspace(first.array, first.access.dtype, first.size())
        layouts = [replace(layout, array=array) for layout in layouts]
        self.copies += gathering_copies(self.context, layouts, sources)
        return layouts[0].reference()

    def _packed(self, operand: str, access: Access, source: Reference) -> Reference:
        layout = self._packed_layout(operand, access)
        if layout is None:
            raise bad(f"{access.buffer} cannot be packed for operand '{operand}'")
        array = self.context.workspace(layout.array, access.dtype, layout.size())
        layout = replace(layout, array=array)
        self.copies += packing_copies(self.context, layout, source)
        return layout.reference()

    def _packed_layout(
        self, operand: str, access: Access, extents: Mapping[str, Index] | None = None
    ) -> PackedLayout | None:
        return packed(
            f"{access.buffer}_packed",
            self.mapping,
            operand,
            access,
            self.fillers.get(operand),
            self.extents if extents is None else dict(extents),
            self.block,
            self.order,
            self._kinds.get((operand, access)) == "repeated",
            self.extents,
        )
