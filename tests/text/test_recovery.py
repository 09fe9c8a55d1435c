"""After an error of syntax the rest is still read: mutations are told where they are."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import Collector, IsamapError, Source
from isamap.text.load import parse_module
from isamap.text.parse import parse_text
from isamap.text.tables import load_tables
from isamap.text.tokens import Places, Token, tokenize

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.ir"))
INSERTED = ("+", "[", "]", ")", "(", "{", ",", "=", "kernel", "for", "7", "x", ":", "f32", "..")


def source_lines(text: str) -> list[int]:
    errors = Collector(limit=10_000)
    parse_text(Source("<text>", text), errors)
    return [d.span.line for d in errors.errors if d.span is not None]


def base_text() -> str:
    chosen = [p for p in EXAMPLES if p.parent.name == "operators"]
    return "".join(path.read_text(encoding="utf-8") for path in chosen)


BASE = base_text()


def tokens_of(text: str) -> list[Token]:
    return tokenize(Places(Source("<text>", text)), load_tables(), Collector())[:-1]


TOKENS = tokens_of(BASE)


@given(st.integers(0, len(TOKENS) - 1), st.sampled_from(["", *INSERTED]), st.booleans())
def test_one_edit_is_told_near_its_place(at: int, word: str, replace: bool) -> None:
    token = TOKENS[at]
    if token.kind in ("LBRACE", "RBRACE") or word in ("{", "}"):
        return  # blocks may end anywhere then
    end = token.end if replace or not word else token.start
    changed = f"{BASE[: token.start]} {word} {BASE[end:]}"
    line = BASE.count("\n", 0, token.start) + 1
    for told in source_lines(changed):
        assert abs(told - line) <= 1, changed.splitlines()[told - 1]


def test_many_edits_give_few_false_reports() -> None:
    generator = random.Random(1)
    false = reports = silent = 0
    for _ in range(60):
        lines = set()
        text, moved = BASE, 0
        for at in sorted(generator.sample(range(len(TOKENS)), 4)):
            token = TOKENS[at]
            if token.kind in ("LBRACE", "RBRACE"):
                continue
            word = generator.choice(("", *INSERTED[:5], *INSERTED[6:]))
            start, end = token.start + moved, token.end + moved
            lines.add(text.count("\n", 0, start) + 1)
            text = f"{text[:start]} {word} {text[end:]}"
            moved = len(text) - len(BASE)
        told = source_lines(text)
        reports += len(told)
        false += sum(all(abs(line - edit) > 1 for edit in lines) for line in told)
        silent += sum(all(abs(line - edit) > 1 for line in told) for edit in lines)
    assert reports > 150
    assert false <= 2
    assert silent <= 40  # some edits are harmless: a number for a name


@pytest.mark.parametrize("end", ["+", "*", "+=", "= X[", "= X[i] * (", "= max(", "= X[i"])
def test_an_unfinished_line_does_not_swallow_the_next(end: str) -> None:
    text = (
        "kernel k {\n  in X : f32[4]\n  out Y : f32[4]\n"
        f"  Y[i] = X[i] {end}\n  Y[j] = X[j] $ 1\n  Y[k] = X[k, k]\n}}\n"
    )
    with pytest.raises(IsamapError) as caught:
        parse_module(text)
    assert [d.span.line for d in caught.value.diagnostics if d.span] == [4, 5, 6]


def test_errors_of_syntax_and_of_meaning_are_told_together() -> None:
    text = (
        "kernel a {\n  in X : f32[4]\n  out Y : f32[4]\n  Y[i] = = X[i]\n}\n"
        "kernel b {\n  in X : f32[4]\n  out Y : s32[4]\n  Y[i] = X[i]\n}\n"
    )
    with pytest.raises(IsamapError) as caught:
        parse_module(text)
    assert [d.code for d in caught.value.diagnostics] == ["E007", "E015"]


def test_reports_are_capped_and_counted() -> None:
    lines = "  Y[i] = X[i] +\n" * 80
    text = f"kernel k {{\n  in X : f32[4]\n  out Y : f32[4]\n{lines}}}\n"
    with pytest.raises(IsamapError) as caught:
        parse_module(text)
    assert len(caught.value.diagnostics) == 51
    assert caught.value.diagnostics[-1].message == "and 30 more errors"
