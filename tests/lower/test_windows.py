"""Windows that slide are loaded as they lie: the operand's axis holds a sum of variables."""

from pathlib import Path

import pytest

from isamap.diagnostics import Source
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.schedule.reader import parse_schedule
from tests.lower.test_lowering import agrees
from tests.mapping.machines import kernel, machine, simulate

TAP = """
instruction tap {
  in a : s16[18] @ v    in w : s16[3] @ v    inout c : s32[16] @ w
  c[i] += s32(a[i + s]) * s32(w[s])
}
instruction clear { in x : s32[] @ imm  out c : s32[16] @ w  c[i] = x[] }
instruction taps(n in 1..4, Q) {
  in m : s16[n] @ memory strides [Q] pad 0    out r : s16[3] @ v  for s in 0..3  r[s] = m[s]
}
instruction put(n in 1..17, Q) {
  in c : s32[16] @ w    out m : s32[n] @ memory strides [Q]  for i in 0..n  m[i] = c[i]
}
"""
WHOLE = "instruction line { in m : s16[18] @ memory  out r : s16[18] @ v  r[i] = m[i] }"
PART = """
instruction part(n in 1..19) {
  in m : s16[n] @ memory pad 0    out r : s16[18] @ v  for i in 0..18  r[i] = m[i]
}
"""
STEPS = """
instruction steps(n in 1..19, P) {
  in m : s16[n] @ memory strides [P] pad 0    out r : s16[18] @ v  for i in 0..18  r[i] = m[i]
}
"""
LINES = """
instruction taps9 {
  in a : s16[3, 18] @ v    in w : s16[3, 3] @ v    inout c : s32[16] @ w
  c[i] += s32(a[r, i + s]) * s32(w[r, s])
}
instruction lines(rows in 1..4, n in 1..19, P) {
  in m : s16[rows, n] @ memory strides [P, 1] pad 0    out a : s16[3, 18] @ v
  for r in 0..3    for i in 0..18    a[r, i] = m[r, i]
}
instruction square(rows in 1..4, n in 1..4, P, Q) {
  in m : s16[rows, n] @ memory strides [P, Q] pad 0    out a : s16[3, 3] @ v
  for r in 0..3    for i in 0..3    a[r, i] = m[r, i]
}
"""
SECOND = """
instruction second {
  in a : s16[18] @ v    in w : s16[4] @ v    inout c : s32[8] @ w
  for i in 0..8    for s in 0..4    c[i] += s32(a[2*i + s]) * s32(w[s])
}
instruction clear { in x : s32[] @ imm  out c : s32[8] @ w  c[i] = x[] }
instruction taps(n in 1..5) {
  in m : s16[n] @ memory pad 0    out r : s16[4] @ v  for s in 0..4  r[s] = m[s]
}
instruction put(n in 1..9) {
  in c : s32[8] @ w    out m : s32[n] @ memory  for i in 0..n  m[i] = c[i]
}
"""
BANDED = """
instruction product {
  in a : s16[5, 12] @ v    in b : s16[12, 4] @ v    inout c : s32[5, 4] @ w
  c[i, j] += s32(a[i, k]) * s32(b[k, j])
}
instruction clear { in x : s32[] @ imm  out c : s32[5, 4] @ w  c[i, j] = x[] }
instruction rows(n in 1..6, k in 1..13, P) {
  in m : s16[n, k] @ memory strides [P, 1] pad 0    out r : s16[5, 12] @ v
  for i in 0..5    for j in 0..12    r[i, j] = m[i, j]
}
instruction columns { in m : s16[12, 4] @ memory  out r : s16[12, 4] @ v  r[k, j] = m[k, j] }
instruction put(n in 1..6, k in 1..5, P) {
  in c : s32[5, 4] @ w    out m : s32[n, k] @ memory strides [P, 1]
  for i in 0..n    for j in 0..k    m[i, j] = c[i, j]
}
"""
FROM_MEMORY = """
instruction tap {
  in a : s16[18] @ memory    in w : s16[3] @ v    inout c : s32[16] @ w
  c[i] += s32(a[i + s]) * s32(w[s])
}
instruction clear { in x : s32[] @ imm  out c : s32[16] @ w  c[i] = x[] }
instruction taps(n in 1..4) {
  in m : s16[n] @ memory pad 0    out r : s16[3] @ v  for s in 0..3  r[s] = m[s]
}
instruction put(n in 1..17) {
  in c : s32[16] @ w    out m : s32[n] @ memory  for i in 0..n  m[i] = c[i]
}
"""


