"""How calls are ordered is said in a schedule: by the rules, and by whoever writes one."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError, Source
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.lower.drafts import Drafts
from isamap.lower.lower import lower
from isamap.lower.printer import print_lowered
from isamap.pipeline.facts import report_facts
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report, Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.proof.evidence import Evidence
from isamap.proof.reduced import reduced
from isamap.schedule.calls import calls_text
from isamap.schedule.reader import parse_schedule
from isamap.schedule.written import WrittenSchedule
from isamap.text.load import parse_module
from isamap_search.budget import Budget
from tests.lower.test_unchanged import PRODUCT, still, writes

RESIDUAL = """kernel resid {
  in X : s8[64, 96]  in R : s8[64, 96]  out Y : s8[64, 96]
  Y[m, n] = sat[s8](s32(X[m, n]) + s32(R[m, n]))
}"""
SMALL = """format: 1
name: small
extends: gemmini
storages:
  acc: {kind: scratchpad, size: 4 KiB, alignment: 64}  # four tiles of sums
"""
VTA = {k.name: k for k in parse_module(Path("tests/explicit/bytes.ir").read_text()).kernels}


def only(text: str) -> Kernel:
    return parse_module(text).kernels[0]


def read(text: str) -> WrittenSchedule:
    return parse_schedule(Source("x.schedule", text))


def computed(kernel: Kernel, machine: Accelerator, text: str | None = None) -> Report:
    schedule = None if text is None else read(text)
    found = make_report(kernel, machine, Options(schedule=schedule))
    assert found.check is not None, found.unchecked
    assert found.check.ok, found.check.text
    assert found.certificate is not None
    assert found.certificate.verdict != "refuted"
    return found


@cache
def ruled(name: str) -> Report:
    return computed(*subject(name))


def subject(name: str) -> tuple[Kernel, Accelerator]:
    if name == "resid":
        return only(RESIDUAL), load_hardware("gemmini")
    return VTA[name], load_hardware("vta")


def otherwise(result: Result, order: str) -> str:
    """Return the text of a schedule with its calls ordered otherwise."""
    text, line = schedule_text(result), calls_text(result.schedule)
    assert line
    assert text.count(line) == 1
    return text.replace(line, f"calls {order}")


@pytest.mark.parametrize(
    ("name", "line"),
    [("resid", "calls abreast"), ("depthwise", "calls abreast, once"), ("bias", "calls abreast")],
)
def test_the_schedule_says_how_calls_are_ordered(name: str, line: str) -> None:
    first = ruled(name).result
    text = schedule_text(first)
    assert text.splitlines()[2 if text[0] == "#" else 1].strip() == line
    again = map_kernel(first.kernel, first.accelerator, Options(schedule=read(text)))
    assert again.lowered == first.lowered
    assert again.c == first.c
    assert calls_text(again.schedule) == line
    assert schedule_text(again) == text


@pytest.mark.parametrize(
    ("name", "slow", "fast"),
    [
        ("resid", "following", "abreast"),
        ("depthwise", "following, once", "abreast, once"),
        ("depthwise", "abreast, again", "abreast, once"),
    ],
)
def test_other_orders_compute_the_same_in_other_times(name: str, slow: str, fast: str) -> None:
    kernel, machine = subject(name)
    first = ruled(name)
    one = computed(kernel, machine, otherwise(first.result, slow))
    other = computed(kernel, machine, otherwise(first.result, fast))
    assert calls_text(one.result.schedule) == f"calls {slow}"
    assert one.result.c != other.result.c or machine.toolchain is None
    assert other.result.lowered == first.result.lowered
    assert other.execution.cycles == first.execution.cycles
    assert one.execution.cycles is not None
    assert other.execution.cycles is not None
    assert one.execution.cycles > 1.01 * other.execution.cycles


def test_statements_that_the_rules_join_are_ordered_as_it_is_said() -> None:
    kernel, machine = subject("depthwise")
    ruled_ = ruled("depthwise").result.schedule
    text = "schedule depthwise { calls following }"
    found = map_kernel(kernel, machine, Options(schedule=read(text))).schedule
    assert found.fused == ruled_.fused != {}
    assert calls_text(found) == "calls following"


def test_an_order_that_makes_no_difference_is_not_printed(tmp_path: Path) -> None:
    kernel, machine = subject("resid")
    report = computed(kernel, machine, otherwise(ruled("resid").result, "abreast, once"))
    assert calls_text(report.result.schedule) == "calls abreast"
    facts = report_facts(report)
    assert facts["calls"] == {"abreast": True, "once": None}


def rows_of(m: int, order: str = "") -> str:
    """Return a schedule of a product by blocks of so many rows."""
    return f"schedule k {{\n  {order}\n  C {{ loops m/{m} }}\n}}"


def test_weights_are_written_as_often_as_it_is_said(tmp_path: Path) -> None:
    machine, kernel = still(tmp_path), only(PRODUCT.format(m=300, n=4, k=4))
    reports = [computed(kernel, machine, rows_of(4, f"calls {w}")) for w in ("once", "again")]
    assert [writes(one.result.lowered.body) for one in reports] == [1, 75]
    once, again = (one.execution.cycles for one in reports)
    assert once is not None
    assert again is not None
    assert again > 5 * once
    ruled = map_kernel(kernel, machine, Options(schedule=read(rows_of(4))))
    assert calls_text(ruled.schedule) == "calls once"
    assert ruled.lowered == reports[0].result.lowered


@pytest.mark.parametrize("word", ["once", "abreast"])
def test_what_has_no_room_is_refused_only_where_it_is_demanded(tmp_path: Path, word: str) -> None:
    if word == "once":
        machine, kernel = still(tmp_path, 1), only(PRODUCT.format(m=64, n=4, k=8))
        text, other = rows_of(4), "again"
    else:
        path = tmp_path / "small.yaml"
        path.write_text(SMALL)
        machine, kernel = load_hardware(str(path)), only(RESIDUAL)
        text = "schedule resid {\n\n  Y {\n    loops m/64, n/96\n    buffers none\n  }\n}"
        other = "following"
    first = map_kernel(kernel, machine, Options(schedule=read(text)))
    assert calls_text(first.schedule) == f"calls {other}"
    saved = schedule_text(first)
    assert map_kernel(kernel, machine, Options(schedule=read(saved))).lowered == first.lowered
    for wrong in (otherwise(first, word), text.replace("{\n", f"{{ calls {word}\n", 1)):
        with pytest.raises(ScheduleError) as caught:
            map_kernel(kernel, machine, Options(schedule=read(wrong)))
        (fault,) = caught.value.diagnostics
        assert fault.code == "E418"
        assert fault.span is not None
        assert wrong.splitlines()[fault.span.line - 1][fault.span.column - 1 :] == word


@pytest.mark.parametrize(
    ("word", "told"), [("abreast", True), ("following", True), ("once", False), ("again", False)]
)
def test_words_are_refused_where_they_mean_nothing(tmp_path: Path, word: str, told: bool) -> None:
    """Without queues nothing is abreast; without a compiler nothing is kept but by the schedule."""
    machine, kernel = still(tmp_path, queues=""), only(PRODUCT.format(m=8, n=4, k=4))
    schedule = read(f"schedule k {{ calls {word} }}")
    if not told:
        map_kernel(kernel, machine, Options(schedule=schedule))
        return
    with pytest.raises(ScheduleError) as caught:
        map_kernel(kernel, machine, Options(schedule=schedule))
    assert [d.code for d in caught.value.diagnostics] == ["E415"]


def test_a_statement_may_have_the_name() -> None:
    found = read(
        "schedule k {\n calls once,\n  following\n together calls, C\n calls { tile none }\n}"
    )
    assert [word.text for word in found.calls] == ["once", "following"]
    assert [block.name.text for block in found.statements] == ["calls"]


def test_what_statements_were_lowered_to_serves_every_order() -> None:
    first = ruled("depthwise").result
    kernel, machine, schedule = first.mapped, first.accelerator, first.schedule
    drafts = Drafts()
    for abreast in (True, False):
        for once in (False, True):
            other = replace(schedule, abreast=abreast, once=once)
            made = lower(kernel, machine, other, drafts=drafts)
            assert (made.abreast, made.once) == (abreast, once)
            draft = print_lowered(made).replace("'0", "")
            assert draft.split() == print_lowered(lower(kernel, machine, other)).split()


def test_a_part_of_a_schedule_is_changed_and_the_order_stays() -> None:
    schedule = replace(ruled("resid").result.schedule, abreast=False, once=True)
    (own,) = schedule.statements
    other = schedule.with_statement(0, replace(own, later=True))
    assert (other.abreast, other.once) == (False, True)


def test_a_search_keeps_the_written_order_or_leaves_it(tmp_path: Path) -> None:
    kernel, machine = subject("resid")
    text = otherwise(ruled("resid").result, "following")
    search = replace(Options().search, folder=tmp_path)
    options = Options(schedule=read(text), tune=Budget(trials=1), simulate=True, search=search)
    result = map_kernel(kernel, machine, options)
    assert result.schedule.abreast is False
    found = map_kernel(kernel, machine, replace(options, tune=Budget(trials=12)))
    assert found.tuning is not None
    assert "calls=rules" in found.tuning.changes
    assert found.schedule.abreast is True
    saved = schedule_text(found)
    again = map_kernel(kernel, machine, Options(schedule=read(saved)))
    assert again.lowered == found.lowered


def test_smaller_code_of_a_proof_is_in_the_same_order(tmp_path: Path) -> None:
    machine, kernel = still(tmp_path), only(PRODUCT.format(m=300, n=4, k=4))
    text = rows_of(4, "calls again")
    made = map_kernel(kernel, machine, Options(schedule=read(text)))
    evidence = Evidence(kernel, (), made.mapped, machine, made.schedule, made.lowered)
    ((smaller, _),) = reduced(evidence)
    assert smaller.schedule.once is False
    assert writes(smaller.lowered.body) == 2
