"""A row of elements fills a tile of several rows as it lies in memory: nothing is packed for it."""

import pytest

from isamap.hw.load import load_hardware
from isamap.ir.index import const, var
from isamap.mapping.fragments.fragment import Digit, Part
from isamap.mapping.fragments.layout import PlacedDigit
from isamap.mapping.tiles.cut_digits import cut_digits
from isamap.pipeline.options import Options
from isamap.schedule.schedule import StatementSchedule
from isamap.text.load import parse_module
from tests.mapping.machines import simulate

HIGH = PlacedDigit(var("i") // 16 % 16, 0, 16, 1)
LOW = PlacedDigit(var("i") % 16, 0, 16, 1)


def scheduled(text: str) -> StatementSchedule:
    """Return the schedule of a statement on tiles of 16 by 16, which computes what it should."""
    kernel = parse_module(f"kernel k {{ {text} }}").kernels[0]
    options = Options(prove=False, rewrite=())
    (own,) = simulate(kernel, load_hardware("gemm16"), options=options).schedule.statements
    return own


@pytest.mark.parametrize(
    "text",
    [
        "in A : f32[1024] in B : f32[1024] out Y : f32[1024] Y[i] = A[i] + B[i]",
        "in A : f32[128] in B : f32[128] out Y : f32[128] Y[i] = A[i] + B[i]",
        "in A : f32[512, 2] out Y : f32[512] Y[i] = A[i, 0] * A[i, 1]",
        "in A : f32[3, 512] in B : f32[512] out Y : f32[3, 512] Y[i, j] = A[i, j] * B[j]",
        "in A : f32[512] inout Y : f32[512] Y[i] += A[i]",
    ],
)
def test_rows_of_whole_tiles_are_not_packed(text: str) -> None:
    own = scheduled(text)
    assert max(own.mapping.tile.values()) >= 128
    assert set(own.operands) == {"direct"}


def test_rows_that_end_amid_a_row_of_a_tile_are_packed() -> None:
    own = scheduled("in A : f32[1000] in B : f32[1000] out Y : f32[1000] Y[i] = A[i] + B[i]")
    assert set(own.operands) == {"packed"}


def test_high_digits_are_every_so_many_iterations() -> None:
    high = Digit("i", 16, (Part("i", 16, every=16),))
    assert cut_digits(((HIGH,), (LOW,)), {"i": 256}, frozenset()) == ((high,), (Digit("i", 16),))
    few = Digit("i", 8, (Part("i", 8, every=16),))
    assert cut_digits(((HIGH,), (LOW,)), {"i": 128}, frozenset()) == ((few,), (Digit("i", 16),))
    assert cut_digits(((HIGH,), (LOW,)), {"i": 256}, frozenset({"i"})) is None


@pytest.mark.parametrize(
    "dims",
    [
        ((HIGH,),),  # the low digits are nowhere
        ((HIGH,), (HIGH,)),
        ((HIGH, LOW),),
        ((PlacedDigit(var("i") // 16 % 8, 0, 16, 1),), (LOW,)),
        ((PlacedDigit(2 * (var("i") // 16 % 16), 0, 16, 1),), (LOW,)),
        ((PlacedDigit((var("i") + var("j")) // 16 % 16, 0, 16, 1),), (LOW,)),
        ((PlacedDigit(var("i") // 16 % 16, 1, 16, 1),), (LOW,)),
        ((PlacedDigit(const(0), 0, 1, 1),), (LOW,)),
    ],
)
def test_what_is_not_cut_so_is_left(dims: tuple[tuple[PlacedDigit, ...], ...]) -> None:
    assert cut_digits(dims, {"i": 256, "j": 2}, frozenset()) is None
