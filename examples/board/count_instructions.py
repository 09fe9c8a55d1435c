"""Measures by counting the instructions that QEMU executes: EMULATOR... PROGRAM COUNT.

A machine without a clock of its own, which counts the same each time.  Needs no package.
"""

import os
import subprocess
import sys
import tempfile
import threading

*emulator, program, count = sys.argv[1:]
log = ["-one-insn-per-tb", "-d", "exec,nochain", "-D"]  # a line for each instruction

with tempfile.TemporaryDirectory() as folder:
    pipe = os.path.join(folder, "log")
    os.mkfifo(pipe)
    lines = 0

    def read() -> None:
        global lines
        with open(pipe, "rb") as file:
            while part := file.read(1 << 20):
                lines += part.count(b"\n")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    # Standard input and output are this program's own.
    status = subprocess.run([*emulator, *log, pipe, program]).returncode
    if status:
        sys.exit(128 - status if status < 0 else status)
    reader.join()

with open(count, "w") as file:
    print(lines, file=file)
