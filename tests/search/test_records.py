from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap_search.records import Key, Record, Records

KEY = Key("k", "h", 1, (("N", 64),))


def _record(seconds: float) -> Record:
    return Record((("block", "8x3"), ("order", "m n k")), seconds)


def test_a_missing_file_holds_no_records(tmp_path: Path) -> None:
    assert Records(tmp_path / "none").read(KEY) == []


def test_records_come_back_fastest_first(tmp_path: Path) -> None:
    records = Records(tmp_path / "r")
    for seconds in (3.0, 1.0, 2.0):
        records.append(KEY, _record(seconds))
    assert records.read(KEY) == [_record(1.0), _record(2.0), _record(3.0)]


@pytest.mark.parametrize(
    "other",
    [
        Key("x", "h", 1, (("N", 64),)),
        Key("k", "x", 1, (("N", 64),)),
        Key("k", "h", 2, (("N", 64),)),
        Key("k", "h", 1, (("N", 65),)),
        Key("k", "h", 1, ()),
    ],
)
def test_other_keys_are_left_out(tmp_path: Path, other: Key) -> None:
    records = Records(tmp_path / "r")
    records.append(other, _record(1.0))
    assert records.read(KEY) == []


@given(cut=st.integers(1, 60))
def test_a_damaged_last_line_is_dropped(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("records") / "r"
    records = Records(path)
    records.append(KEY, _record(1.0))
    records.append(KEY, _record(2.0))
    path.write_bytes(path.read_bytes()[:-cut])
    assert _record(1.0) in records.read(KEY)
    records.append(KEY, _record(3.0))
    assert _record(3.0) in records.read(KEY)


@given(st.binary(max_size=200))
def test_any_content_is_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("records") / "r"
    path.write_bytes(content)
    assert Records(path).read(KEY) == []


@pytest.mark.parametrize("line", ["[]", "1", '{"format": 1}', '{"format": 2}', "null", '{"a": 1}'])
def test_lines_of_another_kind_are_skipped(tmp_path: Path, line: str) -> None:
    (tmp_path / "r").write_text(line + "\n")
    assert Records(tmp_path / "r").read(KEY) == []
