"""What is being done, on stderr, once a command takes longer than two seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from isamap.pipeline.options import Tell

_PATIENCE = 2.0
_PLAIN_INTERVAL = 5.0


@contextmanager
def progress(wanted: bool = True) -> Iterator[Tell]:
    """Yield the function that hears each stage.

    A terminal shows a spinner with the present stage; a pipe gets a plain line when the stage has
    changed, at most one every few seconds.
    """
    shown = _Shown()
    thread = Thread(target=shown.watch, daemon=True)
    if wanted:
        thread.start()
    try:
        yield shown.tell
    finally:
        shown.done.set()
        if wanted:
            thread.join()


class _Shown:
    """The present stage, and the thread's work of showing it."""

    def __init__(self) -> None:
        self.text = ""
        self.done = Event()

    def tell(self, text: str) -> None:
        self.text = text

    def watch(self) -> None:
        if self.done.wait(_PATIENCE):
            return
        if sys.stderr.isatty():
            self._spin()
        else:
            self._print_lines()

    def _spin(self) -> None:
        from rich.console import Console  # only once somebody waits

        with Console(stderr=True).status(self.text) as status:
            while not self.done.wait(0.1):
                status.update(self.text)

    def _print_lines(self) -> None:
        last, at = "", -_PLAIN_INTERVAL
        while not self.done.wait(0.1):
            if self.text != last and monotonic() - at >= _PLAIN_INTERVAL:
                last, at = self.text, monotonic()
                print(f"isamap: {last} ...", file=sys.stderr, flush=True)
