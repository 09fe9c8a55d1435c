"""Tokens between queues: where they are needed, that they suffice, and what is missed without."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import IsamapError, Source
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.lower.nodes import (
    Array,
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
    Token,
    Window,
)
from isamap.lower.place import place_fragments
from isamap.lower.printer import print_lowered
from isamap.lower.tokens import with_tokens
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.reader import parse_schedule
from isamap.sim.lowered import LoweredFault
from isamap.sim.run import SimResult, simulate
from isamap.text.load import parse_module
from tests.profiles import examples

S8, S32 = DTYPES["s8"], DTYPES["s32"]
MACHINE = load_hardware("vta")
ACC = Register("c", "acc", S32, (16,))
INPUTS = {"A": np.ones(16, np.int8), "B": np.ones(256, np.int8)}


def fragment(name: str, places: int = 1) -> Register:
    return Register(name, "inp", S8, (16,), places=places)


WEIGHTS = Register("w", "wgt", S8, (16, 16))


def load(to: Register) -> Call:
    return Call("load_inp", (("m", Window("A", const(0))), ("r", to)))


def weigh() -> Call:
    return Call("load_wgt", (("m", Window("B", const(0))), ("r", WEIGHTS)))


def clear() -> Call:
    return Call("gemm_reset", (("c", ACC),))


def multiply(a: Register) -> Call:
    return Call("gemm", (("a", a), ("b", WEIGHTS), ("c", ACC)))


def store() -> Call:
    return Call("store", (("r", ACC), ("m", Window("Y", const(0)))))


def kernel(*body: Node, registers: tuple[Register, ...] = ()) -> LoweredKernel:
    """Return a placed kernel without tokens."""
    arrays = (
        Array("A", "in", S8, const(16)),
        Array("B", "in", S8, const(256)),
        Array("Y", "out", S8, const(16)),
    )
    scope = Scope((ACC, WEIGHTS, *registers), body)
    return place_fragments(LoweredKernel("k", (), arrays, (scope,)), MACHINE)


def rounds(places: int, count: int = 6) -> LoweredKernel:
    """Return a loop that brings an input and uses it at once."""
    a = fragment("a", places)
    loop = Loop("k", const(count), (Scope((a,), (load(a), multiply(a))),))
    return kernel(clear(), weigh(), loop, store())


def tokens(nodes: tuple[Node, ...]) -> Iterator[Token]:
    for node in nodes:
        match node:
            case Token():
                yield node
            case Loop(body=body) | Scope(body=body):
                yield from tokens(body)
            case Guard(_, body, otherwise):
                yield from tokens((*body, *otherwise))
            case _:
                pass


def changed(nodes: tuple[Node, ...], change: Callable[[Token], Token | None]) -> tuple[Node, ...]:
    """Return nodes with tokens changed, or left out."""
    made: list[Node] = []
    for node in nodes:
        match node:
            case Token():
                made += [new for new in [change(node)] if new is not None]
            case Loop(body=body) | Scope(body=body):
                made.append(replace(node, body=changed(body, change)))
            case Guard(_, body, otherwise):
                both = changed(body, change), changed(otherwise, change)
                made.append(replace(node, body=both[0], otherwise=both[1]))
            case _:
                made.append(node)
    return tuple(made)


def run(lowered: LoweredKernel) -> SimResult:
    return simulate(lowered, MACHINE, INPUTS)


def test_a_loop_waits_for_what_it_reads_and_for_the_place_that_it_fills() -> None:
    text = print_lowered(with_tokens(rounds(2), MACHINE))
    body = text.partition("for k in 0..6 {")[2].partition("    }\n    load")[0]
    lines = [line.strip() for line in body.splitlines()]
    names = [line for line in lines if "posts" in line or "waits" in line or "(" in line]
    waits, load_, post, wait, gemm, free = names[:6]
    assert waits.startswith("load waits for compute_load_")
    assert waits.endswith(" but for the last 1")
    assert load_.startswith("load_inp(")
    assert post.replace("load posts", "compute waits for") == wait
    assert gemm.startswith("gemm(")
    assert free.startswith("compute posts compute_load_")


@pytest.mark.parametrize("places", [1, 2, 3])
def test_what_is_inserted_suffices(places: int) -> None:
    result = run(with_tokens(rounds(places), MACHINE))
    assert result.outputs["Y"].tolist() == [96] * 16


def is_free_of_races(lowered: LoweredKernel) -> bool:
    try:
        run(lowered)
    except LoweredFault:
        return False
    return True


@pytest.mark.parametrize("places", [1, 2, 3])
def test_every_channel_is_needed_but_what_others_imply(places: int) -> None:
    lowered = with_tokens(rounds(places), MACHINE)

    def without(channel: str) -> LoweredKernel:
        def dropped(token: Token) -> Token | None:
            return None if token.waits and token.channel == channel else token

        return replace(lowered, body=changed(lowered.body, dropped))

    channels = sorted({token.channel for token in tokens(lowered.body)})
    spare = [channel for channel in channels if is_free_of_races(without(channel))]
    # That the weights are there follows from the inputs, which are brought after them.
    assert len(channels) == 4
    assert spare == ["load_compute_0"]


def test_waiting_for_one_less_than_there_are_places_is_all_that_is_allowed() -> None:
    lowered = with_tokens(rounds(2), MACHINE)

    def later(token: Token) -> Token:
        return replace(token, behind=token.behind + 1) if token.behind else token

    with pytest.raises(LoweredFault, match="load_inp writes what compute still reads"):
        run(replace(lowered, body=changed(lowered.body, later)))


def test_a_post_before_the_work_is_done_does_not_count() -> None:
    a = fragment("a")
    early = (Token("load", "x"), load(a), weigh(), Token("compute", "x", waits=True), multiply(a))
    with pytest.raises(LoweredFault, match="gemm reads what load still writes"):
        run(kernel(clear(), *early, store(), registers=(a,)))


def test_more_places_take_less_time() -> None:
    one, two, many = (run(with_tokens(rounds(n, 20), MACHINE)).cycles for n in (1, 2, 8))
    assert many < two < one


def test_a_copy_of_the_host_is_waited_for_without_tokens() -> None:
    arrays = (
        Array("A", "in", S8, const(16)),
        Array("T", "local", S8, const(16)),
        Array("Y", "out", S8, const(16)),
    )
    copy = Copy((("n", const(16)),), "Y", var("n"), "T", var("n"))
    put = Call("store", (("r", ACC), ("m", Window("T", const(0)))))
    body = (Scope((ACC,), (clear(), put, copy)),)
    lowered = with_tokens(place_fragments(LoweredKernel("k", (), arrays, body), MACHINE), MACHINE)
    assert {token.unit for token in tokens(lowered.body)} == {"compute", "store"}
    assert run(lowered).outputs["Y"].tolist() == [0] * 16


def test_a_unit_that_begins_after_a_copy_of_the_host_knows_what_was_done_before() -> None:
    arrays = (
        Array("A", "in", S8, const(16)),
        Array("T", "out", S8, const(16)),
        Array("Y", "out", S8, const(16)),
    )
    copy = Copy((("n", const(16)),), "T", var("n"), "A", var("n"))
    body = (Scope((ACC,), (clear(), copy, store())),)
    lowered = with_tokens(place_fragments(LoweredKernel("k", (), arrays, body), MACHINE), MACHINE)
    assert not list(tokens(lowered.body))
    assert run(lowered).outputs["Y"].tolist() == [0] * 16


def test_interlocked_machines_have_no_tokens() -> None:
    text = """kernel mm { in A : s8[16, 64]  in B : s8[64, 16]  out C : s32[16, 16]
      C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"""
    (one,) = parse_module(text).kernels
    result = map_kernel(one, load_hardware("gemmini"), Options(prove=False))
    assert not list(tokens(result.lowered.body))


def check_product(m: int, n: int, k: int, loops: str, places: tuple[int, ...]) -> None:
    """Simulate a product by a written schedule: races are faults, and so are wrong results."""
    text = f"""kernel mm {{ in A : s8[{m}, {k}]  in B : s8[{k}, {n}]  local C : s32[{m}, {n}]
      out Y : s8[{m}, {n}]
      C[i, j] += s32(A[i, k]) * s32(B[k, j])
      Y[i, j] = s8(C[i, j]) }}"""
    (one,) = parse_module(text).kernels
    buffers = ", ".join(f"{name} {count}" for name, count in zip("ABC", places, strict=True))
    schedule = f"""schedule mm {{
      C {{
        instruction gemm(a = A[i, k], b = B[k, j])
        axes j <- j, k <- k
        loops {loops}
        buffers {buffers}
      }}
    }}"""
    written = parse_schedule(Source("x.schedule", schedule))
    result = map_kernel(one, MACHINE, Options(prove=False, schedule=written))
    arrays = random_inputs(one, {}, 1)
    found = simulate(result.lowered, MACHINE, arrays, kernel=result.mapped)
    wanted = arrays["A"].astype(np.int64) @ arrays["B"].astype(np.int64)
    assert (found.outputs["Y"] == wanted.astype(np.int8)).all()


@examples(0.1)
@given(st.data())
def test_code_of_any_loops_and_places_is_free_of_races(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(least, 50)) for least in (4, 33, 33))
    i, j, r = (data.draw(st.sampled_from(steps)) for steps in ([1, 3], [16, 32], [16, 32]))
    loops = ", ".join([*data.draw(st.permutations([f"i/{i}", f"j/{j}"])), f"k/{r}"])
    check_product(m, n, k, loops, tuple(data.draw(st.integers(1, 3), name) for name in "ABC"))


@pytest.mark.parametrize("places", [(1, 1, 1), (2, 1, 2)])
def test_a_loop_waits_for_its_first_iteration_that_stands_apart(places: tuple[int, ...]) -> None:
    check_product(4, 33, 33, "i/1, j/16, k/16", places)


def test_a_machine_of_tokens_has_one_queue_for_each_instruction(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("format: 1\nname: two\nextends: vta\nunits: {load: 2}\n")
    with pytest.raises(IsamapError, match="E132"):
        load_hardware(str(path))
