"""Instructions of several statements, with tables, with shared registers and with constraints.

Each kernel is mapped, run on the simulator, which executes the instruction's own statements, and
compared with the interpreter, which executes the kernel's.
"""

from pathlib import Path

import pytest

from isamap.diagnostics import HardwareError, NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.lower.nodes import Call, Guard, Loop, Node, Scope
from isamap.mapping.checks.on_tile import legal_on_tile
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.text.load import parse_module

FOLDER = Path(__file__).parent

GEMM_CLAMP = """kernel relu6(M = 20, N = 13, K = %d) {
  in A : f32[M, K]  in B : f32[K, N]  in bias : f32[N]
  %s T : f32[M, N]
  out C : f32[M, N]
  T[i, j] += A[i, k] * B[k, j]
  C[i, j] = min(max(T[i, j] + bias[j], 0), 6)
}"""

BIAS_FIRST = """kernel bias_first(M = 20, N = 13, K = 8) {
  in A : f32[M, K]  in B : f32[K, N]  in bias : f32[N]
  out C : f32[M, N]
  C[i, j] = bias[j]
  C[i, j] += A[i, k] * B[k, j]
}"""

PLAIN = """kernel plain(M = 20, N = 13, K = %d) {
  in A : f32[M, K]  in B : f32[K, N]
  out C : f32[M, N]
  C[i, j] += A[i, k] * B[k, j]
}"""

REQUANTISED = """kernel requantised(M = 20, N = 13, K = 21) {
  in A : s8[M, K]  in B : s8[K, N]  const mult : s32[N] values 1 .. 100
  local T : s32[M, N]
  local S : s32[M, N]
  local U : s32[M, N]
  out C : s8[M, N]
  T[i, j] += s32(A[i, k]) * s32(B[k, j])
  S[i, j] = T[i, j] * mult[j]
  U[i, j] = (S[i, j] >> 7) + 3
  C[i, j] = sat[s8](U[i, j])
}"""

SMOOTH = """kernel smooth(N = 29) {
  in X : f32[N + 2]
  const W : f32[3] = %s
  out Y : f32[N]
  Y[i] += X[i + r] * W[r]
}"""

TWO_ROWS = "const g : f32[2, 3] = [[0.25, 0.5, 0.25], [1, 0, 0]]"

DESTROYED = """kernel destroyed(N = 29) {
  in X : f32[N]  in Z : f32[N]
  out Y : f32[N]
  Y[i] = max(X[i], Z[i]) - Z[i]
}"""

PRODUCT = """kernel product(N = 29, K%s) {
  in A : s32[N, K]  in B : s32[K]
  out Y : s32[N]
  Y[i] += A[i, k] * B[k]
}"""


def machine(name: str) -> Accelerator:
    return load_hardware(str(FOLDER / f"{name}.yaml"))


def mapped(text: str, name: str) -> Report:
    (kernel,) = parse_module(text).kernels
    report = make_report(kernel, machine(name))
    assert report.check is not None
    assert report.check.ok, report.check.text
    return report


def chosen(report: Report) -> list[tuple[str, tuple[str, ...]]]:
    found = report.result.statements
    return [(s.mappings[s.chosen].matching.needle.name, s.covers) for s in found]


def refusal(text: str, name: str) -> str:
    (kernel,) = parse_module(text).kernels
    with pytest.raises(NoMappingError) as caught:
        make_report(kernel, machine(name))
    return "\n".join(n.message for d in caught.value.diagnostics for n in d.notes)


def calls(nodes: tuple[Node, ...], name: str) -> list[Call]:
    found: list[Call] = []
    for node in nodes:
        match node:
            case Call() if node.instruction == name:
                found.append(node)
            case Loop(body=body) | Scope(body=body):
                found += calls(body, name)
            case Guard(body=body, otherwise=otherwise):
                found += calls((*body, *otherwise), name)
            case _:
                pass
    return found


# --- several statements ---------------------------------------------------------------------------
@pytest.mark.parametrize("steps", [1, 7, 8])
def test_a_product_with_bias_and_clamp_is_one_instruction(steps: int) -> None:
    report = mapped(GEMM_CLAMP % (steps, "local"), "fused")
    assert chosen(report) == [("gemm_bias_clamp", ("T", "C"))]
    assert all(array.name != "T" for array in report.result.lowered.arrays)


