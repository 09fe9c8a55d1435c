"""The report of ``isamap map`` as text: mappings, choice, schedule, estimate, result."""

from collections.abc import Mapping, Sequence

import click

from isamap.cli.mappings import Tried, mapping_lines
from isamap.cli.tables import duration, listed, repeats, short, size, wrap
from isamap.cli.tuned import tuning_lines
from isamap.cli.verdicts import short_text
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.printer import print_statement
from isamap.mapping.matching import Enumeration
from isamap.pipeline.offered import Offered
from isamap.pipeline.result import Report, Result, StatementResult
from isamap.pipeline.schedule_text import kernel_lines
from isamap.pipeline.sequences import Sequences
from isamap.pipeline.sizes import iterations
from isamap.rewrite.rule import Rewriting
from isamap.schedule.buffers import buffer_texts
from isamap.schedule.calls import calls_text
from isamap.schedule.past import past_texts
from isamap.schedule.printed import early_text, level_text, operand_treatments
from isamap.schedule.schedule import StatementSchedule


def report_lines(report: Report, everything: bool) -> list[str]:
    """Return the report; ``everything`` lists all mappings instead of the best few."""
    result = report.result
    lines = head_lines(result.kernel, result.accelerator)
    for before, rewriting in result.rewritten:
        lines += ["", *rewriting_lines(before, rewriting)]
    sequences = Sequences(result.mapped, result.accelerator)
    for statement in result.statements:
        lines += ["", *_statement_lines(report, statement, sequences, everything)]
    lines += ["", *schedule_lines(result, sequences)]
    lines += ["", *_estimate_lines(report), *_prepared_lines(report), *_placement_lines(report)]
    lines += _served_lines(report)
    lines += tuning_lines(result.tuning)
    return [*lines, *_result_lines(report)]


def head_lines(kernel: Kernel, hardware: Accelerator) -> list[str]:
    """Return which kernel is mapped on to which machine."""
    sizes = ", ".join(
        e.name if e.value is None else f"{e.name} = {e.value}" for e in kernel.extents
    )
    title = f": {hardware.title}" if hardware.title else ""
    text = f"{kernel.name}({sizes}) on {hardware.name}{title}"
    return [click.style(line, bold=True) for line in wrap(text, "", "    ")]


def rewriting_lines(before: Statement, rewriting: Rewriting) -> list[str]:
    """Return what was rewritten, how, and what was proved for it."""
    lines = wrap(f"rewritten by {rewriting.rule}: {print_statement(before).strip()}", "", "    ")
    lines += wrap(rewriting.note, "  ", "    ")
    if claims := "; ".join(dict.fromkeys(lemma.claim for lemma in rewriting.lemmas)):
        lines += wrap(f"proved: {claims}", "  ", "    ")
    return lines


def ways_lines(ways: Sequence[Offered], machine: Accelerator, everything: bool) -> list[str]:
    """Return rewritings; of those of one statement by one rule the first, the others in a line."""
    lines: list[str] = []
    told: set[object] = set()
    for way in ways:
        key = way.before, way.rewriting.rule
        if key not in told or everything:
            lines += ["", *offered_lines(way, machine, everything)]
        else:
            found = "; ".join(_in_short(one) for one in way.enumerations)
            lines += wrap(f"or: {found}", "  ", "    ")
        told.add(key)
    return lines


def _in_short(found: Enumeration) -> str:
    names = dict.fromkeys(m.matching.needle.name for m in found.mappings)
    more = ", ..." if len(names) > 1 else ""
    count = f"{len(found.mappings)} mapping{'s' * (len(found.mappings) != 1)}"
    return f"{print_statement(found.statement).strip()} ({next(iter(names))}{more}: {count})"


def offered_lines(way: Offered, machine: Accelerator, everything: bool) -> list[str]:
    """Return a rewriting, and the mappings of each statement that it leads to."""
    lines = rewriting_lines(way.before, way.rewriting)
    sequences = Sequences(way.rewriting.kernel, machine)
    for found in way.enumerations:
        lines += wrap(print_statement(found.statement).strip(), "  ", "    ")
        lines += mapping_lines(found, sequences, {}, everything)
    return lines


def together_lines(
    names: Sequence[str], found: Enumeration, sequences: Sequences, everything: bool
) -> list[str]:
    """Return the mappings of statements to instructions that compute them as one."""
    text = f"computed together: {', '.join(names[:-1])} and {names[-1]}"
    lines = wrap(text if len(names) > 1 else f"{names[0]} from its first value", "", "    ")
    lines += wrap(print_statement(found.statement).strip(), "", "    ")
    return [*lines, *mapping_lines(found, sequences, {}, everything)]


