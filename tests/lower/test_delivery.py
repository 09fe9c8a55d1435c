"""When what a kernel asks of caches comes, and what computes meanwhile."""

from dataclasses import replace

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.lower.columns import first_cache
from isamap.lower.delivery import TOGETHER, beside, delivered, sums, while_coming
from isamap.lower.reuse import LOOKAHEAD, Reuse
from isamap.lower.traffic import Coming, Site, Traffic
from isamap.pipeline.source import load_hardware

LONG = 100 * LOOKAHEAD


def reuse(
    *sites: Site, asked: tuple[str, ...] = (), passes: dict[str, float] | None = None
) -> Reuse:
    """What sites of f32 arrays ask for, where a pass over ``k`` computes for long."""
    cycles = passes or {"m": 4 * LONG, "n": LONG, "k": LONG / 16}
    wide = {site.array: 4 for site in sites}
    sizes = {site.array: 1e6 for site in sites}
    return Reuse(sites, wide, sizes, set(), cycles, {"A": set(asked)}, regional=False)


def rows(**other: object) -> Site:
    """Rows of A that each of four passes over columns reads again."""
    loops = (("m", 8.0, 16 * 64), ("n", 4.0, 0), ("k", 16.0, 64))
    return replace(Site("A", loops, {0}, 64, 64, 64), **other)  # type: ignore[arg-type]


def when(coming: Coming) -> dict[float, float]:
    return {part: traffic.bytes for part, traffic in coming.during.items()}


def test_what_several_passes_read_comes_in_the_first() -> None:
    # 4 KiB stay for all passes; the first is a quarter of the time, and begins a little sooner.
    found = when(reuse(rows()).through(8192)["m"])
    (part,) = found
    assert part == pytest.approx(1 / 4 + LOOKAHEAD / (4 * LONG))
    assert found[part] == 8 * 16 * 64 * 4


def test_what_no_cache_keeps_comes_all_the_time() -> None:
    assert when(reuse(rows()).through(1024)["m"]) == {1.0: 4 * 8 * 16 * 64 * 4}


def test_what_is_read_of_the_same_lines_in_another_way_comes_with_them() -> None:
    alone = reuse(rows()).through(8192)["m"]
    half = rows(offsets={32}, elements=32, span=32, stretch=32)
    assert reuse(rows(), half).through(8192)["m"] == alone
    beside = rows(offsets={64}, elements=8, span=8, stretch=8)  # the next line
    assert reuse(rows(), beside).through(8192)["m"] == alone
    registers = reuse(rows(), half).through(None)["m"].whole.bytes
    assert registers == reuse(rows()).through(None)["m"].whole.bytes * 3 / 2
    far = rows(offsets={10**6}, elements=8, span=8, stretch=8)
    assert reuse(rows(), far).through(8192)["m"].whole.bytes > alone.whole.bytes
    results = replace(half, written=True)
    assert reuse(rows(), results).through(8192)["m"].whole.written > 0


def test_what_is_asked_for_ahead_of_other_passes_comes_all_the_time() -> None:
    assert set(when(reuse(rows(), asked=("n",)).through(8192)["m"])) == {1.0}


def test_passes_that_are_short_wait_for_nothing() -> None:
    short = {"m": 4 * LOOKAHEAD / 8, "n": LOOKAHEAD / 8, "k": 1.0}
    assert set(when(reuse(rows(), passes=short).through(8192)["m"])) == {1.0}


def test_what_a_call_has_made_comes_again_where_a_stream_pushes_it_out() -> None:
    panel = Site("P", (("n", 8.0, 0), ("k", 16.0, 64)), {0}, 64, 64, 64)
    stream = Site("A", (("n", 8.0, 1024), ("k", 16.0, 64)), {0}, 64, 64, 64)

    def bytes_of(*sites: Site, room: int, made: int = 1) -> float:
        sizes, wide = {"P": 1024.0, "A": 8192.0}, {"P": 4, "A": 4}
        passes, written = {"n": LONG, "k": LONG / 16}, {"P": made * 1024.0}
        found = Reuse(sites, wide, sizes, {"P"}, passes, {}, regional=False, made=written)
        return found.through(room)["n"].whole.bytes

    assert bytes_of(panel, room=8192) == 0
    assert bytes_of(panel, stream, room=16384) == 8 * 4096
    assert bytes_of(panel, stream, room=8192) == 8 * 4096 + 7 * 4096
    assert bytes_of(panel, stream, room=8192, made=8) == 8 * 4096


