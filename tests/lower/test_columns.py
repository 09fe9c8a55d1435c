"""Results that are stored down columns whose lines fall into few sets of the first cache."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.hw.accelerator import Storage
from isamap.lower.columns import BESIDE, LEAVING, beside, crowded, first_cache, leaving
from isamap.lower.printer import print_lowered
from isamap.lower.reuse import Reuse
from isamap.lower.traffic import Site
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.schedule.reader import read_schedule
from isamap.text.load import parse_module


@pytest.fixture(scope="module")
def cache() -> Storage:
    found = first_cache(load_hardware("x86_amx"))
    assert found is not None
    assert (found.size, found.ways) == (48 * 1024, 12)
    return found


def column(pitch: int, rows: int = 128, beside: int = 1) -> Site:
    """Return vectors of 16 elements of four bytes, so many in a row, down rows."""
    offsets = {16 * n for n in range(beside)}
    return Site("Y", (("c", 8, 16 * beside), ("r", rows, pitch // 4)), offsets, 16, 16, 16, True)


@pytest.mark.parametrize(
    ("pitch", "beside", "sets"),
    [(4096, 1, 1), (8192, 1, 1), (4096, 4, 4), (3072, 1, 4), (2048, 1, 2), (2048, 2, 4)],
)
def test_lines_wait_for_those_of_their_set(
    cache: Storage, pitch: int, beside: int, sets: int
) -> None:
    found = leaving(column(pitch, beside=beside), 4, cache)
    assert found == pytest.approx(LEAVING / (sets + BESIDE))


@pytest.mark.parametrize("pitch", [64, 3136, 4160])
def test_lines_of_all_sets_do_not_wait(cache: Storage, pitch: int) -> None:
    # What waits is less than a twentieth of the 3.6 cycles that any line takes.
    assert leaving(column(pitch), 4, cache) <= LEAVING / 64 < 3.6 / 20


def test_rows_that_the_cache_holds_do_not_wait(cache: Storage) -> None:
    site = Site("Y", (("r", 12, 1024),), {0}, 16, 16, 16, True)
    assert leaving(site, 4, cache) == 0


def test_elements_of_a_line_are_one(cache: Storage) -> None:
    along = (("r", 128.0, 4096), ("c", 4096.0, 1))
    down = (("c", 4096.0, 1), ("r", 128.0, 4096))
    waits = [leaving(Site("Y", one, {0}, 1, 1, 1, True), 4, cache) for one in (along, down)]
    assert waits == [0, pytest.approx(LEAVING / (1 + BESIDE))]


@pytest.mark.parametrize("columns", [768, 1024, 2048])
def test_elements_are_stored_along_rows(columns: int) -> None:
    text = f"""kernel chain {{
      in X : f32[128, {columns}]  const A : f32[{columns}]  out Y : f32[128, {columns}]
      Y[r, c] = X[r, c] * A[c]
    }}"""
    found = map_kernel(parse_module(text).kernels[0], load_hardware("x86_amx"))
    (own,) = found.schedule.statements
    assert own.levels[0].variable == "r"


@pytest.mark.parametrize("rows", [1, 2, 12, 100, 512])
@pytest.mark.parametrize("pitch", [16, 64, 128, 192, 448, 512, 1088, 2048, 3072, 4096])
def test_rows_crowd_a_cache_as_much_as_their_lines_lie_in_few_sets(
    cache: Storage, pitch: int, rows: int
) -> None:
    site = Site("B", (("r", rows, pitch // 4),), {0}, 4, 4, 4)
    lines = {(row * pitch) // 64 for row in range(rows)}
    used = len({number % 64 for number in lines})
    # What lies in a row fills one set after the other, whatever there is of it.
    expected = 64 / used if rows > 1 and pitch > 16 else 1
    assert crowded(site, 4, 0, cache) == pytest.approx(expected)


@pytest.mark.parametrize("pitches", [(192, 4096), (2048, 320), (448, 1024), (64, 2240)])
def test_rows_of_rows_crowd_those_sets_that_any_of_them_lies_in(
    cache: Storage, pitches: tuple[int, int]
) -> None:
    outer, inner = pitches
    places = {0, 33 * 64 // 4}
    site = Site("B", (("a", 5, outer // 4), ("b", 7, inner // 4)), places, 16, 16, 16)
    lines = {
        (4 * place + a * outer + b * inner + byte) // 64
        for place in places
        for a in range(5)
        for b in range(7)
        for byte in range(64)
    }
    used = len({number % 64 for number in lines})
    assert crowded(site, 4, 0, cache) == pytest.approx(64 / used)


PRODUCT = """kernel product {
  in A : bf16[512, 64]  in B : bf16[64, N]  local S : f32[512, N]  out Y : bf16[512, N]
  S[m, n] += f32(A[m, k]) * f32(B[k, n])
  Y[m, n] = bf16(S[m, n]) }
