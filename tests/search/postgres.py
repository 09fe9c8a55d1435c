"""A PostgreSQL server of the tests' own, in a folder that goes with it."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pwd import getpwnam
from subprocess import DEVNULL, PIPE, Popen, run

import psycopg

INSTALL = "apt-get install -y postgresql"
"""Makes these tests possible on Debian."""

# Debian keeps the programs of each version in a folder that is not on the path.
_HOME = Path("/usr/lib/postgresql")
_USER = "isamap"


def programs() -> Path | None:
    """Return the folder with PostgreSQL's programs, None where it is not installed."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    homes = sorted(_HOME.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return homes[-1].parent if homes else None


@dataclass
class Server:
    """A server that listens on a socket in ``folder``, and nowhere else."""

    folder: Path
    process: "Popen[bytes]"
    count: int = 0

    def database(self) -> str:
        """Make an empty database and return its URL."""
        self.count += 1
        name = f"studies{self.count}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        return self._url(name)

    def stop(self) -> None:
        """End the server, connections or not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)

    def _url(self, name: str) -> str:
        return f"postgresql://{_USER}@/{name}?host={self.folder}"


@contextmanager
def server(home: Path) -> Iterator[Server]:
    """Yield a server that has just been made."""
    # Sockets have short names: pytest's own folders are too deep.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    user = _unprivileged()
    if user is not None:
        os.chown(folder, user, -1)
    data = folder / "data"
    initdb = [str(home / "initdb"), "-D", str(data), "-U", _USER, "--auth=trust", "--no-sync"]
    options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=50"]
    command = [str(home / "postgres"), "-D", str(data), "-k", str(folder), *options]
    process = None
    try:
        done = run(initdb, user=user, cwd=folder, stdout=DEVNULL, stderr=PIPE, check=False)
        assert done.returncode == 0, done.stderr.decode()
        with (folder / "log").open("wb") as log:
            process = Popen(command, user=user, cwd=folder, stdout=log, stderr=log)
        made = Server(folder, process)
        _wait(made)
        yield made
        made.stop()
    finally:
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> int | None:
    """Return who runs the server: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    try:
        return getpwnam("postgres").pw_uid
    except KeyError:
        return getpwnam("nobody").pw_uid


def _wait(made: Server) -> None:
    """Return when the server answers."""
    for _ in range(600):
        if made.process.poll() is not None:
            raise AssertionError((made.folder / "log").read_text())
        try:
            psycopg.connect(made._url("postgres")).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer: " + (made.folder / "log").read_text())
