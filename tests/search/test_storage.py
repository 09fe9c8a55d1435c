import json
from errno import ENOSPC
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from sys import executable

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.trial import TrialState

from isamap.diagnostics import ArgumentsError, Diagnostic, ToolError
from isamap_search import storage
from isamap_search.budget import Budget
from isamap_search.plan import Plan
from isamap_search.settings import Place
from isamap_search.storage import JournalFile, append, open_storage
from isamap_search.study import search
from tests.search.bowl import Bench, model
from tests.search.worker import ENVIRONMENT, start


def trials(place: Place) -> list[optuna.trial.FrozenTrial]:
    name = place.name or "isamap"
    return optuna.load_study(study_name=name, storage=open_storage(place)).get_trials()


def test_a_killed_search_loses_nothing_that_was_measured(tmp_path: Path) -> None:
    place = Place(path=tmp_path / "study")
    worker = start(place, 30)
    worker.wait_until_it_times()
    worker.kill()
    left = trials(place)
    told = [t for t in left if t.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    lost = [t for t in left if t.state == TrialState.RUNNING]
    assert told
    assert lost
    found = search(model(), Budget(trials=30), 0, Bench(), Plan(place=place))
    after = trials(place)
    assert [t.number for t in after if t.state == TrialState.RUNNING] == []
    known = dict(found.values)
    for trial in told:
        assert known[tuple(trial.params.values())] == tuple(trial.user_attrs["isamap:values"])
    for trial in lost:  # tried again
        assert tuple(trial.params.values()) in known
    assert found.others == len([t for t in told if "isamap:values" in t.user_attrs])
    assert found.others + found.trials == 30


def test_a_journal_that_was_cut_off_anywhere_goes_on(tmp_path: Path) -> None:
    place = Place(path=tmp_path / "study")
    search(model(), Budget(trials=6), 0, Bench(), Plan(place=place))
    whole = (tmp_path / "study").read_bytes()
    for cut in (1, 7, 50, 333, 1000, len(whole) - 2):
        path = tmp_path / f"cut{cut}"
        path.write_bytes(whole[:-cut])
        found = search(model(), Budget(trials=6), 0, Bench(), Plan(place=Place(path=path)))
        assert found.best is not None
        for line in path.read_bytes().splitlines():
            json.loads(line)


def test_a_reader_does_not_mind_a_line_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "study"
    study = optuna.create_study(storage=JournalStorage(JournalFile(path)), study_name="s")
    study.enqueue_trial({"a": 1})
    with path.open("ab") as file:
        file.write(b'{"op_code": 4, "wor')
    assert len(study.trials) == 1
    study.enqueue_trial({"a": 2})
    assert len(study.trials) == 2


_WRITER = """
import sys
from pathlib import Path
import optuna
from optuna.storages import JournalStorage
from isamap_search.storage import JournalFile
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name="s", storage=JournalStorage(JournalFile(Path(sys.argv[1]))))
for number in range(20):
    study.tell(study.ask(), float(number))
"""


def test_several_writers_share_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "study"
    study = optuna.create_study(storage=JournalStorage(JournalFile(path)), study_name="s")
    writers = [Popen([executable, "-c", _WRITER, str(path)], env=ENVIRONMENT) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert sorted(t.number for t in study.trials) == list(range(60))
    assert {t.state for t in study.trials} == {TrialState.COMPLETE}


def test_a_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "study"
    code = (
        "import sys, time; from pathlib import Path; from isamap_search.storage import locked\n"
        "with locked(Path(sys.argv[1])): print('locked', flush=True); time.sleep(600)"
    )
    holder = Popen(
        [executable, "-c", code, str(path)], env=ENVIRONMENT, stdout=PIPE, stderr=DEVNULL
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    study = optuna.create_study(storage=JournalStorage(JournalFile(path)), study_name="s")
    assert study.trials == []


def test_another_kernels_study_is_refused(tmp_path: Path) -> None:
    place = Place(path=tmp_path / "study")
    one = {"kernel": "mm 1", "machine": "this"}
    search(model(), Budget(trials=2), 0, Bench(), Plan(place=place, identity=one))
    other = Plan(place=place, identity={"kernel": "mm 2", "machine": "this"})
    with pytest.raises(ArgumentsError, match="searches something else: another kernel\n"):
        search(model(), Budget(trials=2), 0, Bench(), other)
    several = Plan(place=place, identity=one, objectives=("time", "size"), sampler="nsga2")
    with pytest.raises(ArgumentsError, match="another objectives"):
        search(model(), Budget(trials=2), 0, Bench(), several)


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize(
    "content", ["no journal\n", "no journal", "{}\n", '{"op_code": 99}\n', "[]\n\n", "3\n"]
)
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, content: str, lines: int) -> None:
    (tmp_path / "study").write_text(content * lines)
    with pytest.raises(ArgumentsError, match="holds no study"):
        open_storage(Place(path=tmp_path / "study"))
    assert (tmp_path / "study").read_text() == content * lines


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    path = tmp_path_factory.mktemp("whole") / "study"
    search(model(), Budget(trials=6), 0, Bench(), Plan(place=Place(path=path)))
    return path.read_bytes().splitlines(keepends=True)


def measured(path: Path) -> dict[int, list[float]]:
    found = trials(Place(path=path))
    return {
        t.number: t.user_attrs["isamap:values"] for t in found if "isamap:values" in t.user_attrs
    }


@pytest.mark.parametrize("damage", [b"\0\0\0\n", b"{}\n", b'{"op_code": 99}\n', b"\n", b"\xff{\n"])
def test_what_other_lines_of_a_journal_say_is_kept(
    tmp_path: Path, whole: list[bytes], damage: bytes
) -> None:
    path = tmp_path / "study"
    path.write_bytes(b"".join(whole))
    before = measured(path)
    assert len(before) > 3
    for number, line in enumerate(whole):
        path.write_bytes(b"".join([*whole[:number], damage, *whole[number + 1 :]]))
        after = measured(path)
        own = json.loads(line)
        lost = {own["trial_id"]} if "isamap:values" in own.get("user_attr", ()) else set()
        assert after == {n: values for n, values in before.items() if n not in lost}, number


def test_a_search_goes_on_in_a_damaged_journal_and_says_so(
    tmp_path: Path, whole: list[bytes]
) -> None:
    path = tmp_path / "study"
    for at in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(b"".join([*whole[:at], b"\0 what\n", *whole[at + 1 :]]))
        found = search(model(), Budget(trials=9), 0, Bench(), Plan(place=Place(path=path)))
        assert found.best is not None
        assert found.others >= 5
        (warning,) = found.warnings
        assert warning.severity == "warning"
        assert str(warning.span) == f"{path}:{at + 1}:1"
        lines = path.read_bytes().splitlines()
        assert lines[at] == b"\0 what"


def test_several_damaged_lines_are_told_one_by_one(tmp_path: Path, whole: list[bytes]) -> None:
    path = tmp_path / "study"
    path.write_bytes(b"".join([whole[0], b"3\n", *whole[2:9], b"[\n", *whole[10:]]))
    told: list[Diagnostic] = []
    open_storage(Place(path=path), 1, told.append)
    assert [str(warning.span) for warning in told] == [f"{path}:2:1", f"{path}:10:1"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentsError, match="cannot keep the study"):
        open_storage(Place(path=tmp_path / "file" / "study"))


@pytest.mark.parametrize("entries", [0, 1, 12])
def test_a_full_disk_ends_the_search_and_names_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    written: list[bytes] = []

    def full(descriptor: int, data: bytes) -> None:
        if len(written) == entries:
            raise OSError(ENOSPC, "No space left on device")
        written.append(data)
        append(descriptor, data)

    place = Place(path=tmp_path / "study")
    monkeypatch.setattr(storage, "append", full)
    with pytest.raises(ToolError, match=f"storage {place} fails: No space left on device\n"):
        search(model(), Budget(trials=8), 0, Bench(), Plan(place=place))
    monkeypatch.undo()
    assert (tmp_path / "study").read_bytes() == b"".join(written)
    found = search(model(), Budget(trials=8), 0, Bench(), Plan(place=place))
    assert found.best is not None


@pytest.mark.parametrize("url", ["nonsense", "nothing://host", "postgresql://host:port/x"])
def test_a_url_that_is_none_is_told(url: str) -> None:
    with pytest.raises((ArgumentsError, ToolError)):
        open_storage(Place(url=url))


def test_passwords_are_not_told() -> None:
    place = Place(url="postgresql://me:s3cr@t@host:5432/db")
    assert "s3cr" not in str(place)
    assert str(Place(url="postgresql://me@host/db")) == "postgresql://me@host/db"


def test_sqlite_is_a_storage_like_others(tmp_path: Path) -> None:
    place = Place(url=f"sqlite:///{tmp_path}/studies.db", name="bowl")
    first = search(model(), Budget(trials=5), 0, Bench(), Plan(place=place))
    again = search(model(), Budget(trials=8), 0, Bench(), Plan(place=place))
    assert (first.trials, again.trials, again.others) == (5, 3, 5)