def test_what_begins_with_the_bias_is_the_same_instruction() -> None:
    assert chosen(mapped(BIAS_FIRST, "fused")) == [("gemm_bias_clamp", ("C#1", "C#2"))]


def test_bias_and_bounds_that_change_nothing_leave_the_product() -> None:
    assert chosen(mapped(PLAIN % 5, "fused")) == [("gemm_bias_clamp", ("C",))]


def test_a_bias_of_the_shape_of_the_result_carries_the_sum_from_tile_to_tile() -> None:
    report = mapped(PLAIN % 45, "carried")
    assert chosen(report) == [("gemm_add_clamp", ("C",))]
    call = calls(report.result.lowered.body, "gemm_add_clamp")[0]
    assert call.operand("bias") == call.operand("c")


def test_a_requantising_unit_takes_the_statements_that_are_its_own() -> None:
    report = mapped(REQUANTISED, "fused")
    assert chosen(report) == [("gemm_s8", ("T",)), ("requantise", ("S", "U", "C"))]


def test_a_reduction_that_does_not_fit_whole_is_refused_with_the_reason() -> None:
    text = refusal(GEMM_CLAMP % (45, "local"), "fused")
    assert "gemm_bias_clamp: it would take the whole reduction over k (45 steps)" in text
    assert "(for T and C together)" in text


def test_what_a_caller_sees_is_not_left_inside_an_instruction() -> None:
    text = refusal(GEMM_CLAMP % (7, "out"), "fused")
    assert "together" not in text


def test_sums_that_must_keep_their_order_stay_apart() -> None:
    kernel = (GEMM_CLAMP % (7, "local")).replace("K = 7)", "K = 7) permit no reassociate")
    assert "gemm_bias_clamp" in refusal(kernel, "fused")


# --- tables ---------------------------------------------------------------------------------------
def test_a_table_of_the_kernel_that_is_the_instructions_own_is_matched() -> None:
    report = mapped(SMOOTH % "[0.25, 0.5, 0.25]", "restricted")
    assert chosen(report) == [("smooth3", ("Y",))]
    assert all(dict(c.operands).keys() == {"x", "y"} for c in _smooth(report))


def _smooth(report: Report) -> list[Call]:
    found = calls(report.result.lowered.body, "smooth3")
    assert found
    return found


@pytest.mark.parametrize(
    ("numbers", "index"),
    [("[0.25, 0.5, 0.25]", "i + r"), ("[0.25, 0.5, 0.25]", "i + 2 - r")],
)
def test_a_filter_takes_a_window_and_has_its_numbers_itself(numbers: str, index: str) -> None:
    report = mapped((SMOOTH % numbers).replace("i + r", index), "taps")
    ((name, _),) = chosen(report)
    assert name == "smooth3"
    (found,) = report.result.statements
    assert found.mappings[found.chosen].tile == {"i": 8, "r": 3}
    for mapping in found.mappings:
        assert legal_on_tile(mapping.matching, dict(mapping.tile))


def test_numbers_of_a_table_that_are_not_used_leave_no_lanes_beside_each_other() -> None:
    # Fewer taps than the unit has: the third one must meet zeros, which neighbours would not be.
    text = (SMOOTH % "[0.25, 0.5]").replace("W : f32[3]", "W : f32[2]")
    report = mapped(text, "taps")
    for mapping in report.result.statements[0].mappings:
        assert mapping.tile.get("i", 1) == 1
        assert legal_on_tile(mapping.matching, dict(mapping.tile))


def test_another_table_is_refused_at_the_element_that_differs() -> None:
    text = refusal(SMOOTH % "[0.25, 0.5, 0.125]", "restricted")
    assert "smooth3: its table g holds 0.25 where the kernel has 0.125 (r = 2)" in text


def test_an_input_in_the_place_of_a_table_is_refused() -> None:
    text = (SMOOTH % "").replace(" = \n", "\n")
    assert "its table" not in refusal(text, "restricted")


# --- one register ---------------------------------------------------------------------------------
def test_an_input_that_is_overwritten_has_the_register_of_the_result() -> None:
    report = mapped(DESTROYED, "restricted")
    found = calls(report.result.lowered.body, "max2")
    assert found
    assert all(call.operand("a") == call.operand("r") != call.operand("b") for call in found)


