"""What loops of one element are worth that the compiler makes vectors of, beside unrolled blocks.

    python benchmarks/plain.py [--rounds 9]

Times statements that no instruction of several elements computes, with the block that the rules
choose where the compiler is not asked for vectors, and as they are mapped.  By turns, medians of
all rounds, on one core.  Prints the time of the latter as a multiple of that of the former.
"""

import argparse
import os
from dataclasses import replace

from flows import measured

import isamap
from isamap.hw.accelerator import Accelerator
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.schedule_text import schedule_text
from isamap.text.load import parse_module

STATEMENTS = {
    "bytes, shifted left by variables": "in A : u8[32768] in B : u8[32768] values 0..7 "
    "out Y : u8[32768] Y[i] = A[i] << B[i]",
    "bytes, shifted right by variables": "in A : u8[32768] in B : u8[32768] values 0..7 "
    "out Y : u8[32768] Y[i] = A[i] >> B[i]",
    "rows of bytes, shifted by one row": "in A : u8[640, 300] in B : u8[300] values 0..7 "
    "out Y : u8[640, 300] Y[i, j] = A[i, j] << B[j]",
    "bytes by bytes, all shifts": "in A : u8[300] in B : u8[200] values 0..7 "
    "out Y : u8[300, 200] Y[i, j] = A[i] << B[j]",
    "two nibbles to a byte": "in A : u8[32768, 2] values 0..15 "
    "out Y : u8[32768] Y[i] = A[i, 0] | (A[i, 1] << 4)",
    "numbers from positions": "out Y : s32[32768] Y[i] = s32(i) * 3",
    "64 bits, shifted and mixed": "in S : u64[8192] "
    "out Y : u64[8192] Y[i] = (S[i] ^ (S[i] << 13)) ^ (S[i] >> 7)",
    "quotients of 16 bits": "in A : u16[32768] in B : u16[32768] values 1..100 "
    "out Y : u16[32768] Y[i] = A[i] // B[i]",
}


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often each is timed")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    machine = isamap.load_hardware("native")
    assert machine.toolchain is not None, "native code is compiled"
    silent = replace(machine, toolchain=replace(machine.toolchain, vector=0))
    print("| statement | plain loops | of the time of blocks |")
    print("|---|---|---:|")
    for name, statement in STATEMENTS.items():
        text = f"kernel k {{ {statement} }}"
        blocks, plain = (_schedule(text, one) for one in (silent, machine))
        times = measured(text, {"blocks": blocks, "plain": plain}, machine, given.rounds)
        loops = plain.partition("loops ")[2].partition("\n")[0]
        print(f"| {name} | {loops} | {times['plain'] / times['blocks']:.2f} |")


def _schedule(text: str, machine: Accelerator) -> str:
    """Return the schedule that the rules choose."""
    kernel = parse_module(text).kernels[0]
    return schedule_text(map_kernel(kernel, machine, Options(prove=False, rewrite=())))


if __name__ == "__main__":
    main()
