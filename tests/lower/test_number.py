"""Registers that have numbers: who holds which, and what code needs around them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isamap
from isamap.diagnostics import IsamapError, ScheduleError, Source
from isamap.hw.accelerator import Accelerator
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.ir.nodes import Literal
from isamap.lower.capacity import excess, peak_use
from isamap.lower.lower import lower
from isamap.lower.nodes import Call, Guard, Loop, LoweredKernel, Node, Register, Scope
from isamap.lower.number import number_registers, used
from isamap.lower.printer import print_lowered
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.proof.assigned import assigned_registers
from isamap.schedule.reader import parse_schedule
from isamap.sim.lowered import LoweredFault, run_lowered
from isamap.text.load import parse_module
from tests.profiles import examples
from tests.proof.samples import changed

FILE = Path(__file__).with_name("numbered.yaml")


@cache
def machine() -> Accelerator:
    return isamap.load_hardware(str(FILE), trust=True)


@cache
def product(m: int, n: int, k: int, threads: int = 1, schedule: str = "") -> Result:
    text = f"""kernel mm(M = {m}, N = {n}, K = {k}) {{
      in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
      C[m, n] += A[m, k] * B[k, n]
    }}"""
    (kernel,) = parse_module(text, "t.ir").kernels
    written = parse_schedule(Source("x.schedule", schedule)) if schedule else None
    return map_kernel(kernel, machine(), Options(threads=threads, schedule=written))


def text_of(result: Result) -> str:
    assert result.source is not None
    return result.source.text


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m + 100 * n + 10000 * k)
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    return a.astype(np.float32), b.astype(np.float32)


# --- a kernel on the machine of numbered.yaml -------------------------------------------------
def test_the_block_fits_the_numbers() -> None:
    result = product(16, 16, 16)
    lowered = result.lowered
    text = print_lowered(lowered)
    # Two by two would take 4 + 2 + 2 registers, and there are 6; b_2 need not wait for b.
    assert "acc = 0, acc_2 = 1 : f32[4, 4] @ tile" in text
    assert "a = 2, b = 3, b_2 = 4 : f32[4, 4] @ tile" in text
    assert {r.number for r in used(lowered.code)} <= set(range(6))
    assert excess(lowered, machine()) is None
    assert not assigned_registers(machine(), lowered).faults
    source = text_of(result)
    assert "tile_mac(tile_0, tile_" in source
    assert "r_acc" not in source


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [(16, 16, 16), (13, 9, 11), (1, 1, 1), (3, 70, 5), (40, 4, 64)])
def test_code_with_numbers_computes_the_product(sizes: tuple[int, int, int], threads: int) -> None:
    result = product(*sizes, threads)
    a, b = operands(*sizes)
    compiled = result.compile()
    for _ in range(3):  # a thread leaves its registers as it found them
        found = compiled.call({"A": a, "B": b}, threads=threads)["C"]
        np.testing.assert_array_equal(found, a @ b)
    arrays = {"A": a, "B": b}
    simulated = run_lowered(result.lowered, machine(), arrays, kernel=result.kernel)
    np.testing.assert_array_equal(simulated["C"], a @ b)


def test_each_thread_enters_and_leaves_once() -> None:
    for threads in (1, 2):
        source = text_of(product(40, 40, 40, threads))
        assert source.count("    tile_enter();\n") == 1
        assert source.count("    tile_leave();\n    tile_depth -= 1;\n") == 1
        assert source.count("if (!(tile_permitted())) return -4;") == 1
        part = source[source.index("static void mm_part(" if threads > 1 else "int mm(") :]
        assert part.index("tile_enter()") < part.index("tile_mac(") < part.index("tile_leave()")


def test_functions_that_use_the_registers_have_their_attributes(tmp_path: Path) -> None:
    path = tmp_path / "marked.yaml"
    text = FILE.read_text(encoding="utf-8").replace(
        "    numbered: true\n", "    numbered: true\n    function: [MARK, MARK, OTHER]\n"
    )
    path.write_text(text.replace("prelude: |", "flags: [-DMARK=, -DOTHER=]\n  prelude: |"))
    marked = isamap.load_hardware(str(path), trust=True)
    mm = """kernel mm(N = 40) {
      in A : f32[N, N]  in B : f32[N, N]  out C : f32[N, N]  C[m, n] += A[m, k] * B[k, n] }"""
    (kernel,) = parse_module(mm, "t.ir").kernels
    one = text_of(map_kernel(kernel, marked)).partition("*/")[2]  # flags stand at the head
    assert one.count("MARK OTHER ISAMAP_EXPORTED int mm(") == one.count("MARK") == 1
    two = text_of(map_kernel(kernel, marked, Options(threads=2))).partition("*/")[2]
    assert two.count("MARK OTHER static void mm_part(") == two.count("MARK") == 1
    a, b = operands(40, 40, 40)
    compiled = map_kernel(kernel, marked).compile()
    np.testing.assert_array_equal(compiled(A=a, B=b)["C"], a @ b)


def test_a_kernel_without_these_registers_knows_nothing_of_them() -> None:
    text = "kernel add(N = 9) { in X : f32[N]  out Y : f32[N]  Y[n] = X[n] + 1 }"
    (kernel,) = parse_module(text, "t.ir").kernels
    source = text_of(map_kernel(kernel, machine()))
    assert "tile_enter" not in source
    assert "-4" not in source


def test_a_machine_that_refuses_says_so(tmp_path: Path) -> None:
    path = tmp_path / "refusing.yaml"
    refusing = FILE.read_text(encoding="utf-8").replace("return 1; }", "return 0; }")
    path.write_text(refusing, encoding="utf-8")
    text = """kernel mm(N = 8) {
      in A : f32[N, N]  in B : f32[N, N]  out C : f32[N, N]  C[m, n] += A[m, k] * B[k, n] }"""
    (kernel,) = parse_module(text, "t.ir").kernels
    result = map_kernel(kernel, isamap.load_hardware(str(path), trust=True))
    assert result.source is not None
    assert "-4 if the machine does not permit to use registers" in result.source.header
    a, b = operands(8, 8, 8)
    with pytest.raises(IsamapError, match=r"use registers .* 'tile_permitted\(\)' fails"):
        result.compile()(A=a, B=b)


def test_a_block_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ScheduleError, match="needs 7 registers of tile, which has 6: 1 registers"):
        product(16, 16, 16, 1, "schedule mm {\n C { loops m/8, n/8, k/4 }\n}")


def test_one_number_for_two_fragments_is_found() -> None:
    result = product(16, 16, 16)
    arrays = dict(zip("AB", operands(16, 16, 16), strict=True))

    def second_as_first(node: Node) -> Node | None:
        """Put an accumulator where another one is."""
        if not isinstance(node, Scope):
            return None
        twin = node.registers[1].name
        return Scope(*renumbered(node.registers, node.body, twin, 0))

    wrong = changed(result.lowered, second_as_first)
    faults = assigned_registers(machine(), wrong).faults
    assert faults
    assert "in tile 0, not" in faults[0]
    with pytest.raises(LoweredFault, match="has no value"):
        run_lowered(wrong, machine(), arrays, kernel=result.kernel)
    beyond = changed(
        result.lowered,
        lambda n: (
            Scope(*renumbered(n.registers, n.body, n.registers[0].name, 6))
            if isinstance(n, Scope)
            else None
        ),
    )
    assert any("cannot be in tile 6" in f for f in assigned_registers(machine(), beyond).faults)
    with pytest.raises(LoweredFault, match="tile has no 6"):
        run_lowered(beyond, machine(), arrays, kernel=result.kernel)


def renumbered(
    registers: tuple[Register, ...], body: tuple[Node, ...], name: str, number: int
) -> tuple[tuple[Register, ...], tuple[Node, ...]]:
    """Return a scope's parts with another number for one of its registers."""

    def own(register: Register) -> Register:
        return replace(register, number=number) if register.name == name else register

    def visit(node: Node) -> Node:
        match node:
            case Call(operands=given):
                places = ((n, own(p) if isinstance(p, Register) else p) for n, p in given)
                return replace(node, operands=tuple(places))
            case Loop(body=inner) | Scope(body=inner):
                return replace(node, body=tuple(map(visit, inner)))
            case Guard(_, inner, otherwise):
                return replace(
                    node, body=tuple(map(visit, inner)), otherwise=tuple(map(visit, otherwise))
                )
            case _:
                return node

    return tuple(map(own, registers)), tuple(map(visit, body))


