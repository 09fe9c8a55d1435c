"""What does not change in a loop is brought to its storage but once."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
    Window,
)
from isamap.lower.unchanged import unchanged_kept
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.text.load import parse_module

MACHINE = """\
format: 1
name: still
clock: 1 GHz
units: {{write: 1, load: 1, work: 1, store: 1}}
{queues}
storages:
  w: {{kind: registers, count: {count}, bits: 128}}
  a: {{kind: scratchpad, size: 1 KiB, alignment: 4}}
  c: {{kind: scratchpad, size: 2 KiB, alignment: 16}}
  memory: {{kind: memory}}
instructions:
  - semantics: |
      instruction rows {{
        in a : s8[4] @ a    in w : s8[4, 4] @ w    inout c : s32[4] @ c
        c[j] += s32(a[k]) * s32(w[k, j])
      }}
    throughput: 1
    latency: 4
    units: work
  - semantics: |
      instruction write(P) {{
        in m : s8[4, 4] @ memory strides [P, 1]    out w : s8[4, 4] @ w    w[k, j] = m[k, j]
      }}
    throughput: 100
    latency: 110
    units: write
  - semantics: |
      instruction load {{ in m : s8[4] @ memory    out a : s8[4] @ a    a[k] = m[k] }}
    throughput: 1
    latency: 9
    units: load
  - semantics: |
      instruction fetch {{ in m : s32[4] @ memory    out c : s32[4] @ c    c[j] = m[j] }}
    throughput: 1
    latency: 9
    units: load
  - semantics: |
      instruction clear {{ out c : s32[4] @ c    c[j] = 0 }}
    throughput: 1
    latency: 1
    units: work
  - semantics: |
      instruction store {{ in c : s32[4] @ c    out m : s32[4] @ memory    m[j] = c[j] }}
    throughput: 1
    latency: 9
    units: store
