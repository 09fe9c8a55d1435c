"""A written schedule stands in place of the first one; what it leaves out the rules choose."""

from dataclasses import replace
from pathlib import Path

import pytest

import isamap
from isamap.diagnostics import NoMappingError, ScheduleError, Source
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.pipeline.sequences import Sequences
from isamap.schedule.reader import parse_schedule
from isamap.schedule.schedule import Level
from isamap.schedule.written import WrittenSchedule
from isamap.text.load import parse_module
from isamap_search.budget import Budget

MACHINE = isamap.load_hardware("x86_avx512")


def kernel(text: str) -> isamap.Kernel:
    return parse_module(text, "t.ir").kernels[0]


MM = kernel(
    """kernel mm(M = 61, N = 40, K = 24) {
  in  A : f32[M, K]
  in  B : f32[K, N]
  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}"""
)
RELU = kernel(
    """kernel relu(M = 64, N = 64, K = 24) {
  in  A : f32[M, K]
  in  B : f32[K, N]
  local T : f32[M, N]
  out C : f32[M, N]
  T[m, n] += A[m, k] * B[k, n]
  C[m, n] = max(T[m, n], 0)
}"""
)


def written(text: str) -> WrittenSchedule:
    return parse_schedule(Source("x.schedule", text))


def mapped(own: isamap.Kernel, text: str, **options: object) -> Result:
    return map_kernel(own, MACHINE, Options(schedule=written(text), **options))  # type: ignore[arg-type]


def test_nothing_said_is_the_first_schedule() -> None:
    first = map_kernel(RELU, MACHINE)
    same = mapped(RELU, "schedule relu {\n}")
    assert same.schedule == first.schedule
    assert same.source == first.source


def test_loops_alone_leave_the_rest_to_the_rules() -> None:
    first = map_kernel(MM, MACHINE)
    result = mapped(MM, "schedule mm {\n C { loops m/16 parallel, n/32, m/4, k/1 }\n}")
    (own,) = result.schedule.statements
    assert own.levels == (Level("m", 16, True), Level("n", 32), Level("m", 4), Level("k", 1))
    assert own.mapping == first.schedule.statements[0].mapping
    assert own.operands == first.schedule.statements[0].operands


def test_what_is_written_is_run_checked_and_proved() -> None:
    text = """schedule mm {
      C {
        instruction vfmadd_f32
        axes i <- [m, n]
        loops n/40, m/8, k/12, m/4, n/20, k/2
        operands A packed, B packed
      }
    }"""
    report = make_report(MM, MACHINE, Options(schedule=written(text)))
    (own,) = report.result.schedule.statements
    assert set(own.operands) == {"packed"}
    assert own.levels[2] == Level("k", 12)
    assert report.result.statements[0].why == "as x.schedule:3:9 says"
    assert report.check is not None
    assert report.check.ok
    assert report.certificate is not None
    assert report.certificate.verdict != "refuted"


def test_statement_without_a_block_still_joins_by_the_rules() -> None:
    result = mapped(RELU, "schedule relu {\n T { loops m/4, n/32, k/1 }\n}")
    root, follower = result.schedule.statements
    assert root.levels == (Level("m", 4), Level("n", 32), Level("k", 1))
    assert follower.within == 0


def test_a_reduction_in_parts_is_not_put_together_for_a_follower() -> None:
    """The rules would do the reduction in one piece; what is written is not changed."""
    result = mapped(RELU, "schedule relu {\n T { loops k/8, m/4, n/32, k/1 }\n}")
    root, follower = result.schedule.statements
    assert root.levels[0] == Level("k", 8)
    assert follower.within is None


def test_loops_of_its_own_keep_a_statement_apart() -> None:
    result = mapped(RELU, "schedule relu {\n C { loops n/16 }\n}")
    assert result.schedule.fused == {}
    assert result.schedule.rounds == {}
    assert result.schedule.statements[1].levels == (Level("n", 16),)


def test_registers_and_rounds_can_be_asked_for() -> None:
    registers = mapped(RELU, "schedule relu {\n C { within T }\n}")
    assert registers.schedule.fused == {1: 0}
    text = """schedule relu {
      T { loops m/8, m/4, n/32, k/1 }
      C {
        loops m/8, m/1, n/16
        along T
      }
    }"""
    rounds = make_report(RELU, MACHINE, Options(schedule=written(text)))
    assert rounds.result.schedule.rounds == {0: (1,)}
    assert rounds.check is not None
    assert rounds.check.ok


