"""Kernels of odd sizes on the shipped machines whose memories a program fills, all simulated."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import IsamapError, ScheduleError
from isamap.hw.load import load_hardware
from isamap.ir.index import const
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.choose import choose
from isamap.lower.nodes import Call, Copy, Node, Setting
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.pipeline.unmapped import enumerate_each
from isamap.schedule.space import space
from isamap.text.load import load_module, parse_module

HERE = Path(__file__).parent


def kernels(name: str) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in load_module(HERE / name).kernels}


SUMS, BYTES, STORES = kernels("sums.ir"), kernels("bytes.ir"), kernels("stores.ir")
LAYERS, POOLS = kernels("layers.ir"), kernels("pools.ir")


def computed(kernel: Kernel, machine: str) -> Report:
    report = make_report(kernel, load_hardware(machine), Options(prove=False))
    assert report.execution.way == "simulated"
    assert report.check is not None
    assert report.check.ok, report.check
    return report


def nodes(body: tuple[Node, ...]) -> list[Node]:
    found: list[Node] = []
    for node in body:
        found.append(node)
        for part in ("body", "otherwise"):
            found += nodes(getattr(node, part, ()))
    return found


def instructions(report: Report) -> set[str]:
    lowered = report.result.lowered
    return {n.instruction for n in nodes(lowered.code) if isinstance(n, Call)}


@pytest.mark.parametrize("name", SUMS)
def test_sums_are_stored_as_they_are(name: str) -> None:
    computed(SUMS[name], "gemmini")


@pytest.mark.parametrize("name", SUMS)
def test_rows_of_any_length_hold_fragments(name: str) -> None:
    report = computed(SUMS[name], str(HERE / "array12.yaml"))
    assert instructions(report) & {"product", "add_acc"}
    assert report.result.placements
    for found in report.result.placements:
        row = {"spad": 12, "acc": 48}[found.storage]
        assert found.used % row == 0


@pytest.mark.parametrize("name", ["pooling", "oblong", "row", "padded"])
def test_maxima_of_bytes_are_taken_where_sums_are(name: str) -> None:
    report = computed(POOLS[name], str(HERE / "array12.yaml"))
    assert instructions(report) >= {"get_acc_s8", "max_acc", "put_s8"}


@pytest.mark.parametrize("name", ["one", "gemm", "dilated", "vector", "dot", "addition"])
def test_what_units_wait_for_is_estimated(name: str) -> None:
    report = computed(SUMS[name], "gemmini")
    assert report.execution.cycles is not None
    assert report.result.estimate.cycles == pytest.approx(report.execution.cycles, rel=1e-9)


@pytest.mark.parametrize("name", BYTES)
def test_sums_that_cannot_be_stored_are_finished_where_they_are(name: str) -> None:
    report = computed(BYTES[name], "vta")
    assert "store" in instructions(report)
    if len(BYTES[name].statements) == 2:
        assert report.result.schedule.statements[1].within == 0


def test_sums_that_no_one_can_take_are_refused_with_the_reason() -> None:
    with pytest.raises(IsamapError, match="cannot be made into code for vta") as refused:
        make_report(SUMS["gemm"], load_hardware("vta"), Options(prove=False))
    notes = [note.message for note in refused.value.diagnostics[0].notes]
    assert "gemm: no instruction takes s32[16] from acc to memory" in notes


@pytest.mark.parametrize(
    ("name", "store"), [("scaled", "mvout_scaled"), ("rectified", "mvout_relu")]
)
def test_a_store_computes_what_it_stores(name: str, store: str) -> None:
    report = computed(STORES[name], "gemmini")
    assert instructions(report) == {"matmul", "mvin", "set_acc", store}
    assert not any(isinstance(node, Copy) for node in nodes(report.result.lowered.code))


def test_one_register_is_stored_in_two_ways() -> None:
    report = computed(STORES["both"], "gemmini")
    assert {"mvout", "mvout_relu"} <= instructions(report)
    assert [own.within for own in report.result.schedule.statements] == [None, 0, 0]


def test_results_that_no_store_takes_as_they_lie_are_copied_from_a_stage() -> None:
    report = computed(STORES["scattered"], "vta")
    assert any(array.name == "Y_stage" for array in report.result.lowered.arrays)


def test_a_bias_is_packed_where_whole_vectors_are_loaded() -> None:
    report = computed(BYTES["bias"], "vta")
    assert any(array.name == "D_packed" for array in report.result.lowered.arrays)


@pytest.mark.parametrize("name", POOLS)
def test_maxima_over_windows_are_taken_where_results_are_stored(name: str) -> None:
    report = computed(POOLS[name], "gemmini")
    used = instructions(report)
    size = 2 if name in ("two", "row") else 3
    assert used >= {f"mvin_window_{size}", f"mvout_pool_{size}"}
    copied = any(isinstance(node, Copy) for node in nodes(report.result.lowered.code))
    assert copied == (name in ("oblong", "row", "padded"))  # what is not there is the least value
    if name == "after":
        assert used >= {"matmul", "mvout_relu"}
        pools = {n.value for n in nodes(report.result.lowered.code) if isinstance(n, Setting)}
        assert {const(0), const(3)} <= pools


@pytest.mark.parametrize(
    ("value", "used"),
    [
        ("sat[s8](max(C[i, j], 0))", {"mvout_relu_first_s8"}),
        ("max(sat[s8](C[i, j]), 0)", {"mvout_relu_s8"}),
        ("sat[s8](max(C[i, j] + D[j], 0))", {"mvin_add", "mvout_relu_first_s8"}),
        ("max(sat[s8](f32(C[i, j] + D[j]) * 0.3), 0)", {"mvin_add", "mvout_relu"}),
    ],
)
def test_sums_are_clamped_and_narrowed_in_either_order(value: str, used: set[str]) -> None:
    bias = "in D : s32[9]" if "D" in value else ""
    text = f"""kernel rectified {{ in A : s8[17, 33]  in B : s8[33, 9]  {bias}
      local C : s32[17, 9]  out Y : s8[17, 9]
      C[i, j] += s32(A[i, k]) * s32(B[k, j])
      Y[i, j] = {value} }}"""
    (kernel,) = parse_module(text).kernels
    report = computed(kernel, "gemmini")
    assert instructions(report) == {"matmul", "mvin", "set_acc", *used}
    assert report.result.schedule.statements[1].within == 0


def test_a_product_before_a_narrowing_store_is_refused_where_it_stands() -> None:
    text = """kernel rectified { in A : s8[17, 33]  in B : s8[33, 9]  local C : s32[17, 9]
      out Y : s8[17, 9]
      C[i, j] += s32(A[i, k]) * s32(B[k, j])
      Y[i, j] = sat[s8](f32(C[i, j] * C[i, j]) * 0.3) }"""
    (kernel,) = parse_module(text).kernels
    with pytest.raises(IsamapError, match="cannot be made into code for gemmini") as refused:
        make_report(kernel, load_hardware("gemmini"), Options(prove=False))
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.span is not None
    notes = [note.message for note in diagnostic.notes]
    assert any("no instruction that writes s32[16, 16] in acc" in note for note in notes)


def test_a_maximum_begins_with_the_least_sum() -> None:
    text = """kernel pooling { in X : s32[7, 9, 19]  local T : s32[3, 4, 19]  out Y : s8[3, 4, 19]
      for r in 0..3
      for s in 0..3
      T[p, q, c] max= X[2*p + r, 2*q + s, c]
      Y[p, q, c] = s8(T[p, q, c]) }"""
    (kernel,) = parse_module(text).kernels
    assert instructions(computed(kernel, "vta")) == {"alu_least", "load_acc", "alu_max", "store"}


def test_what_the_results_register_holds_is_not_overwritten_while_it_is_needed() -> None:
    text = """kernel twice { in A : s8[5, 16]  in B : s8[16, 16]  local C : s32[5, 16]
      out Y : s8[5, 16]
      C[i, j] += s32(A[i, k]) * s32(B[k, j])
      Y[i, j] = s8(min(C[i, j] >> 3, C[i, j])) }"""
    (kernel,) = parse_module(text).kernels
    with pytest.raises(IsamapError, match="from acc to memory"):
        make_report(kernel, load_hardware("vta"), Options(prove=False))


@pytest.mark.parametrize("name", LAYERS)
def test_layers_run_on_their_unit_and_are_narrowed_on_the_way_out(name: str) -> None:
    used = instructions(computed(LAYERS[name], "nvdla"))
    (out,) = (one for one in used if "_out_" in one)
    if "pooling" in name:
        assert out in ("pdp_out_s8", "pdp_out_f16")
    else:
        assert out in ("sdp_out_s8", "sdp_out_s16", "sdp_out_f16")
        sums = len(LAYERS[name].statements) > 1
        assert any(one.startswith("stripe") for one in used) == sums


def test_a_bias_a_shift_and_a_clamp_are_units_in_a_row() -> None:
    assert instructions(computed(LAYERS["shifted"], "nvdla")) >= {"x1_add_s8", "x2_shift_s8"}
    assert "x1_add_relu_s8" in instructions(computed(LAYERS["bias"], "nvdla"))


def test_results_of_32_bits_stay_on_the_chip() -> None:
    with pytest.raises(IsamapError, match="cannot be made into code for nvdla") as refused:
        make_report(SUMS["gemm"], load_hardware("nvdla"), Options(prove=False))
    notes = [note.message for note in refused.value.diagnostics[0].notes]
    assert "stripe_s8: no instruction takes s32[16, 32] from cacc to memory" in notes


def test_atoms_that_lie_in_a_row_are_read_as_they_lie_and_others_are_packed() -> None:
    aligned, odd = (computed(LAYERS[name], "nvdla") for name in ("aligned", "convolution"))
    assert not any(a.name == "X_packed" for a in aligned.result.lowered.arrays)
    assert any(a.name == "X_packed" for a in odd.result.lowered.arrays)


def test_sums_that_nothing_stores_are_laid_so_that_others_take_them() -> None:
    # With groups on both axes of the core more of it would be in use, but only some sums count.
    (first, second) = computed(LAYERS["grouped"], "nvdla").result.schedule.statements
    placed = [(p.form.name, p.axis) for p in first.mapping.matching.placements]
    assert second.within == 0
    assert len({axis for name, axis in placed if name == "g" and axis in ("p", "k")}) <= 1


def test_a_proof_knows_the_pitch_that_is_demanded() -> None:
    report = make_report(LAYERS["aligned"], load_hardware("nvdla"), Options())
    assert report.certificate is not None
    claims = [c for c in report.certificate.claims if c.name == "constraints"]
    assert any("P % 32 == 0 of load_data_s8" in c.claim for c in claims)
    assert all(c.verdict == "proved" for c in claims)


def test_arrays_begin_where_the_memory_says() -> None:
    # Whole vectors of inputs and results lie where the hardware counts tiles; nothing is copied.
    text = """kernel gemm { in A : s8[8, 64]  const B : s8[64, 32]  local C : s32[8, 32]
      out Y : s8[8, 32]
      C[i, j] += s32(A[i, k]) * s32(B[k, j])
      Y[i, j] = s8(C[i, j]) }"""
    (kernel,) = parse_module(text).kernels
    lowered = computed(kernel, "vta").result.lowered
    assert [a.name for a in lowered.arrays if a.name.startswith(("A_", "Y_"))] == []
    (shorter,) = parse_module(text.replace("64", "60")).kernels
    assert "A_packed" in [a.name for a in computed(shorter, "vta").result.lowered.arrays]


@pytest.mark.parametrize(("machine", "told"), [("vta", False), ("gemm16", True)])
def test_scalar_c_is_proposed_where_a_description_can_have_it(machine: str, told: bool) -> None:
    text = "kernel k { in A : f64[9]  out B : f64[9]  B[i] = exp(A[i]) }"
    (kernel,) = parse_module(text).kernels
    with pytest.raises(IsamapError) as caught:
        make_report(kernel, load_hardware(machine), Options(prove=False))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E721"
    assert ("extends: portable_c" in (diagnostic.hint or "")) == told


@pytest.mark.parametrize("machine", ["gemmini", "vta"])
def test_scratchpads_may_be_as_large_as_memories(machine: str) -> None:
    # What places and simulates follows the rows that are used, not all that there are.
    shipped = load_hardware(machine)
    pads = tuple(replace(s, size=2**60) if s.kind == "scratchpad" else s for s in shipped.storages)
    kernel = next(iter((SUMS if machine == "gemmini" else BYTES).values()))
    large = make_report(kernel, replace(shipped, storages=pads), Options(prove=False))
    assert large.check is not None
    assert large.check.ok, large.check


@pytest.mark.parametrize("name", ["gemm", "bias", "pooling", "addition"])
def test_a_search_leaves_what_computes_in_other_registers_as_it_is(name: str) -> None:
    """Nothing brings from memory what such a statement takes."""
    machine, kernel = load_hardware("nvdla"), bind_extents(LAYERS[name])
    choice = choose(kernel, machine, enumerate_each(kernel, machine))
    own = space(machine, kernel, choice.starts, Producers(machine), like=choice.schedule)
    assert own.build(own.first) == choice.schedule
    built = 0
    for choice_ in own.choices:
        for option in range(len(choice_.options)):
            with suppress(ScheduleError):
                own.build({**own.first, choice_.name: option})
                built += 1
    assert built > len(own.choices)
