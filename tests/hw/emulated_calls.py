"""Single instructions in a program that an emulator runs, called through pipes."""

import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from isamap.hw.accelerator import Accelerator
from isamap.hw.tools import located
from isamap.resources import shipped
from tests.hw.native_calls import Call, Case, Place, source

_ROOM = 1 << 16

_MAIN = """
#include <stdio.h>
#include <stdlib.h>
static unsigned char room[8][{room}] __attribute__((aligned(64)));
static void get(void *to, size_t bytes) {{ if (fread(to, 1, bytes, stdin) != bytes) exit(0); }}
static int64_t number(void) {{ int64_t found; get(&found, sizeof found); return found; }}
int main(void)
{{
    static void (*const calls[])(void **, const int64_t *) = {{{calls}}};
    const int64_t one = 1;
    fwrite(&one, 1, sizeof one, stdout);
    for (;;) {{
        const int64_t call = number(), symbols = number(), operands = number();
        int64_t values[8] = {{0}}, sizes[8];
        void *places[8];
        for (int64_t i = 0; i < symbols; i++) values[i] = number();
        for (int64_t i = 0; i < operands; i++) {{
            sizes[i] = number();
            places[i] = room[i] + number();
            get(room[i], (size_t)sizes[i]);
        }}
        calls[call](places, values);
        for (int64_t i = 0; i < operands; i++) fwrite(room[i], 1, (size_t)sizes[i], stdout);
    }}
}}
"""


@contextmanager
def emulated(accelerator: Accelerator, chosen: list[Case], folder: Path) -> Iterator[Call]:
    """Build a program of the cases and start it; yields what calls them there."""
    tools = accelerator.toolchain
    assert tools is not None
    main = _MAIN.format(room=_ROOM, calls=", ".join(case.symbol for case in chosen))
    runtime = f"{tools.start}\n#include <isamap_runtime.h>\n"
    text, program = folder / "calls.c", folder / "calls"
    text.write_text(f"{source(accelerator, chosen)}{main}{runtime}", encoding="utf-8")
    command = [*located(tools.compiler), str(text), "-o", str(program), *tools.flags]
    command += ["-ffreestanding", "-nostdlib", "-isystem", str(shipped("hwdesc") / "freestanding")]
    command += tools.program
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    numbers = {case.symbol: number for number, case in enumerate(chosen)}
    running = subprocess.Popen(
        [*located(tools.runner), str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with running:
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            yield _Pipes(running.stdin, running.stdout, numbers).call
        finally:
            running.stdin.close()


class _Pipes:
    """The ends of the pipes to a program, which writes a 1 first: that tells its byte order."""

    def __init__(self, to: IO[bytes], back: IO[bytes], numbers: dict[str, int]) -> None:
        self.to, self.back, self.numbers = to, back, numbers
        first = back.read(8)
        self.order = "<" if first == struct.pack("<q", 1) else ">"
        assert first == struct.pack(f"{self.order}q", 1), "the program did not begin"

    def call(self, case: Case, places: Sequence[Place | None], symbols: Sequence[int]) -> None:
        """Send the operands, have the case executed, and take the operands back."""
        whole = [place or Place(np.zeros(0, np.uint8), 0, 1) for place in places]
        self._send(self.numbers[case.symbol], len(symbols), len(whole), *symbols)
        for place in whole:
            assert place.bytes.size <= _ROOM
            self._send(place.bytes.size, place.offset)
            self.to.write(self._turned(place.bytes, place.width).tobytes())
        self.to.flush()
        for place in whole:
            found = self.back.read(place.bytes.size)
            assert len(found) == place.bytes.size, f"{case.symbol} ended the program"
            place.bytes[:] = self._turned(np.frombuffer(found, np.uint8), place.width)

    def _send(self, *numbers: int) -> None:
        self.to.write(struct.pack(f"{self.order}{len(numbers)}q", *numbers))

    def _turned(self, content: np.ndarray, width: int) -> np.ndarray:
        """Return elements in the other machine's byte order, or in this one's again."""
        return content if self.order == "<" else content.reshape(-1, width)[:, ::-1].reshape(-1)
