"""What results are finished with, packed as whole fragments where it lies in memory otherwise.

A bias or a residual is taken as it lies where an instruction does that.  Where none does, because
it takes whole and aligned fragments only, a copy has one for each fragment of results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isamap.ir.index import Index
from isamap.ir.nodes import Access
from isamap.mapping.fragments.layout import PackedLayout, PlacedDigit
from isamap.mapping.tiles.operand import zero_of


@dataclass(frozen=True, slots=True)
class ResultTiles:
    """How the results of a statement lie in fragments.

    ``shape`` is that of a fragment and ``digits`` what lies along each of its dimensions; ``order``
    are the statement's variables, outermost first, with their ``extents``, tiles and blocks.
    """

    shape: tuple[int, ...]
    digits: tuple[tuple[PlacedDigit, ...], ...]
    order: Sequence[str]
    extents: Mapping[str, Index]
    tile: Mapping[str, int]
    block: Mapping[str, int]

    def beside(self, access: Access) -> PackedLayout:
        """Return the layout that has what an access reads for each fragment of results."""
        used = frozenset().union(*(index.names for index in access.indices))
        used |= {v for dim in self.digits for digit in dim for v in digit.form.names}
        variables = tuple(v for v in self.order if v in used)
        return PackedLayout(
            f"{access.buffer}_packed",
            access,
            self.shape,
            self.digits,
            variables,
            tuple((v, self.extents[v]) for v in variables),
            tuple((v, self.tile[v]) for v in variables),
            tuple((v, self.block[v]) for v in variables),
            zero_of(access.dtype),
            self.shape,
        )
