"""Where a study lives: a local journal file, or any storage that Optuna knows, by its URL."""

import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import BaseJournalBackend
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from isamap.diagnostics import ArgumentsError, Diagnostic, ToolError, fail
from isamap_search.journal import Entry, instead, warnings
from isamap_search.settings import Place

# Workers that begin at once make the tables of one database: all but one of them fail at first.
_ATTEMPTS, _PAUSE = 6, 0.2
DEFAULT = "isamap"
"""What a study is called that nobody names."""

_POSTGRES = re.compile(r"^postgres(?:ql)?://")


class JournalFile(BaseJournalBackend):
    """A journal that survives writers which are killed at any moment.

    The system frees the lock of a process that ends, so that nobody waits for a dead one, and a
    line of which only a part was written is cut off before the next one.  ``stand`` has entries for
    lines that cannot be read, by their numbers.
    """

    def __init__(self, path: Path, stand: Mapping[int, Entry] | None = None) -> None:
        self._path = path
        self._stand = stand or {}
        self._offsets = [0]  # of the first lines
        with path.open("ab"):
            pass  # it is there from now on

    def read_logs(self, log_number_from: int) -> Iterator[Entry]:
        """Yield the entries from a number on, but for one that is being written.

        StorageInternalError over a line that cannot be read, and was not there in the beginning.
        """
        number = min(log_number_from, len(self._offsets) - 1)
        with self._path.open("rb") as file:
            file.seek(self._offsets[number])
            for line in file:
                if not line.endswith(b"\n"):
                    return
                if number + 1 == len(self._offsets):
                    self._offsets.append(self._offsets[number] + len(line))
                if number >= log_number_from:
                    yield self._stand.get(number) or self._entry(line, number)
                number += 1

    def _entry(self, line: bytes, number: int) -> Entry:
        try:
            entry: Entry = json.loads(line)
        except ValueError as error:
            text = f"line {number + 1} of the journal cannot be read"
            raise StorageInternalError(text) from error
        return entry

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write entries, one a line; StorageInternalError where that is not possible any more."""
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        try:
            with locked(self._path) as descriptor:
                _cut_torn_line(descriptor)
                append(descriptor, text.encode())
                os.fsync(descriptor)
        except OSError as error:
            raise StorageInternalError(error.strerror or type(error).__name__) from error


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Yield the descriptor of a file that nobody else has locked; OSError if there is none."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def append(descriptor: int, data: bytes) -> None:
    """Write all of ``data`` at the end of a file."""
    while data:
        data = data[os.write(descriptor, data) :]


def _cut_torn_line(descriptor: int) -> None:
    size = end = os.fstat(descriptor).st_size
    while end > 0:
        block = os.pread(descriptor, min(end, 1 << 16), max(0, end - (1 << 16)))
        if (at := block.rfind(b"\n")) >= 0:
            end = end - len(block) + at + 1
            break
        end -= len(block)
    if end < size:
        os.ftruncate(descriptor, end)


def open_storage(
    place: Place, objectives: int = 1, told: Callable[[Diagnostic], None] = lambda _: None
) -> BaseStorage:
    """Return the storage of a place for studies of some objectives.

    Lines of a journal that cannot be read are ``told``.  ToolError when the place cannot be used.
    """
    if place.url is not None:
        return _database(place.url)
    if place.path is None:
        return InMemoryStorage()
    try:
        place.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(place.path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            *lines, torn = file.read().split(b"\n")
        if not lines and torn[:1] not in (b"", b"{"):
            raise ValueError("no entry of a journal")
        stand = instead(lines, place.name or DEFAULT, objectives)
        for warning in warnings(place.path, lines, stand):
            told(warning)
        return JournalStorage(JournalFile(place.path, stand))
    except OSError as error:
        text = f"cannot keep the study in '{place.path}': {error.strerror}"
        raise ArgumentsError(fail("E739", text, hint="--study FILE names another")) from error
    except ValueError as error:
        text = f"'{place.path}' holds no study: it is not a journal that Optuna wrote"
        raise ArgumentsError(fail("E739", text, hint="--study FILE names another")) from error


def _database(url: str) -> BaseStorage:
    # SQLAlchemy's own default driver has changed; this one is what isamap[postgres] installs.
    wanted = _POSTGRES.sub("postgresql+psycopg://", url)
    for attempt in range(_ATTEMPTS):
        try:
            return RDBStorage(wanted, engine_kwargs={"pool_pre_ping": True})
        except ImportError as error:
            hint = "pip install 'isamap[postgres]'" if wanted != url else None
            text = f"the driver for {Place(url=url)} is not installed"
            raise ToolError(fail("E743", text, hint=hint)) from error
        except (ArgumentError, ValueError) as error:
            text = f"{Place(url=url)} is not the URL of a storage"
            hint = "for example postgresql://user:password@host/database"
            raise ArgumentsError(fail("E739", text, hint=hint)) from error
        except (SQLAlchemyError, StorageInternalError) as error:
            if attempt == _ATTEMPTS - 1:
                hint = "look at its address, and whether the server runs and its folder is there"
                raise failed(Place(url=url), error, hint) from error
            time.sleep(_PAUSE * (attempt + 1))
    raise AssertionError("the last attempt returns or raises")


def close(storage: BaseStorage) -> None:
    """Give back the connections of a storage that is not used any more."""
    storage.remove_session()
    if isinstance(storage, RDBStorage):
        storage.engine.dispose()


def failed(
    place: Place, error: Exception, hint: str = "what was measured is kept; run the same again"
) -> ToolError:
    """Return the error for a storage that does not answer."""
    cause = error.__cause__
    told = str(error if isinstance(cause, OSError) else cause or error).strip().splitlines()
    text = f"the storage {place} fails: {told[0] if told else type(error).__name__}"
    return ToolError(fail("E743", text, hint=hint))