def filter_(count: int, taps: int, pad: str = "") -> str:
    """A filter along a line, or one of a padded line that is as long as the result."""
    length, shift = (f"{count} {pad}", taps // 2) if pad else (f"{count + taps - 1}", 0)
    size, padding = length.split(" ", 1) if pad else (length, "")
    return f"""kernel filter {{
      in X : s16[{size}] {padding}  const F : s16[{taps}]  out Y : s32[{count}]
      Y[n] += s32(X[n + s - {shift}]) * s32(F[s])
    }}"""


def image(height: int, width: int, channels: int = 3, taps: int = 3) -> str:
    return f"""kernel image {{
      in X : s16[{channels}, {height + taps - 1}, {width + taps - 1}]
      const F : s16[2, {channels}, {taps}, {taps}]    out Y : s32[2, {height}, {width}]
      Y[k, h, w] += s32(X[c, h + r, w + s]) * s32(F[k, c, r, s])
    }}"""


def copies(result: Result, buffer: str = "X") -> list[str]:
    """Return the copies of a buffer that the code makes."""
    return [a.name for a in result.lowered.arrays if a.name.startswith(f"{buffer}_")]


def written(source: Kernel, axes: str, more: str = "") -> Options:
    """Return the options of a schedule with the variables on these axes."""
    said = f"schedule {source.name} {{ Y {{ axes {axes} {more} }} }}"
    return Options(schedule=parse_schedule(Source("x.schedule", said)))


def placed(text: str, hardware: Accelerator, axes: str, more: str = "") -> Result:
    """Map a kernel with its variables on these axes; check what it computes and what is proved."""
    source = kernel(text)
    result = simulate(source, hardware, options=written(source, axes, more))
    assert all(claim.verdict != "refuted" for claim in prove_result(result).claims)
    return result


def straight(text: str, hardware: Accelerator, axes: str = "i <- n, s <- s") -> None:
    """Check what a mapping computes, and that nothing copies X for it."""
    assert copies(placed(text, hardware, axes)) == []


def test_a_window_is_one_load_of_what_lies_in_a_row(tmp_path: Path) -> None:
    straight(filter_(64, 3), machine(tmp_path, TAP, WHOLE))


@pytest.mark.parametrize(("count", "taps"), [(64, 3), (37, 3), (5, 3), (37, 5), (2, 2), (20, 7)])
def test_less_of_a_window_is_loaded_where_less_is_in_use(
    count: int, taps: int, tmp_path: Path
) -> None:
    straight(filter_(count, taps), machine(tmp_path, TAP, PART))


@pytest.mark.parametrize("count", [37, 5])
def test_without_a_load_of_fewer_elements_the_window_is_packed(count: int, tmp_path: Path) -> None:
    hardware = machine(tmp_path, TAP, WHOLE)
    assert copies(placed(filter_(count, 3), hardware, "i <- n, s <- s")) == ["X_packed"]


@pytest.mark.parametrize("count", [64, 37])
def test_a_padded_window_is_loaded_from_a_padded_copy(count: int, tmp_path: Path) -> None:
    hardware, text = machine(tmp_path, TAP, PART), filter_(count, 3, "pad 0")
    assert copies(placed(text, hardware, "i <- n, s <- s")) == ["X_padded"]


@pytest.mark.parametrize("count", [64, 37, 17])
@pytest.mark.parametrize("index", ["n + s - 1", "n - s + 1"])
@pytest.mark.parametrize("how", ["bordered", "padded inside 1"])
def test_a_window_that_the_border_cuts(count: int, index: str, how: str, tmp_path: Path) -> None:
    text = f"""kernel border {{
      in X : s16[{count}] pad 0  const F : s16[3]  out Y : s32[{count}]
      Y[n] += s32(X[{index}]) * s32(F[s])
    }}"""
    sign = "" if "+ s" in index else "-"
    hardware, more = machine(tmp_path, TAP, PART), f"\nloops n/16\noperands X {how}\n"
    (name,) = copies(placed(text, hardware, f"i <- n, s <- {sign}s", more))
    assert name == ("X_aside" if how == "bordered" else "X_padded")


@pytest.mark.parametrize("size", [(16, 7), (19, 5)])
def test_a_window_of_a_column_takes_steps(size: tuple[int, int], tmp_path: Path) -> None:
    height, width = size
    text = f"""kernel column {{
      in X : s16[{height + 2}, {width}]  const F : s16[3]  out Y : s32[{height}, {width}]
      Y[h, w] += s32(X[h + r, w]) * s32(F[r])
    }}"""
    straight(text, machine(tmp_path, TAP, STEPS), "i <- h, s <- r")


@pytest.mark.parametrize("size", [(4, 32, 3, 3), (5, 19, 2, 3), (6, 21, 1, 5), (3, 40, 1, 2)])
def test_windows_of_several_lines(size: tuple[int, int, int, int], tmp_path: Path) -> None:
    hardware = machine(tmp_path, TAP, LINES, PART)
    straight(image(*size), hardware, "i <- w, r <- r, s <- s")


def every_second(count: int, taps: int) -> str:
    return f"""kernel second {{
      in X : s16[{2 * count + taps - 2}]  const F : s16[{taps}]  out Y : s32[{count}]
      Y[n] += s32(X[2*n + s]) * s32(F[s])
    }}"""


@pytest.mark.parametrize(("count", "taps"), [(32, 4), (21, 3), (7, 4), (30, 8)])
def test_windows_with_steps_share_elements_too(count: int, taps: int, tmp_path: Path) -> None:
    straight(every_second(count, taps), machine(tmp_path, SECOND, PART))


def test_a_window_that_may_leave_elements_out_is_packed(tmp_path: Path) -> None:
    # The fifth tap stands alone: it takes every second element, and zeros must be between them.
    result = placed(every_second(30, 5), machine(tmp_path, SECOND, PART), "i <- n, s <- s")
    assert copies(result) == ["X_packed"]


@pytest.mark.parametrize("index", ["n + s", "n - s + 2"])
def test_sizes_may_be_open(index: str, tmp_path: Path) -> None:
    text = f"""kernel filter(N) {{
      in X : s16[N + 2]  const F : s16[3]  out Y : s32[N]
      Y[n] += s32(X[{index}]) * s32(F[s])
    }}"""
    hardware, source = machine(tmp_path, TAP, PART), kernel(text)
    sign = "" if "+ s" in index else "-"
    result = map_kernel(source, hardware, written(source, f"i <- n, s <- {sign}s"))
    assert copies(result) == []
    for count in (1, 2, 15, 16, 17, 64):
        agrees(source, result.lowered, hardware, count, {"N": count})


@pytest.mark.parametrize("size", [(8, 12), (7, 13), (5, 9)])
def test_a_sum_on_one_axis_of_a_product_is_a_window(size: tuple[int, int], tmp_path: Path) -> None:
    height, width = size
    text = f"""kernel band {{
      in X : s16[{height}, {width + 2}]  const F : s16[3]  out Y : s32[{height}, {width}]
      Y[h, w] += s32(X[h, w + s]) * s32(F[s])
    }}"""
    straight(text, machine(tmp_path, BANDED), "i <- h, j <- w, k <- s + w")


def test_a_window_is_read_from_memory_where_the_instruction_does_that(tmp_path: Path) -> None:
    straight(filter_(64, 3), machine(tmp_path, FROM_MEMORY))


def test_an_instruction_that_reads_whole_windows_gets_them_packed_at_the_end(
    tmp_path: Path,
) -> None:
    result = placed(filter_(37, 3), machine(tmp_path, FROM_MEMORY), "i <- n, s <- s")
    assert copies(result) == ["X_packed"]


@pytest.mark.parametrize(("count", "taps"), [(64, 3), (37, 3), (20, 6)])
def test_a_window_may_go_back(count: int, taps: int, tmp_path: Path) -> None:
    text = f"""kernel back {{
      in X : s16[{count + taps - 1}]  const F : s16[{taps}]  out Y : s32[{count}]
      Y[n] += s32(X[n - s + {taps - 1}]) * s32(F[s])
    }}"""
    straight(text, machine(tmp_path, TAP, PART), "i <- n, s <- -s")


def test_fewer_taps_of_a_window_that_goes_back_leave_out_its_first_elements(tmp_path: Path) -> None:
    text = """kernel back {
      in X : s16[41]  const F : s16[5]  out Y : s32[37]
      Y[n] += s32(X[n - s + 4]) * s32(F[s])
    }"""
    result = placed(text, machine(tmp_path, TAP, PART), "i <- n, s <- -s")
    assert copies(result) == ["X_packed"]