"""
ACROSS = """schedule product on x86_avx512_zen4 {
  S {
    instruction vdpbf16ps
    axes i <- m, k <- k
    tile m=16, k=2
    loops m/48, n/9, k/2
    operands A packed, B packed
  }
  Y { within S }
}
"""


def test_results_that_are_copied_down_columns_wait(tmp_path: Path) -> None:
    path = tmp_path / "across.schedule"
    path.write_text(ACROSS)
    options = Options(schedule=read_schedule(path))
    machine = load_hardware("x86_avx512_zen4")
    copies = []
    for columns in (2048, 2112):
        (kernel,) = parse_module(PRODUCT.replace("N", str(columns))).kernels
        parts = map_kernel(kernel, machine, options).estimate.parts
        copies.append(parts["copies"] / (512 * columns))
    # Cycles an element: rows of 4 KiB lie in one set, those of 4224 bytes in all.
    assert copies[0] > copies[1] + 1


SCORES = """schedule scores {
  S {
    instruction vfmadd_f32
    axes i <- m
    tile m=16
    loops n/6, k/1
    operands Q packed
  }
}
"""


def test_results_across_rows_leave_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "scores.schedule"
    path.write_text(SCORES)
    text = "kernel scores { in Q : f32[64, 32]  in K : f32[512, 32]  out S : f32[64, 512]\n"
    (kernel,) = parse_module(text + "S[m, n] += Q[m, k] * K[n, k] }").kernels
    options = Options(schedule=read_schedule(path), prove=False)
    code = print_lowered(map_kernel(kernel, load_hardware("x86_avx512"), options).lowered)
    places = re.findall(r"vscatter_f32\(r = \w+, m = S\[6\*n_0(?: \+ (\d+))?\]", code)
    # Six columns of sixteen rows, then of the next sixteen: 96 lines, 16 at a time.
    stored = [int(place or 0) for place in places]
    assert stored == [16 * 512 * row + column for row in range(4) for column in range(6)]


def test_a_line_that_several_results_share_is_one(cache: Storage) -> None:
    # 64 rows, 2 KiB apart, lie in two sets, which do not hold them; six columns are in one line.
    one = Site("C", (("n", 85.0, 6),), {512 * row for row in range(64)}, 1, 1, 1, written=True)
    six = replace(one, offsets={512 * row + n for row in range(64) for n in range(6)})
    assert leaving(six, 4, cache) == leaving(one, 4, cache) > 0


def test_a_chain_has_the_loops_that_suit_all_of_it() -> None:
    text = """kernel chain permit reassociate {
      in X : f32[1024, 1024]  const A : f32[1024]  const B : f32[1024]
      local T : f32[1024, 1024]  local U : f32[1024, 1024]  local V : f32[1024, 1024]
      out Y : f32[1024, 1024]
      T[r, c] = X[r, c] * A[c]
      U[r, c] = T[r, c] + B[c]
      V[r, c] = max(U[r, c], 0)
      Y[r, c] = V[r, c] * V[r, c] }
    """
    (kernel,) = parse_module(text).kernels
    schedule = map_kernel(kernel, load_hardware("x86_avx512_zen4")).schedule
    # Rows of 4 KiB share sets: a block that suits U alone, many rows side by side, is slow for Y.
    assert [own.within for own in schedule.statements] == [None, 0, 0]
    steps = {level.variable: level.step for level in schedule.statements[0].levels}
    assert steps["r"] == 1


@pytest.mark.parametrize(
    ("rows", "pitch", "times"),
    [
        (12, 4096, 1),  # as many as a set has ways
        (13, 4096, 64),
        (16, 2048, 1),  # half of them in each of two sets
        (26, 2048, 32),
        (40, 4160, 1),  # one after the other in all sets
    ],
)
def test_rows_side_by_side_push_each_other_out_of_few_sets(
    cache: Storage, rows: int, pitch: int, times: int
) -> None:
    step = pitch // 4
    gathered = Site("A", (("k", 256.0, 1),), {0}, rows, (rows - 1) * step + 1, 1)
    assert beside(gathered, 4, cache) == times
    block = Site("A", (("k", 16.0, 16),), {n * step for n in range(rows)}, 16, 16, 16)
    assert beside(block, 4, cache) == times


@pytest.mark.parametrize(("regional", "times"), [(False, 2), (True, 1)])
def test_lines_that_push_each_other_out_come_twice_where_the_first_cache_fetches_ahead(
    cache: Storage, regional: bool, times: int
) -> None:
    rows, columns = 32, 512
    block = Site("A", (("k", columns / 16, 16),), {n * 1024 for n in range(rows)}, 16, 16, 16)
    sizes = {"A": rows * 1024.0}
    asked = {"A": frozenset[str]()}
    reuse = Reuse([block], {"A": 4}, sizes, set(), {}, asked, regional, first=cache)
    coming = reuse.through(cache.size).get("k")
    assert coming is not None
    assert coming.whole.bytes == times * rows * columns * 4


def test_columns_are_not_gathered_from_rows_that_lie_in_one_set() -> None:
    """Elements of sixteen rows 16 KiB apart, gathered for each k, come from the second cache each
    time; in sums over the columns, in lanes, every line comes once."""
    text = (
        "kernel p { in A : f32[1024, 4096]  in B : f32[4096, 6]  out C : f32[1024, 6]"
        "  C[m, n] += A[m, k] * B[k, n] }"
    )
    machine = load_hardware("x86_avx512_zen4")
    found = map_kernel(parse_module(text).kernels[0], machine, Options(prove=False))
    own = found.schedule.statements[0]
    assert {v for v, tile in own.mapping.tile.items() if tile > 1} == {"k_lane"}
    assert own.operands == ("direct", "packed")  # transposed once, for 256 blocks of rows