# --- constraints ----------------------------------------------------------------------------------
def test_tiles_obey_constraints_in_their_tails_too() -> None:
    report = mapped(PRODUCT % " = 24", "restricted")
    (mapping,) = report.result.mappings
    assert mapping.tile["i"] <= 6
    assert mapping.tile["k"] % 4 == 0
    alone = [m for m in report.result.statements[0].mappings if "k" in m.tile]
    alone = [m for m in alone if [str(f) for f in m.matching.on_axis("k")] == ["k"]]
    assert alone
    assert all(m.tile["k"] % 4 == 0 and 24 % m.tile["k"] % 4 == 0 for m in alone)


def test_a_tail_that_breaks_a_constraint_is_refused_with_its_text() -> None:
    assert "dot4: its constraint k % 4 == 0 does not hold: k = " in refusal(
        PRODUCT % " = 22", "restricted"
    )


def test_a_size_known_at_run_time_may_break_a_constraint() -> None:
    assert "dot4: its constraint k % 4 == 0" in refusal(PRODUCT % "", "restricted")


@pytest.mark.parametrize(
    ("fields", "code", "part"),
    [
        ("constraints: k % 4 == 0", "E125", "'k' is no axis or extent"),
        ("constraints: i % 4", "E125", "expected a comparison"),
        ("constraints: [i < 3, 'i +']", "E125", "not finished"),
        ("constraints: a[0] < 3", "E125", "unknown buffer"),
        ("same: [a]", "E126", "two operands"),
        ("same: [a, q]", "E126", "no operand 'q'"),
        ("same: [a, b]", "E126", "cannot be one register"),
        ("same: [a, s]", "E126", "has its register already"),
    ],
)
def test_what_is_no_constraint_is_told_at_its_line(
    fields: str, code: str, part: str, tmp_path: Path
) -> None:
    text = f"""format: 1
name: wrong
clock: 1.0 GHz
storages:
  v: {{kind: registers, count: 16, bits: 256}}
instructions:
  - semantics: |
      instruction x {{
        in a : f32[8] @ v    in b : f32[4] @ v    inout s : f32[8] @ v
        s[i] += a[i] * b[j]
      }}
    {fields}
    throughput: 1
    latency: 1
"""
    path = tmp_path / "wrong.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HardwareError) as caught:
        load_hardware(str(path))
    first = caught.value.diagnostics[0]
    assert first.code == code
    assert part in first.message
    assert first.span is not None
    assert first.span.line == 12


# --- one register for several operands -----------------------------------------------------------
@pytest.mark.parametrize(
    ("same", "value"),
    [
        ("[a, r]", "X[i] * Z[i] * X[i]"),
        ("[b, r]", "X[i] * (Z[i] * X[i])"),
        ("[a, b]", "(X[i] * X[i]) * (X[i] * X[i])"),
        ("[b, a, r]", "(X[i] * X[i]) * (X[i] * X[i])"),
    ],
)
def test_one_register_in_a_row_of_calls(tmp_path: Path, same: str, value: str) -> None:
    source = (FOLDER / "restricted.yaml").read_text()
    unit = f"""  - semantics: |
      instruction times {{
        in a : f32[8] @ v    in b : f32[8] @ v    out r : f32[8] @ v
        r[i] = a[i] * b[i]
      }}
    same: {same}
    throughput: 1
    latency: 2
    units: alu
"""
    path = tmp_path / "rest.yaml"
    path.write_text(source.replace("instructions:\n", f"instructions:\n{unit}", 1))
    text = f"kernel k(N = 13) {{ in X : f32[N]  in Z : f32[N]  out Y : f32[N]  Y[i] = {value} }}"
    (kernel,) = parse_module(text).kernels
    report = make_report(kernel, load_hardware(str(path)))
    assert report.check is not None
    assert report.check.ok, report.check.text


def test_a_table_with_a_dimension_of_which_one_number_is_meant(tmp_path: Path) -> None:
    """Its other index is 0 in every iteration that is compared: a number beside arrays."""
    source = (FOLDER / "restricted.yaml").read_text()
    source = source.replace("const g : f32[3] = [0.25, 0.5, 0.25]", TWO_ROWS)
    path = tmp_path / "rest.yaml"
    path.write_text(source.replace("* g[r]", "* g[0, r]"))
    (kernel,) = parse_module(SMOOTH % "[0.25, 0.5, 0.25]").kernels
    report = make_report(kernel, load_hardware(str(path)))
    assert report.check is not None
    assert report.check.ok, report.check.text