def test_a_certificate_speaks_of_numbers() -> None:
    claims = [c for c in prove_result(product(13, 9, 11)).claims if c.name == "numbers"]
    assert [c.verdict for c in claims] == ["proved"]


# --- made-up code ------------------------------------------------------------------------------
ZERO = Literal("0", DTYPES["f32"])


@st.composite
def bodies(draw: st.DrawFn) -> LoweredKernel:
    """Return nested scopes, loops and guards that write registers before they read them."""
    names = count()

    def register() -> Register:
        return Register(f"r{next(names)}", "tile", DTYPES["f32"], (4, 4))

    def write(one: Register) -> Call:
        return Call("tile_set", (("v", ZERO), ("r", one)))

    def nodes(alive: tuple[Register, ...], depth: int) -> Iterator[Node]:
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from(["scope", "loop", "guard", "call"][depth > 2 and 3 :]))
            if kind == "scope":
                own = tuple(register() for _ in range(draw(st.integers(1, 3))))
                inner = (*map(write, own), *nodes((*alive, *own), depth + 1))
                yield Scope(own, inner)
            elif kind == "loop":
                inner = tuple(nodes(alive, depth + 1))
                yield Loop(f"i{next(names)}", const(draw(st.integers(0, 3))), inner)
            elif kind == "guard":
                inner, other = tuple(nodes(alive, depth + 1)), tuple(nodes(alive, depth + 1))
                yield Guard((const(draw(st.sampled_from([-1, 0]))),), inner, other)
            elif alive:
                a, b, c = (draw(st.sampled_from(alive)) for _ in range(3))
                shape = replace(b, shape=b.shape)
                yield Call("tile_mac", (("a", a), ("b", shape), ("c", c)))

    return LoweredKernel("random", (), (), tuple(nodes((), 0)))


