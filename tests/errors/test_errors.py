"""Every wrong file here gets exactly the messages beside it.

``NAME.ir`` is read and its messages are compared with ``NAME.expect``; a file's name begins with
the code that it shows.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from isamap.diagnostics import IsamapError, Source
from isamap.text.load import load_module

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.ir"))


def messages(path: Path) -> str:
    with pytest.raises(IsamapError) as caught:
        load_module(path)
    assert caught.value.exit_code == 1
    text = "\n".join(diagnostic.render() for diagnostic in caught.value.diagnostics)
    return text.replace(f"{FOLDER}/", "") + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_error_of_a_file_is_told(path: Path, golden: Callable[[Path, str], None]) -> None:
    text = messages(path)
    golden(path.with_suffix(".expect"), text)
    if code := re.match(r"E\d+", path.stem):
        assert f"error[{code.group()}]" in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_error_has_a_place_a_line_and_a_caret(path: Path) -> None:
    with pytest.raises(IsamapError) as caught:
        load_module(path)
    for diagnostic in caught.value.diagnostics:
        span = diagnostic.span
        assert span is not None
        assert isinstance(span.source, Source)
        first, *rest = diagnostic.render().splitlines()
        assert re.match(rf"{re.escape(str(path))}:\d+:\d+: error\[E\d\d\d\]: \S", first)
        if path.read_text(encoding="utf-8").splitlines()[span.line - 1 : span.line]:
            assert re.fullmatch(r"[ \t]*\^+", rest[1])