def test_results_in_few_sets_push_out_themselves_alone() -> None:
    first = first_cache(load_hardware("x86_amx"))
    assert first is not None
    assert first.size == 49152
    panel = Site("P", (("n", 64.0, 0),), set(range(0, 4096, 256)), 256, 256, 256)
    # Sixteen lines that are 4 KiB apart: four more than their set holds.
    results = Site("A", (("n", 64.0, 16),), {0}, 256, 15 * 1024 + 16, 16, written=True)
    sizes, wide, passes = {"P": 4096.0, "A": 16384.0}, {"P": 4, "A": 4}, {"n": LONG}
    sites = (panel, results)
    found = Reuse(sites, wide, sizes, set(), passes, {}, regional=False, first=first)
    assert found.through(first.size)["n"].whole.bytes == 16384 + 64 * 1024


def test_results_wait_aside_until_there_is_room() -> None:
    found = reuse(rows(written=True)).through(8192)["m"]
    assert set(when(found)) == {1.0}
    assert found.whole.written == found.whole.bytes > 0


def test_the_first_of_several_loops_brings_what_all_of_them_read() -> None:
    first = replace(rows(), loops=(("m", 8.0, 16 * 64), ("k", 16.0, 64)))
    others = replace(rows(), loops=(("m", 8.0, 16 * 64), ("n", 3.0, 0), ("k2", 16.0, 64)))
    passes = {"m": 4 * LONG, "k": LONG / 16, "n": LONG, "k2": LONG / 16}
    found = when(reuse(first, others, passes=passes).through(8192)["m"])
    (part,) = found
    assert part == pytest.approx(1 / 4 + LOOKAHEAD / (4 * LONG))
    assert found[part] == 8 * 16 * 64 * 4


def test_loops_that_go_on_where_others_end_walk_as_one() -> None:
    whole = replace(rows(), loops=(("m", 8.0, 10**6), ("k", 16.0, 64)))
    halves = [
        replace(rows(), loops=(("m", 8.0, 10**6), (name, 8.0, 64)), offsets={offset})
        for name, offset in (("k", 0), ("k2", 8 * 64))
    ]
    far = replace(halves[1], offsets={10**5})
    one, two, apart = (
        reuse(*s).through(None)["m"].whole for s in ([whole], halves, [halves[0], far])
    )
    assert one.bytes == two.bytes == apart.bytes
    assert one.unforeseen == two.unforeseen < apart.unforeseen


def test_computing_goes_on_beside_what_comes() -> None:
    assert while_coming(100, {}) == 100
    assert while_coming(100, {"l2": {1.0: 50}}) == beside(100, 50) == 100 + TOGETHER * 50
    assert while_coming(100, {"l2": {1.0: 50}, "l3": {1.0: 200}}) == beside(100, 200)
    # In a fifth of the time comes what takes as long as all: the rest of it computes only.
    assert while_coming(100, {"l3": {0.2: 100}}) == beside(20, 100) + 80
    # What comes all the time does so then, too.
    assert while_coming(100, {"l3": {0.2: 100, 1.0: 50}}) == beside(20, 110) + beside(80, 40)


@pytest.fixture
def machine() -> Accelerator:
    return load_hardware("x86_avx512")


def through(traffic: Traffic) -> dict[str, Coming]:
    return {"m": Coming({1.0: traffic})}


def cycles(machine: Accelerator, whole: float, traffic: Traffic) -> dict[str, float]:
    return sums(delivered(machine, whole, whole, lambda _: through(traffic)))


def rate(machine: Accelerator, name: str, kind: str) -> float:
    return float(getattr(machine.storage(name), kind))


def test_a_cache_takes_in_what_comes_from_beyond(machine: Accelerator) -> None:
    moved = Traffic(1e6, 0.0, 0.0)
    near, far = (cycles(machine, whole, moved) for whole in (1e5, 4e6))
    assert near["l2"] == pytest.approx(1e6 / rate(machine, "l2", "read"))
    filled = 1e6 / rate(machine, "l2", "write")
    assert far["l2"] == pytest.approx(near["l2"] + filled)
    assert far["l3"] == pytest.approx(1e6 / rate(machine, "l3", "read"))


def test_what_is_written_is_in_the_way_of_what_comes(machine: Accelerator) -> None:
    kept, written = Traffic(1e6), Traffic(1e6, 0.0, 5e5)
    more = cycles(machine, 4e6, written)["l2"] - cycles(machine, 4e6, kept)["l2"]
    assert more == pytest.approx(5e5 / rate(machine, "l2", "write"))
    # Where nothing comes from beyond, there is time.
    assert cycles(machine, 1e5, written) == cycles(machine, 1e5, kept)