"""

PRODUCT = """kernel k(M = {m}, N = {n}, K = {k}) {{
  in A : s8[M, K]  in B : s8[K, N]  out C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}}"""

S8, S32 = DTYPES["s8"], DTYPES["s32"]


def still(folder: Path, count: int = 4, queues: str = "queues: interlocked") -> Accelerator:
    path = folder / "still.yaml"
    path.write_text(MACHINE.format(count=count, queues=queues))
    return load_hardware(str(path))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Accelerator:
    return still(tmp_path_factory.mktemp("still"))


def report(machine: Accelerator, m: int, n: int, k: int) -> Report:
    (kernel,) = parse_module(PRODUCT.format(m=m, n=n, k=k)).kernels
    found = make_report(kernel, machine, Options())
    assert found.check is not None, found.unchecked
    assert found.check.ok, found.check.text
    return found


def writes(nodes: Sequence[Node], times: int = 1) -> int:
    """Return how often weights are written."""
    total = 0
    for node in nodes:
        match node:
            case Loop(count=count, body=body):
                total += writes(body, times * (count.constant or 0))
            case Scope(body=body):
                total += writes(body, times)
            case Guard(body=body, otherwise=otherwise):
                total += writes(body, times) + writes(otherwise, times)
            case Call("write"):
                total += times
    return total


@pytest.mark.parametrize("queues", ["queues: interlocked", ""])
@pytest.mark.parametrize(("n", "k"), [(4, 4), (8, 4)])
def test_weights_are_written_once_for_all_rows(tmp_path: Path, queues: str, n: int, k: int) -> None:
    found = report(still(tmp_path, 4, queues), 300, n, k)
    # Rows that do not fill a block have a loop of their own.
    assert writes(found.result.lowered.body) <= 2 * n * k // 16


def test_weights_for_which_there_is_no_room_are_written_again(tmp_path: Path) -> None:
    report(still(tmp_path, 1), 64, 4, 8)


@settings(max_examples=8)
@given(m=st.integers(1, 24), n=st.integers(1, 2), k=st.integers(1, 2), count=st.integers(1, 3))
def test_all_is_computed_as_before(
    tmp_path_factory: pytest.TempPathFactory, m: int, n: int, k: int, count: int
) -> None:
    report(still(tmp_path_factory.mktemp("still"), count), m, 4 * n, 4 * k)


def test_compilers_take_out_of_loops_what_does_not_change() -> None:
    native = load_hardware("portable_c")
    (kernel,) = parse_module(PRODUCT.format(m=8, n=8, k=8)).kernels
    lowered = make_report(kernel, native, Options()).result.lowered
    assert unchanged_kept(lowered, native) is lowered


# --- lists of nodes ---------------------------------------------------------------------------
W = Register("w", "w", S8, (4, 4))
V = Register("v", "w", S8, (4, 4))
A = Register("a", "a", S8, (4,))
C = Register("c", "c", S32, (4,))
STEP = var("i")


def write(register: Register, offset: int = 0) -> Call:
    return Call("write", (("m", Window("B", const(offset))), ("w", register)), (("P", const(4)),))


def rows(register: Register) -> Call:
    return Call("rows", (("a", A), ("w", register), ("c", C)))


def load() -> Call:
    return Call("load", (("m", Window("A", STEP * 4)), ("a", A)))


def changing() -> Iterator[tuple[Node, ...]]:
    """Yield what a loop does that brings something else each time, or may."""
    moved = Call("write", (("m", Window("B", STEP * 16)), ("w", W)), (("P", const(4)),))
    pitch = Call("write", (("m", Window("B", const(0))), ("w", W)), (("P", STEP),))
    yield (Scope((A, W), (load(), moved, rows(W))),)
    yield (Scope((A, W), (load(), pitch, rows(W))),)
    yield (Scope((A, W), (load(), write(W), rows(W), write(W, 16), rows(W))),)
    yield (Scope((A, W), (load(), Guard((STEP - 1,), (write(W),)), rows(W))),)
    copy = Copy((("x", const(16)),), "B", var("x"), "A", var("x"))
    yield copy, Scope((A, W), (load(), write(W), rows(W)))
    yield (Loop("j", const(1), (load(), write(W), rows(W))),)


def looped(*body: Node, count: int = 5, parallel: bool = False) -> LoweredKernel:
    loop = Loop("i", const(count), body, parallel)
    return LoweredKernel("k", (), (), (Scope((C,), (loop,)),))


@pytest.mark.parametrize("body", list(changing()))
def test_what_changes_stays(machine: Accelerator, body: tuple[Node, ...]) -> None:
    before = looped(*body)
    assert unchanged_kept(before, machine) == before


@pytest.mark.parametrize(("count", "parallel"), [(1, False), (5, True)])
def test_loops_of_one_iteration_or_of_threads_stay(
    machine: Accelerator, count: int, parallel: bool
) -> None:
    before = looped(Scope((A, W), (load(), write(W), rows(W))), count=count, parallel=parallel)
    assert unchanged_kept(before, machine) == before


def test_the_first_iteration_brings_what_stays(machine: Accelerator) -> None:
    inner = Scope((A, W, V), (load(), write(W), rows(W), write(V, 16), rows(V)))
    (after,) = unchanged_kept(looped(inner), machine).body
    assert isinstance(after, Scope)
    (kept,) = after.body
    assert isinstance(kept, Scope)
    assert kept.registers == (W, V)
    first, loop = kept.body
    assert isinstance(first, Scope)
    assert isinstance(loop, Loop)
    assert first.registers == (A,)
    assert [node.instruction for node in first.body if isinstance(node, Call)] == [
        "load",
        "write",
        "rows",
        "write",
        "rows",
    ]
    assert loop.count == const(4)
    (again,) = loop.body
    assert isinstance(again, Scope)
    assert [node.instruction for node in again.body if isinstance(node, Call)] == [
        "load",
        "rows",
        "rows",
    ]
    start = again.body[0]
    assert isinstance(start, Call)
    assert start.operand("m") == Window("A", (STEP + 1) * 4)


def test_what_stays_in_two_loops_is_brought_before_both(machine: Accelerator) -> None:
    inner = Loop("j", const(3), (Scope((A, W), (load(), write(W), rows(W))),))
    after = unchanged_kept(looped(inner), machine)
    assert writes(after.body) == 1
