"""What a search did, as text: how many schedules, how the best compares, where it is kept."""

from isamap.cli.tables import duration, short, table, wrap
from isamap.pipeline.correlation import LEAST
from isamap.pipeline.result import FrontRow, Limits, Tuning

_UNITS = {"size": "bytes", "memory": "bytes"}


def tuning_lines(tuning: Tuning | None) -> list[str]:
    """Return the lines of a report about a search; none without one."""
    if tuning is None:
        return []
    judged = "measured" if tuning.measured else "estimated"
    counts = [f"{tuning.failed} failed"]
    counts += [f"{tuning.dropped} ended early"] if tuning.dropped else []
    counts += [f"{tuning.others} known from before or from others"] if tuning.others else []
    text = (
        f"tuning    {tuning.trials} schedules {judged}, {', '.join(counts)}: "
        f"{_score(tuning, tuning.first)} -> {_score(tuning, tuning.best)}"
    )
    lines = _lines(text + (", interrupted" if tuning.interrupted else ""))
    if tuning.measured and not tuning.interrupted and tuning.best is not None:
        lines += _lines(" " * 10 + _beside(tuning))
    if tuning.changes:
        lines += _lines(" " * 10 + f"unlike the first schedule: {', '.join(tuning.changes)}")
    if tuning.compared:
        lines += _lines(" " * 10 + _correlation(tuning))
    if tuning.learned:
        lines += _lines(" " * 10 + f"learned model: {tuning.learned}")
    if tuning.place not in ("", "memory"):
        lines += _lines(" " * 10 + f"study {tuning.study} ({tuning.sampler}) in {tuning.place}")
    if tuning.records is not None:
        lines += _lines(" " * 10 + f"records in {tuning.records}")
    if tuning.limits:
        lines += _limits(tuning.limits)
    return lines + front_lines(tuning)


def front_lines(tuning: Tuning) -> list[str]:
    """Return the Pareto front as a table; nothing for one objective."""
    if not tuning.front:
        return []
    headings = [_heading(tuning, objective) for objective in tuning.objectives]
    rows = [_row(tuning, row) for row in tuning.front]
    right = frozenset(range(len(headings)))
    return ["", "front", *table([*headings, "unlike the first schedule"], rows, right)]


def _limits(limits: Limits) -> list[str]:
    """Return what the analytical model says of the best."""
    text = (
        f"bound     {short(limits.bound)} cycles ({limits.by}); the best tiling on the model is "
        f"{limits.gap:.1%} above"
    )
    if limits.reached is not None:
        text += f", the schedule reaches {limits.reached:.0%} of the bound"
        text += " at the description's clock"
    lines = _lines(text)
    if limits.optimum and limits.lowest:
        # Equal sums that were added in another order may differ by a rounding.
        above = max(0.0, limits.optimum / limits.lowest - 1)
        lines += _lines(
            " " * 10 + f"chains of tiles, nothing hidden: {short(limits.optimum)} cycles, "
            f"proved, {above:.1%} above what none undercuts"
        )
    return lines


def _beside(tuning: Tuning) -> str:
    if tuning.ratio is None or tuning.spread is None:
        return "the first schedule is the best of them" if tuning.first else "the first fails"
    low, high = tuning.spread
    text = (
        f"by turns {tuning.ratio:.3f} of the first schedule's time "
        f"({low:.3f} to {high:.3f}, {tuning.rounds} rounds)"
    )
    return text if tuning.proved else f"{text}, which may be chance"


def _correlation(tuning: Tuning) -> str:
    """Return how well the model orders what was measured."""
    count = f"{tuning.compared} measured schedule{'s' * (tuning.compared != 1)}"
    if tuning.correlation is not None:
        return f"rank correlation of estimates and times {tuning.correlation:.2f}, of {count}"
    if tuning.compared < LEAST:
        return f"no rank correlation of estimates and times: {count}"
    return f"no rank correlation: all estimates or all times are equal, of {count}"


def _heading(tuning: Tuning, objective: str) -> str:
    if objective == "time":
        return "time/first" if tuning.measured else "cycles"
    if objective == "size" and not tuning.measured:
        return "calls"
    return f"{objective} ({_UNITS[objective]})"


def _row(tuning: Tuning, row: FrontRow) -> list[str]:
    cells = []
    for objective, value in zip(tuning.objectives, row.values, strict=True):
        is_ratio = objective == "time" and tuning.measured
        cells.append(f"{value:.3f}" if is_ratio else short(value))
    return [*cells, ", ".join(row.changes) or "nothing"]


def _score(tuning: Tuning, score: float | None) -> str:
    if score is None:
        return "none"
    is_time = tuning.measured and not tuning.counted
    return duration(score) if is_time else f"{short(score)} cycles"


def _lines(text: str) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()))
    return wrap(text.strip(), indent, " " * 10)
