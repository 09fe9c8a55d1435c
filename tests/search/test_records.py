import json
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap_search.machine import Machine
from isamap_search.records import FORMAT, Key, Record, Records
from tests.search.worker import ENVIRONMENT, ROOT

MACHINE = Machine("some CPU", 2, "cc 1.0")
KEY = Key("f", "k", "h", MACHINE, 1, (("N", 64),))
OTHERS = [
    replace(KEY, kernel="x"),
    replace(KEY, hardware="x"),
    replace(KEY, machine=replace(MACHINE, cpu="x")),
    replace(KEY, machine=replace(MACHINE, cores=4)),
    replace(KEY, machine=replace(MACHINE, compiler="cc 2.0")),
    replace(KEY, threads=2),
    replace(KEY, sizes=(("N", 65),)),
    replace(KEY, sizes=()),
]


def _record(seconds: float) -> Record:
    choices = (("block", "8x3"), ("order", "m n k"))
    return Record(choices, seconds, 0.5, 7, 1e6, {"calls": 3.0})


def test_a_missing_file_holds_no_records(tmp_path: Path) -> None:
    assert Records(tmp_path / "none").read(KEY) == []


def test_records_come_back_fastest_first(tmp_path: Path) -> None:
    records = Records(tmp_path / "new folder" / "r")
    for seconds in (3.0, 1.0, 2.0):
        records.append(KEY, _record(seconds))
    assert records.read(KEY) == [_record(1.0), _record(2.0), _record(3.0)]


@pytest.mark.parametrize("other", OTHERS)
def test_other_keys_are_left_out(tmp_path: Path, other: Key) -> None:
    records = Records(tmp_path / "r")
    records.append(other, _record(1.0))
    assert records.read(KEY) == []


def test_a_family_has_kernels_of_all_sizes_on_one_machine(tmp_path: Path) -> None:
    records = Records(tmp_path / "r")
    for number, key in enumerate([KEY, *OTHERS, replace(KEY, family="x")]):
        records.append(key, _record(1.0 + number))
    alike = [key for key, _ in records.alike(KEY)]
    assert alike == [KEY, OTHERS[0], OTHERS[6], OTHERS[7]]


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


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(name=st.sampled_from(["family", "machine", "threads", "sizes", "choices", "features",
                             "seconds", "ratio", "rounds", "cycles"]), value=_JSON)  # fmt: skip
def test_a_line_with_anything_in_it_is_a_record_or_none(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: object
) -> None:
    path = tmp_path_factory.mktemp("records") / "r"
    records = Records(path)
    records.append(KEY, _record(1.0))
    entry = json.loads(path.read_text())
    entry[name] = value
    path.write_text(json.dumps(entry) + "\n")
    for record in [*records.read(KEY), *(found for _, found in records.alike(KEY))]:
        assert record.seconds > 0


@pytest.mark.parametrize(
    "line",
    ["[]", "1", '{"format": 2}', '{"format": 3}', "null", '{"a": 1}', "[" * 100_000, "9" * 10_000],
)
def test_lines_of_another_kind_are_skipped(tmp_path: Path, line: str) -> None:
    (tmp_path / "r").write_text(line + "\n")
    assert Records(tmp_path / "r").alike(KEY) == []


@pytest.mark.parametrize("version", [FORMAT - 1, FORMAT + 1, None, "2"])
def test_records_of_other_versions_are_skipped_and_kept(tmp_path: Path, version: object) -> None:
    path = tmp_path / "r"
    records = Records(path)
    records.append(KEY, _record(1.0))
    entry = json.loads(path.read_text())
    entry["format"] = version
    path.write_text(json.dumps(entry) + "\n")
    records.append(KEY, _record(2.0))
    assert records.read(KEY) == [_record(2.0)]
    assert json.loads(path.read_text().splitlines()[0]) == entry


def test_files_from_strangers_execute_nothing(tmp_path: Path) -> None:
    # What would run where records were unpickled, evaluated, or used as paths or commands.
    told = tmp_path / "told"
    path = tmp_path / "r"
    records = Records(path)
    code = f"__import__('pathlib').Path({str(told)!r}).touch()"
    pickled = f"cpathlib\nPath.touch\n(cpathlib\nPath\n(S{str(told)!r}\ntRtR."
    hostile = Record(((code, code), ("block", pickled)), 1.0, 1.0, 1, 1.0, {code: 1.0})
    key = replace(KEY, machine=Machine(f"$(touch {told})", 1, f"; touch {told}"))
    records.append(key, hostile)
    assert records.read(key) == [replace(hostile, choices=tuple(sorted(hostile.choices)))]
    path.write_text(pickled)
    assert records.read(key) == []
    assert not told.exists()


_WRITER = """
import sys
from pathlib import Path
from tests.search.test_records import KEY, Records, _record
for number in range(40):
    Records(Path(sys.argv[1])).append(KEY, _record(float(sys.argv[2]) + number))
"""


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r"
    writers = [
        Popen(
            [executable, "-c", _WRITER, str(path), str(100 * n + 1)],
            env=ENVIRONMENT,
            cwd=ROOT,
            stderr=PIPE,
        )
        for n in range(4)
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors.decode()
    seconds = [record.seconds for record in Records(path).read(KEY)]
    assert seconds == [float(100 * n + 1 + k) for n in range(4) for k in range(40)]