def test_a_name_of_the_report_is_understood() -> None:
    """A product that is added is two instructions to the report, of which one is mapped to."""
    result = mapped(MM, "schedule mm {\n C { instruction vmul_f32 + vadd_f32 }\n}")
    assert result.schedule.statements[0].mapping.matching.needle.name == "vadd_f32"


def test_a_kernel_is_rewritten_as_it_is_said() -> None:
    text = (Path(__file__).parents[1] / "cli" / "golden" / "chain.ir").read_text(encoding="utf-8")
    own, machine = kernel(text), isamap.load_hardware("gemm16")
    first = map_kernel(own, machine)
    assert len(first.rewritings) > 1
    saved = schedule_text(first)
    again = map_kernel(own, machine, Options(schedule=written(saved)))
    assert [r.rule for r in again.rewritings] == [r.rule for r in first.rewritings]
    assert again.mapped == first.mapped
    bare = "\n".join(line for line in saved.splitlines() if "rewrite" not in line)
    with pytest.raises((NoMappingError, ScheduleError)):
        map_kernel(own, machine, Options(schedule=written(bare)))
    with pytest.raises(ScheduleError) as caught:
        map_kernel(own, machine, Options(schedule=written(saved), rewrite=()))
    assert caught.value.diagnostics[0].code == "E417"


@pytest.mark.parametrize("statement", ["C[i, j] = min(max(T[i, j] + bias[j], 0), 6)", ""])
def test_statements_are_computed_together_as_it_is_said(statement: str) -> None:
    """Two as one; and one, whose reduction begins with a value that the instruction takes."""
    target = "T" if statement else "C"
    more = "in bias : f32[N]  local T : f32[M, N]" if statement else ""
    own = kernel(
        f"""kernel gemm(M = 20, N = 13, K = 7) {{
          in A : f32[M, K]  in B : f32[K, N]  {more}
          out C : f32[M, N]
          {target}[i, j] += A[i, k] * B[k, j]
          {statement}
        }}"""
    )
    machine = isamap.load_hardware(str(Path(__file__).parents[1] / "together" / "fused.yaml"))
    first = map_kernel(own, machine)
    text = schedule_text(first)
    assert "together" in text
    again = map_kernel(own, machine, Options(schedule=written(text)))
    assert again.mapped == first.mapped
    assert again.schedule == first.schedule
    assert again.lowered == first.lowered
    assert [s.covers for s in again.statements] == [s.covers for s in first.statements]


def test_a_search_begins_with_what_is_written(tmp_path: Path) -> None:
    text = "schedule mm {\n C { loops m/4, n/16, k/1 }\n}"
    search = replace(Options().search, folder=tmp_path)
    options = Options(schedule=written(text), tune=Budget(trials=1), simulate=True, search=search)
    result = map_kernel(MM, MACHINE, options)
    assert result.tuning is not None
    assert result.tuning.first is not None
    assert result.schedule.statements[0].levels[0] == Level("m", 4)
    more = map_kernel(MM, MACHINE, replace(options, tune=Budget(trials=8)))
    assert more.tuning is not None
    assert more.tuning.first == result.tuning.first
    # The rules know better than one row of results in flight.
    assert more.tuning.best is not None
    assert more.tuning.best < result.tuning.first


def test_a_found_schedule_is_had_again_without_the_search() -> None:
    found = map_kernel(MM, MACHINE, Options(tune=Budget(trials=8), simulate=True))
    again = map_kernel(MM, MACHINE, Options(schedule=written(isamap.schedule_text(found))))
    assert again.schedule == found.schedule
    assert again.c == found.c


def test_each_mapping_is_named_by_its_own_instructions_and_found_by_that_name() -> None:
    own = kernel(
        """kernel narrow(H = 8, K = 11) {
  in  R : s8[H, K]
  in  S : f32[H, K]
  out Y : s8[H, K]
  Y[h, k] = sat[s8](S[h, k] + f32(R[h, k]))
}"""
    )
    sequences = Sequences(own, MACHINE)
    (statement,) = map_kernel(own, MACHINE).statements
    mappings = [m for m in statement.mappings if m.matching.needle.name == "vstore_xmm_s8"]
    names = {(m.tile["h"], m.tile["k"]): sequences.name(m) for m in mappings}
    short = "vmaskloadcvt_f32_s8 + vadd_f32 + vsat_f32_s8 + vstore_xmm_s8"
    assert names[4, 4] == short.replace("vmaskload", "vload")
    assert names[1, 11] == short
    found = mapped(own, f"schedule narrow {{ Y {{\n instruction {short}\n }} }}")
    used = found.schedule.statements[0].mapping
    assert sequences.name(used) == short
