"""Fragments that the border of a buffer cuts, and work on padding alone that is left out."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.index import const, var
from isamap.ir.nodes import Kernel, Literal
from isamap.ir.often import Often
from isamap.ir.statements import accesses
from isamap.lower.nodes import Call, Copy, Guard, Loop, LoweredKernel, Node, Scope
from isamap.mapping.laws.killing import is_nothing
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.reader import read_schedule
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, machine

PLANES = """kernel planes(H = {h}, W = {w}, R = {r}, S = {s}, D = {step}) {{
  in X : {a}[2, {rows}, {columns}, 16] pad 0  const F : {b}[R, S, 2, 16]  out Y : {c}[2, H, W, 16]
  for p in 0..H  for q in 0..W  for r in 0..R  for t in 0..S
  Y[o, p, q, i] += {c}(X[o, D*p + r - {up}, D*q + t - {left}, i]) * {c}(F[r, t, o, i])
}}"""
TYPES = {"bf16": ("bf16", "bf16", "f32"), "u8": ("u8", "s8", "s32")}
INSTRUCTION = {"bf16": "vdpbf16ps", "u8": "vpdpbusd"}
ROWS = """kernel rows(C = 3, H = 5, W = {width}) {{
  in X : f32[C, H, W] pad 0  in F : f32[C, 3]  out Y : f32[C, H, W]
  Y[c, h, w] += X[c, h, w + s - 1] * F[c, s]
}}"""
NARROW = """kernel narrow(H = 8, W = {width}, C = 2, R = {r}, S = {s}) {{
  in X : f32[H, {columns}, C] pad 0  in F : f32[R, S, C]  out Y : f32[H, W, C]
  for h in 0..H  for w in 0..W  for r in 0..R  for s in 0..S
  Y[h, w, c] += X[h + r - {up}, w + s - {left}, c] * F[r, s, c]
}}"""
WINDOW = """kernel window{permit} {{
  in X : {dtype}[9, 9, 5] pad {pad}  in F : {dtype}[3, 3, 5, 32]  out Y : {dtype}[9, 9, 32]
  Y[p, q, k] {term} X[p + r - 1, q + t - 1, c] {op} F[r, t, c, k]
}}"""


def parsed(text: str) -> Kernel:
    return parse_module(text, "test.ir").kernels[0]


def planes(kind: str, rng: random.Random) -> Kernel:
    a, b, c = TYPES[kind]
    h, w, r, s = rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 4), rng.randint(2, 5)
    step, up, left = rng.randint(1, 2), rng.randint(0, 2), rng.randint(1, 3)
    rows, columns = rng.randint(1, 2 * h + r), rng.randint(1, 2 * w + s)
    sizes = {"h": h, "w": w, "r": r, "s": s, "step": step, "up": up, "left": left}
    return parsed(PLANES.format(a=a, b=b, c=c, rows=rows, columns=columns, **sizes))


def written(kernel: Kernel, clauses: str, tmp_path: Path, hardware: str = "x86_avx512") -> Result:
    target = kernel.statements[-1].target.buffer
    text = f"schedule {kernel.name} {{ {target} {{\n{clauses}\n}} }}"
    (tmp_path / "own.schedule").write_text(text)
    options = Options(schedule=read_schedule(tmp_path / "own.schedule"))
    return map_kernel(kernel, machine(hardware), options)


def nodes(body: tuple[Node, ...]) -> Iterator[Node]:
    for node in body:
        yield node
        if isinstance(node, Loop | Scope | Guard):
            yield from nodes(node.body)
            yield from nodes(getattr(node, "otherwise", ()))


def asides(lowered: LoweredKernel) -> list[Copy]:
    return [n for n in nodes(lowered.body) if isinstance(n, Copy) and n.aside]


@pytest.mark.parametrize("kind", TYPES)
def test_windows_of_any_size_beyond_any_border(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    cut = 0
    for trial in range(16):
        kernel = planes(kind, rng)
        p, q = rng.randint(1, 4), rng.randint(1, 4)
        clauses = f"instruction {INSTRUCTION[kind]}\naxes i <- i, k <- t\n"
        clauses += f"loops p/{p}, q/{q}\noperands X bordered, F packed"
        result = written(kernel, clauses, tmp_path)
        agrees(kernel, result.lowered, result.accelerator, trial)
        cut += len(asides(result.lowered))
    assert cut > 20


@pytest.mark.parametrize("hardware", ["x86_avx2", "x86_avx512", "gemm16"])
@pytest.mark.parametrize("width", [5, 16, 37, 100])
def test_vectors_along_rows(width: int, hardware: str, tmp_path: Path) -> None:
    kernel = parsed(ROWS.format(width=width))
    clauses = "" if hardware == "gemm16" else "instruction vfmadd_f32\naxes i <- w\n"
    result = written(kernel, f"{clauses}operands X bordered", tmp_path, hardware)
    agrees(kernel, result.lowered, machine(hardware), width)
    assert asides(result.lowered)
    agrees(kernel, map_kernel(kernel, machine(hardware), Options()).lowered, machine(hardware), 1)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_fragments_at_one_place_may_be_cut_in_different_elements(
    width: int, tmp_path: Path
) -> None:
    """The last columns of a row, beyond its end, lie where those before the next one begin."""
    rng = random.Random(width)
    for trial in range(12):
        r, s = rng.randint(1, 3), rng.randint(2, 5)
        sizes = {"r": r, "s": s, "up": rng.randint(0, r - 1), "left": rng.randint(0, s - 1)}
        kernel = parsed(NARROW.format(width=width, columns=rng.randint(1, 4), **sizes))
        clauses = f"instruction vfmadd_f32\naxes i <- w\nloops c/1, h/{rng.choice([2, 4, 8])}\n"
        result = written(kernel, f"{clauses}operands X bordered", tmp_path)
        agrees(kernel, result.lowered, result.accelerator, trial)


GROUPS = """kernel groups(H = 5, W = {width}, K = {k}) {{
  in X : f32[H, W, {channels}] pad 0  const F : f32[3, 3, {c}, K]  out Y : f32[H, W, K]
  Y[h, w, k] += X[h + r - 1, w + s - 1, {c}*(k//{per}) + c] * F[r, s, c, k]
}}"""


@pytest.mark.parametrize("hardware", ["x86_avx512", "x86_avx2"])
@pytest.mark.parametrize(("per", "groups"), [(3, 3), (4, 4), (16, 2)])
@pytest.mark.parametrize("width", [1, 9])
def test_convolutions_of_groups(width: int, per: int, groups: int, hardware: str) -> None:
    text = GROUPS.format(width=width, k=per * groups, per=per, c=3, channels=3 * groups)
    kernel, to = parsed(text), machine(hardware)
    agrees(kernel, map_kernel(kernel, to).lowered, to, width)


def test_only_what_may_be_cut_is_copied(tmp_path: Path) -> None:
    """Of rows of four vectors the first and the last one are, each for one of the three taps."""
    kernel = parsed(ROWS.format(width=64))
    clauses = "instruction vfmadd_f32\naxes i <- w\nloops c/1, h/1, w/16\noperands X bordered"
    lowered = written(kernel, clauses, tmp_path).lowered
    assert len(asides(lowered)) == 2
    guards = [n for n in nodes(lowered.body) if isinstance(n, Guard)]
    assert sorted(len(g.conditions) for g in guards) == [1, 1]
    inner = written(kernel, clauses.replace("w/16", "w/64"), tmp_path).lowered
    assert not [n for n in nodes(inner.body) if isinstance(n, Guard)]
    assert len(asides(inner)) == 2


def test_it_is_compiled_proved_and_written_again(tmp_path: Path) -> None:
    for kind in TYPES:
        kernel = planes(kind, random.Random(11))
        result = written(kernel, "operands X bordered", tmp_path)
        made = result.schedule
        evidence = Evidence(kernel, (), kernel, result.accelerator, made, result.lowered)
        verdicts = {claim.verdict for claim in certify(evidence).claims}
        assert verdicts <= {"proved", "assumed", "noted"}
        (tmp_path / "again.schedule").write_text(schedule_text(result))
        again = Options(schedule=read_schedule(tmp_path / "again.schedule"))
        assert map_kernel(kernel, result.accelerator, again).schedule == made


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_copy_aside_each_for_itself(threads: int, tmp_path: Path) -> None:
    kernel = parsed(ROWS.format(width=333))
    hardware = load_hardware("native")
    text = "schedule rows { Y {\n loops c/1 parallel, h/1 parallel, w/16\n operands X bordered\n} }"
    (tmp_path / "own.schedule").write_text(text)
    options = Options(threads=threads, schedule=read_schedule(tmp_path / "own.schedule"))
    try:
        result = map_kernel(kernel, hardware, options)
    except Exception as error:  # a machine whose vectors are not of 16 floats
        pytest.skip(f"not for this CPU: {error}")
    arrays = {a.name: a for a in result.lowered.arrays}
    assert arrays["X_aside"].private
    rng = np.random.default_rng(0)
    given = {
        "X": rng.integers(-2, 3, (3, 5, 333)).astype(np.float32),
        "F": rng.integers(-2, 3, (3, 3)).astype(np.float32),
    }
    want = np.asarray(interpret(kernel, given)["Y"])
    compiled = result.compile()
    for _ in range(100):
        np.testing.assert_array_equal(compiled.call(given, {}, threads=threads)["Y"], want)


def test_padded_copies_inside_loops(tmp_path: Path) -> None:
    rng = random.Random(8)
    for trial in range(12):
        kind = rng.choice(list(TYPES))
        kernel = planes(kind, rng)
        depth = rng.randint(1, 3)
        loops = rng.choice(["o/1, p/4, q/2", "o/1, q/6, p/2, q/3", "p/3, o/1, q/2"])
        clauses = f"instruction {INSTRUCTION[kind]}\naxes i <- i, k <- t\n"
        clauses += f"loops {loops}\noperands X padded inside {depth}"
        result = written(kernel, clauses, tmp_path)
        agrees(kernel, result.lowered, result.accelerator, trial)


def test_a_piece_of_a_padded_copy_takes_its_room(tmp_path: Path) -> None:
    kernel = parsed(
        PLANES.format(
            a="bf16", b="bf16", c="f32", h=20, w=20, r=3, s=3, step=1, up=1, left=1, rows=20,
            columns=20,
        )
    )  # fmt: skip
    clauses = "instruction vdpbf16ps\naxes i <- i, k <- t\nloops o/1, p/4, q/4\noperands X padded"

    def room(inside: str) -> int:
        lowered = written(kernel, clauses + inside, tmp_path).lowered
        return next(int(a.size.evaluate({})) for a in lowered.arrays if a.name == "X_padded")

    assert 2 * 22 * 22 * 16 <= room("") < 2 * 22 * 22 * 16 + 64
    assert 22 * 22 * 16 <= room(" inside 1") < 22 * 22 * 16 + 64
    assert 6 * 22 * 16 <= room(" inside 2") < 6 * 22 * 16 + 64
    assert 6 * 6 * 16 <= room(" inside 3") < 6 * 6 * 16 + 64


# --- what adds only padding ----------------------------------------------------------------------
def executed(lowered: LoweredKernel, name: str, values: dict[str, int] | None = None) -> int:
    """Return how often an instruction is executed."""

    def count(body: tuple[Node, ...], at: dict[str, int]) -> int:
        total = 0
        for node in body:
            if isinstance(node, Call):
                total += node.instruction == name
            elif isinstance(node, Loop):
                trips = node.count.evaluate(at)
                total += sum(count(node.body, {**at, node.counter: n}) for n in range(trips))
            elif isinstance(node, Guard):
                holds = all(c.evaluate(at) >= 0 for c in node.conditions)
                total += count(node.body if holds else node.otherwise, at)
            elif isinstance(node, Scope):
                total += count(node.body, at)
        return total

    return count(lowered.body, values or {})


def window(pad: str, dtype: str = "f32", term: str = "+=", op: str = "*", permit: str = "") -> str:
    return WINDOW.format(pad=pad, dtype=dtype, term=term, op=op, permit=permit)


def test_products_with_padding_are_left_out() -> None:
    kernel = parsed(window("0"))
    result = map_kernel(kernel, machine("x86_avx512"), Options())
    inside = sum(0 <= p + r < 9 for p in range(9) for r in (-1, 0, 1)) ** 2
    assert result.mappings[0].matching.needle.name == "vfmadd_f32"
    assert executed(result.lowered, "vfmadd_f32") == inside * 5 * 2
    agrees(kernel, result.lowered, machine("x86_avx512"), 1)


@pytest.mark.parametrize(
    ("text", "instruction", "times"),
    [
        (window("1"), "vfmadd_f32", 1),
        (window("0", permit=" permit no finite"), "vfmadd_f32", 1),
        (window("0", op="+"), "vadd_f32", 2),
        (window("0", term="max="), "vmax_f32", 1),
    ],
    ids=["other padding", "infinities", "sums", "maximum of products"],
)
def test_what_padding_changes_is_done(text: str, instruction: str, times: int) -> None:
    kernel = parsed(text)
    result = map_kernel(kernel, machine("x86_avx512"), Options(rewrite=()))
    assert executed(result.lowered, instruction) == 9 * 9 * 9 * 5 * 2 * times
    agrees(kernel, result.lowered, machine("x86_avx512"), 1)


def test_whole_loops_are_left_out() -> None:
    kernel = parsed(window("0").replace("5]", "300]").replace("5, 32]", "300, 32]"))
    lowered = map_kernel(kernel, machine("x86_avx512"), Options()).lowered
    around = [
        node
        for node in nodes(lowered.body)
        if isinstance(node, Guard) and any(isinstance(n, Loop) for n in node.body)
    ]
    assert around


@pytest.mark.parametrize("hardware", ["portable_c", "x86_avx2", "x86_avx512", "gemm16"])
def test_the_answer_is_the_same_everywhere(hardware: str) -> None:
    kernel = parsed(window("0"))
    result = map_kernel(kernel, machine(hardware), Options())
    agrees(kernel, result.lowered, machine(hardware), 3)


def test_padding_of_a_maximum() -> None:
    kernel = parsed(
        """kernel pool { in X : f32[9, 9, 20] pad -inf  out Y : f32[9, 9, 20]
  for r in 0..3  for t in 0..3
  Y[p, q, c] max= X[p + r - 1, q + t - 1, c] }"""
    )
    result = map_kernel(kernel, machine("x86_avx512"), Options())
    agrees(kernel, result.lowered, machine("x86_avx512"), 2)
    root = result.mappings[0].matching.needle.entry.name
    inside = sum(0 <= p + r < 9 for p in range(9) for r in (-1, 0, 1)) ** 2
    assert executed(result.lowered, root) == inside * 2


def test_one_access_of_a_body_at_its_padding() -> None:
    kernel = parsed(
        """kernel two { in A : f32[8] pad 0  in B : f32[8]  out Y : f32[8]
  for k in 0..3  for i in 0..8
  Y[i] += A[i + k] * B[i] + A[i] * B[i] * A[i + k - 1] }"""
    )
    (statement,) = kernel.statements
    found = list(dict.fromkeys(accesses(statement.value)))
    zero = Literal("0.0", found[0].dtype)

    def nothing(n: int, finite: bool = True) -> bool:
        return is_nothing(statement.value, "+=", found[n], zero, finite)

    assert [nothing(n) for n in range(len(found))] == [a.buffer == "B" for a in found]
    assert not any(nothing(n, finite=False) for n in range(len(found)))


def test_shares_of_iterations_are_counted() -> None:
    a, b = var("a"), var("b")
    loops = [("a", 4.0), ("b", 10.0)]
    often = Often()
    assert often.share((a - 1,), loops, 0.5) == 0.75
    assert often.share((a - 1, const(8) - b), loops, 0.5) == 0.75 * 0.9
    assert often.share((a + b - 1,), loops, 0.5) == 39 / 40
    assert often.share((a - 1, a + b - 1, b - 9), loops, 0.5) == 3 / 40
    assert often.share((var("n") - 1,), loops, 0.5) == 0.5
    assert often.share((a - 1,), [("a", 1e7)], 0.25) == 0.25


def test_a_branch_counts_as_often_as_it_is_taken(tmp_path: Path) -> None:
    """Of rows that are longer less is cut: their estimates grow by less than they do."""
    clauses = "instruction vfmadd_f32\naxes i <- w\nloops c/1, h/1, w/16\noperands X bordered"
    short, long = (
        written(parsed(ROWS.format(width=w)), clauses, tmp_path).estimate.busy for w in (64, 640)
    )
    assert short < long < 8 * short
