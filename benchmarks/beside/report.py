"""Tables of what was measured, in Markdown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from beside.cases import MEANING
from beside.goals import judged
from beside.peers import OWN
from beside.record import Record, Timing, geometric_mean

UNITS = {"G": "G/s", "GB": "GB/s"}


def summary(records: Mapping[str, Sequence[Record]], threads: int) -> list[str]:
    """Return one line for each family."""
    lines = [
        "| family | cases | isamap / best peer: mean | least | most "
        "| % of bound: isamap | best peer | bound / best peer | best peers | goal |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for family, own in records.items():
        ratios = [r.ratio for r in own if r.ratio is not None]
        best = [(r, r.best) for r in own]
        shares = [_share(r, r.timing(OWN)) for r in own], [_share(r, t) for r, t in best]
        wins = Counter(t.peer for _, t in best if t is not None)
        cells = [
            family,
            f"{len(ratios)} of {len(own)}" if len(ratios) < len(own) else f"{len(own)}",
            *(_figure(value) for value in (geometric_mean(ratios), *_ends(ratios))),
            *(_percent(geometric_mean(v for v in values if v)) for values in shares),
            _figure(geometric_mean(r.room for r in own if r.room)),
            ", ".join(f"{peer} {count}" for peer, count in wins.most_common()) or "-",
            judged(family, own, threads),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def details(family: str, records: Sequence[Record]) -> list[str]:
    """Return the table of the cases of a family, with what it is."""
    peers = dict.fromkeys(t.peer for r in records for t in r.timings)
    for record in records:
        peers.update(dict.fromkeys(record.absent))
    others = [peer for peer in peers if peer != OWN]
    unit = UNITS[records[0].unit]
    lines = [
        f"{family}: {MEANING[family.partition('_')[0]]}. Rates in {unit}.",
        "",
        f"| case | ratio | {OWN} | % of bound | bound / best | " + " | ".join(others) + " |",
        "|---" * (5 + len(others)) + "|",
    ]
    for record in records:
        timing = record.timing(OWN)
        cells = [
            record.title.partition(" ")[2],
            _figure(record.ratio),
            _cell(record, OWN),
            _percent(_share(record, timing)),
            _figure(record.room),
            *(_cell(record, peer) for peer in others),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def notes(records: Mapping[str, Sequence[Record]]) -> list[str]:
    """Return what was wrong, and which peers failed at what, a line each."""
    lines = []
    for record in (record for own in records.values() for record in own):
        lines += [
            f"- {record.title}, {t.peer}: WRONG: {t.wrong}" for t in record.timings if t.wrong
        ]
        lines += [f"- {record.title}, {peer}: {why}" for peer, why in record.absent.items() if why]
    return lines


def put(path: Path, section: str, lines: Sequence[str]) -> None:
    """Write lines as a section of a file: between its marks if it has them, at its end if not."""
    begin, end = f"<!-- begin {section} -->", f"<!-- end {section} -->"
    text = path.read_text() if path.exists() else ""
    block = "\n".join([begin, "", *lines, "", end])
    before, found, rest = text.partition(begin)
    if not found:
        path.write_text(f"{text}\n{block}\n" if text else f"{block}\n")
        return
    _, closed, after = rest.partition(end)
    if not closed:
        raise ValueError(f"{path}: no {end!r} after {begin!r}")
    path.write_text(before + block + after)


def _cell(record: Record, peer: str) -> str:
    timing = next((t for t in record.timings if t.peer == peer), None)
    if timing is None:
        return "-"
    rate = f"{record.rate(timing):.4g}"
    return f"{rate} WRONG" if timing.wrong else rate


def _share(record: Record, timing: Timing | None) -> float | None:
    return None if timing is None else record.share(timing)


def _ends(values: Sequence[float]) -> tuple[float | None, float | None]:
    return min(values, default=None), max(values, default=None)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}"
