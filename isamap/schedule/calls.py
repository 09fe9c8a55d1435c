"""How a schedule orders the calls of all statements, in words."""

from collections.abc import Sequence

from isamap.diagnostics import Diagnostic
from isamap.hw.accelerator import Accelerator
from isamap.schedule.reader import BESIDE, BROUGHT, said_twice
from isamap.schedule.schedule import Schedule
from isamap.schedule.written import Word


def calls_text(schedule: Schedule) -> str:
    """Return how calls are ordered: ``calls abreast, again``; nothing where it says nothing."""
    said = ((BESIDE, schedule.abreast), (BROUGHT, schedule.once))
    words = [pair[not wanted] for pair, wanted in said if wanted is not None]
    return f"calls {', '.join(words)}" if words else ""


def resolve_calls(
    words: Sequence[Word], accelerator: Accelerator, faults: list[Diagnostic]
) -> tuple[bool | None, bool | None]:
    """Return whether calls are to be abreast, and what stays brought once; faults are added."""
    twice: list[Diagnostic] = []
    abreast, once = _one_of(BESIDE, words, twice), _one_of(BROUGHT, words, twice)
    if twice:
        faults += twice
        return None, None
    if abreast is not None and accelerator.queues is None:
        text = f"units of {accelerator.name} are no queues: calls keep their order"
        hint = "a description says with 'queues' that they are"
        faults.append(Diagnostic("E415", text, abreast.span, hint=hint))
    if once is not None and accelerator.is_reordered:
        text = f"a compiler takes out of loops on {accelerator.name} what does not change in them"
        faults.append(Diagnostic("E415", text, once.span))
    return _is_first(BESIDE, abreast), _is_first(BROUGHT, once)


def _one_of(pair: tuple[str, str], words: Sequence[Word], faults: list[Diagnostic]) -> Word | None:
    """Return the word that is one of two; a fault is added where there are more."""
    found = [word for word in words if word.text in pair]
    for word in found[1:]:
        is_alike = word.text == found[0].text
        both = f"calls are not both {' and '.join(pair)}"
        text = f"'{word.text}' is said twice" if is_alike else both
        faults.append(said_twice(text, word, found[0]))
    return found[0] if found else None


def _is_first(pair: tuple[str, str], word: Word | None) -> bool | None:
    return None if word is None else word.text == pair[0]