def with_tiles(number: int) -> Accelerator:
    """Return the machine with so many registers."""
    storages = (replace(s, count=number) if s.name == "tile" else s for s in machine().storages)
    return replace(machine(), storages=tuple(storages))


@examples(1)
@given(bodies())
def test_what_is_alive_at_one_time_has_different_numbers(lowered: LoweredKernel) -> None:
    # There need be no more numbers than fragments that are alive at once.
    most = peak_use(lowered, with_tiles(100)).get("tile", 0)
    for tiles in (max(1, most), 100):
        wide = with_tiles(tiles)
        numbered = number_registers(lowered, wide)
        assert not assigned_registers(wide, numbered).faults
        assert excess(numbered, wide) is None
        assert {r.number for r in used(numbered.code)} <= set(range(tiles))
        run_lowered(numbered, wide, {})


def test_numbers_take_turns() -> None:
    def write(name: str) -> Scope:
        one = Register(name, "tile", DTYPES["f32"], (4, 4))
        return Scope((one,), (Call("tile_set", (("v", ZERO), ("r", one))),))

    body = tuple(map(write, "abcd"))
    numbered = number_registers(LoweredKernel("turns", (), (), body), with_tiles(3))
    assert [r.number for r in used(numbered.code)] == [0, 1, 2, 0]


def test_rows_of_registers_begin_at_multiples_of_their_length() -> None:
    file = machine().storage("tile")
    pair = replace(file, name="pair", within="tile", bits=1024)
    wide = replace(machine(), storages=(*machine().storages, pair))
    one, two = (Register(n, "tile", DTYPES["f32"], (4, 4)) for n in "xy")
    both = Register("z", "pair", DTYPES["f32"], (8, 4))
    body = (
        Call("tile_set", (("r", one),)),
        Call("tile_set", (("r", both),)),
        Call("tile_set", (("r", two),)),
        Call("use", (("a", one), ("b", both), ("c", two))),
    )
    lowered = LoweredKernel("rows", (), (), (Scope((one, two, both), body),))
    numbered = number_registers(lowered, wide)
    assert {r.name: r.number for r in used(numbered.code)} == {"x": 0, "z": 2, "y": 1}
    few = replace(wide, storages=(replace(file, count=3), pair))
    over = excess(number_registers(lowered, few), few)
    assert over is not None


def test_lowering_numbers_what_it_makes() -> None:
    result = product(13, 9, 11)
    again = lower(result.kernel, machine(), result.schedule)
    assert number_registers(again, machine()) == again