def _statement_lines(
    report: Report, statement: StatementResult, sequences: Sequences, everything: bool
) -> list[str]:
    lines = wrap(print_statement(statement.statement).strip(), "", "    ")
    if len(statement.covers) > 1:
        text = f"computed together: {', '.join(statement.covers[:-1])} and {statement.covers[-1]}"
        lines += wrap(text, "    ")
    number = report.result.statements.index(statement)
    tried = Tried.of(statement, report.result.schedule.statements[number].within is None)
    symbols = report.result.symbols
    lines += mapping_lines(statement.enumeration, sequences, symbols, everything, tried)
    lines += wrap(_chosen(report, statement, sequences), "    ")
    if statement.ahead:
        lines += wrap("depends on constants alone: computed once, ahead of all calls", "    ")
    for reason in _left_out(statement)[:3]:
        lines += wrap(f"left out: {reason}", "    ")
    return lines


def _chosen(report: Report, statement: StatementResult, sequences: Sequences) -> str:
    """Return which mapping was chosen and why, or that none is needed."""
    result = report.result
    own = result.schedule.statements[result.statements.index(statement)]
    if own.within is not None:
        (there,) = (o for o in result.lowered.in_registers if o.statement == statement.name)
        by = f" by {' + '.join(there.by)}" if there.by else ""
        where = f"where each result of {there.within} is in a register"
        return f"computed{by} {where}: no loops of its own"
    name = sequences.name(statement.mappings[statement.chosen])
    return f"chosen: {name}, {statement.why}"


def _left_out(statement: StatementResult) -> list[str]:
    """Return the instructions that could not be scheduled in any way tried, and why."""
    names = [m.matching.needle.name for m in statement.mappings]
    possible = {names[s.mapping] for s in statement.scheduled if s.cycles is not None}
    reasons = {names[s.mapping]: s.reason for s in statement.scheduled if s.cycles is None}
    return [f"{name}, {reason}" for name, reason in reasons.items() if name not in possible]


def schedule_lines(result: Result, sequences: Sequences | None = None) -> list[str]:
    """Return what becomes of the statements and how calls are ordered, as it is written, and the
    schedule of each.
    """
    sequences = sequences or Sequences(result.mapped, result.accelerator)
    lines = [click.style("schedule", bold=True)]
    calls = calls_text(result.schedule)
    for line in (*kernel_lines(result), *[calls] * bool(calls)):
        lines += wrap(line, "  ", "    ")
    names = [statement.name for statement in result.statements]
    there = {own.statement: own for own in result.lowered.in_registers}
    for name, schedule in zip(names, result.schedule.statements, strict=True):
        if name in there:
            by = f"{' + '.join(there[name].by)}, " if there[name].by else ""
            text = f"{name}: {by}in the registers of {there[name].within}"
            lines += wrap(text, "  ", "    ")
        else:
            along = None if schedule.along is None else names[schedule.along]
            lines += _schedule_lines(name, schedule, sequences, along)
    return lines


def _schedule_lines(
    name: str, schedule: StatementSchedule, sequences: Sequences, along: str | None
) -> list[str]:
    loops = [level_text(level) for level in schedule.levels]
    computed = sequences.name(schedule.mapping)
    text = f"{name}: {computed}, loops {', '.join(loops) or 'none'}"
    treatments = operand_treatments(schedule).items()
    treated = [f"{name} {how}" for name, how in treatments if how != "direct"]
    if treated:
        text += f"; {', '.join(treated)}"
    if schedule.early:
        text += f"; prefetches {', '.join(early_text(schedule, e) for e in schedule.early)}"
    if buffers := buffer_texts(schedule):
        text += f"; places in turn: {', '.join(buffers)}"
    if schedule.past:
        text += f"; loads {' and '.join(past_texts(schedule))} past the first cache"
    if schedule.bypass:
        text += "; results past the caches"
    if schedule.later:
        text += "; finished while the next results are computed"
    if along is not None:
        text += f"; in the rounds of {along}"
    return wrap(text, "  ", "    ")


def _estimate_lines(report: Report) -> list[str]:
    result = report.result
    estimate = result.estimate
    seconds = estimate.cycles / float(result.accelerator.clock)
    shared = any(level.parallel for own in result.schedule.statements for level in own.levels)
    gigahertz = float(result.accelerator.clock) / 1e9
    text = (
        f"estimate  {short(estimate.cycles)} cycles{_cores(result.threads) * shared}, "
        f"{duration(seconds)} at {gigahertz:.3g} GHz, bound by {estimate.bound_by}"
    )
    if copies := estimate.parts.get("copies", 0.0):
        text += f", with {short(copies)} for copies"
    if result.symbols:
        text += f", for {_sizes(result.symbols)}"
    return wrap(text, "", " " * 10)


def _cores(threads: int) -> str:
    return " on one core" if threads == 1 else f" on {threads} cores"


