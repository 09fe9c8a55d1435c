"""Journals of which some lines cannot be read: the others keep their meaning.

An entry of Optuna's journal names a study or a trial by how many were begun before it.  So a line
that cannot be read must not be left out where it began one: something that begins one stands for
it, and what later lines say of that holds.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from isamap.diagnostics import Diagnostic, Source, Span

Entry: TypeAlias = dict[str, Any]
"""A line of a journal."""

_CREATE_STUDY, _STUDY_ATTRIBUTE, _CREATE_TRIAL = 0, 3, 4

NOTHING: Entry = {
    "op_code": _STUDY_ATTRIBUTE,
    "worker_id": "",
    "study_id": -1,
    "system_attr": {"": 0},
}
"""An entry that changes nothing: it is about no study."""

_TRIAL: Entry = {"op_code": _CREATE_TRIAL, "worker_id": "", "study_id": 0, "datetime_start": None}


class _Given(BaseJournalBackend):
    """A journal of entries that are given one by one."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def read_logs(self, log_number_from: int) -> Iterator[Entry]:
        yield from self.entries[log_number_from:]

    def append_logs(self, logs: list[Entry]) -> None:
        raise AssertionError("nothing is written there")


def instead(lines: Sequence[bytes], name: str, objectives: int) -> dict[int, Entry]:
    """Return what stands for the lines of a journal that cannot be read, by their numbers from 0.

    Where the line that began a study cannot be read, it is taken to be the one called ``name``, of
    so many objectives.  ValueError if there are lines, and none of them is an entry.
    """
    entries = [_parsed(line) for line in lines]
    directions = [1] * objectives
    stand = {number: NOTHING for number, entry in enumerate(entries) if entry is None}
    while (lacking := _replayed(entries, stand)) is not None:
        # The last one that may have begun it: what others began before has its number.
        number = max(n for n, entry in stand.items() if entry is NOTHING and n < lacking[0])
        if lacking[1] == "trial_id":
            stand[number] = _TRIAL
            continue
        own = {"op_code": _CREATE_STUDY, "worker_id": "", "directions": directions}
        stand[number] = {**own, "study_name": name}
        name = f"{name} {number}"
    if len(stand) == len(lines) > 0:
        raise ValueError("no entry of a journal")
    return stand


def _parsed(line: bytes) -> Entry | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _replayed(entries: Sequence[Entry | None], stand: dict[int, Entry]) -> tuple[int, str] | None:
    """Return the number of the first entry that names what nobody began, and as what; or None.

    Only what an entry for which something stands may have begun is looked for.  Entries that Optuna
    does not understand are added to ``stand``.
    """
    given = _Given()
    storage = JournalStorage(given)
    begun = {"study_id": 0, "trial_id": 0}
    open_ = 0
    for number, own in enumerate(entries):
        entry = stand.get(number) or own
        assert entry is not None, "something stands for what is no entry"
        for key, count in begun.items() if open_ else ():
            named = entry.get(key)
            if isinstance(named, int) and named >= count:
                return number, key
        given.entries.append(entry)
        try:
            storage.get_all_studies()
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
            given.entries[-1] = stand[number] = entry = NOTHING
        open_ += entry is NOTHING
        begun["study_id"] += entry["op_code"] == _CREATE_STUDY
        begun["trial_id"] += entry["op_code"] == _CREATE_TRIAL
    return None


def warnings(path: Path, lines: Sequence[bytes], stand: Mapping[int, Entry]) -> list[Diagnostic]:
    """Return what is told of lines that cannot be read, one warning for each."""
    found = []
    for number in sorted(stand):
        text = lines[number][:80].decode("utf-8", "replace")
        text = "".join(char if char.isprintable() else "\ufffd" for char in text)
        source = Source(str(path), text, number + 1)
        span = Span(source, number + 1, 1, number + 1, max(2, len(text) + 1))
        message = "this line of the study cannot be read: the others are kept"
        hint = "what it said is lost; a trial that lacks it is tried again or counts for nothing"
        found.append(Diagnostic("E740", message, span, severity="warning", hint=hint))
    return found