def _prepared_lines(report: Report) -> list[str]:
    result = report.result
    if (found := result.preparation) is None:
        return []
    seconds = found.estimate.cycles / float(result.accelerator.clock)
    text = (
        f"prepared  {size(found.bytes)} of constants, once ahead of all calls, "
        f"in an estimated {duration(seconds)}"
    )
    return wrap(text, "", " " * 10)


def _placement_lines(report: Report) -> list[str]:
    """Return how scratchpads are filled, a line for each that is used."""
    lines: list[str] = []
    for n, own in enumerate(report.result.placements):
        text = (
            f"{own.storage} {size(own.used)} of {size(own.size)}, "
            f"in {own.banks} bank{'s' * (own.banks != 1)}"
        )
        if own.clashes:
            least = "no placement has fewer" if own.least else "not proved to be the least"
            count = f"{own.clashes} pair{'s' * (own.clashes != 1)}"
            text += f"; {count} of operands of one call in one bank, {least}"
        lines += wrap(("          " if n else "placed    ") + text, "", " " * 12)
    return lines


def _served_lines(report: Report) -> list[str]:
    """Return what computes the calls of a served machine, a line for each distinct one."""
    lines: list[str] = []
    for n, own in enumerate(report.result.services):
        sizes = ", ".join(
            f"{name}={'?' if value is None else value}" for name, value in own.extents
        )
        text = f"{own.instruction}({sizes}) by {', '.join(own.used)}"
        lines += wrap(("          " if n else "served    ") + text, "", " " * 12)
    return lines


def _result_lines(report: Report) -> list[str]:
    return [
        *wrap(f"run       {_run_text(report)}", "", " " * 10),
        *_predicted_lines(report),
        *wrap(f"check     {_check_text(report)}", "", " " * 10),
        *_proof_lines(report),
    ]


def _proof_lines(report: Report) -> list[str]:
    if report.certificate is None:
        return []
    return wrap(f"proof     {short_text(report.certificate)}", "", " " * 10)


def _run_text(report: Report) -> str:
    execution, kernel = report.execution, report.result.kernel
    sizes = f" at {_sizes(execution.symbols)}" if execution.symbols else ""
    match execution.way:
        case "native":
            assert execution.seconds is not None
            rate = iterations(kernel, execution.symbols or {}) / execution.seconds
            return (
                f"compiled with {execution.compiler}, ran natively{sizes} in "
                f"{duration(execution.seconds)}, {repeats(execution.samples, duration)} "
                f"({short(rate)} iterations/s)"
            )
        case "program":
            return f"compiled with {execution.compiler}, ran as a program{sizes}"
        case "measured":
            assert execution.cycles is not None
            return (
                f"compiled with {execution.compiler}, ran by the description's measuring "
                f"command{sizes}: {short(execution.cycles)} cycles, "
                f"{repeats(execution.samples, short)}"
            )
        case "simulated":
            cycles = "" if execution.cycles is None else f", {short(execution.cycles)} cycles"
            if execution.conflicts:
                calls = "call" if execution.conflicts == 1 else "calls"
                cycles += f", {short(execution.conflicts)} {calls} with two operands in one bank"
            return f"simulated{sizes}{cycles}, because {_reason(report)}"
        case "failed":
            return click.style(f"failed{sizes}: {_reason(report)}", fg="red")
        case "none":
            return f"not run: {_reason(report)}"


def _predicted_lines(report: Report) -> list[str]:
    """Return the estimate and the bound beside what a run took."""
    if (found := report.prediction) is None:
        return []
    word = "simulated" if report.execution.way == "simulated" else "measured"
    at = ""
    if report.execution.way == "native":
        at = f" at {float(report.result.accelerator.clock) / 1e9:.3g} GHz"
    times = found.estimate / found.measured
    text = f"predicted {short(found.estimate)} cycles"
    if found.left_out:
        text += f" without {listed(found.left_out)}, which take no simulated time"
        text += f" ({short(found.whole)} with them)"
    text += f", {times:.3g} times the "
    text += f"{short(found.measured)} {word}{at}"
    if found.bound is not None:
        reached = found.bound / found.measured
        text += f"; bound {short(found.bound)} ({found.by}), {reached:.0%} of those {word}"
    return wrap(text, "", " " * 10)


def _reason(report: Report) -> str:
    hint = report.execution.hint
    return report.execution.reason + (f" ({hint})" if hint else "")


def _check_text(report: Report) -> str:
    if (check := report.check) is None:
        return f"not checked: {report.unchecked}"
    if check.total == 1:
        count = "its one output"
    elif check.outputs == check.total:
        count = f"all {check.total} outputs"
    else:
        count = f"{check.outputs} of {check.total} outputs (corners, tails and random ones)"
    if check.ok:
        verb = "agrees" if check.total == 1 else "agree"
        return click.style(f"{count} {verb} with the interpreter, {check.text}", fg="green")
    return click.style(f"{count} compared: {check.text}", fg="red")


def _sizes(symbols: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in symbols.items())
