"""How often this CPU starts the instructions of a description, beside what the description says.

    python benchmarks/figures.py x86_avx512                        # all that use vectors
    python benchmarks/figures.py x86_avx512 vdpbf16ps vadd_f32     # some
    python benchmarks/figures.py x86_avx512 --beside vfmadd_f32    # and a call of another one

Each instruction's C runs in a loop of eight calls that depend on nothing but what they write over,
in registers of their own.  Cycles are counted in additions that wait for each other, one a cycle:
no clock has to be known.  ``told`` is what units and issue take by the description.  Best of many
rounds, on one core.  Only for descriptions whose code this CPU runs itself.
"""

import argparse
import ctypes
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import isamap
from isamap.emit.c import preamble_text
from isamap.emit.expressions import Env
from isamap.emit.names import buffer as in_memory
from isamap.emit.names import register as in_register
from isamap.emit.templates import Machine, call_lines
from isamap.hw.accelerator import Accelerator, Entry
from isamap.hw.native import elsewhere
from isamap.ir.index import const, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Call, Operand, Register, Window
from isamap.mapping.needles.demands import free_pitches
from isamap.targets.probe.extents import usual

COPIES = 8
VECTOR = {"aarch64": "w"}.get(platform.machine(), "v")
MEMORY = 1 << 16

TIMING = """
#include <time.h>
static double isamap_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
#define ROUNDS 300
#define LOOPS 1000
static char memory_from[MEMORY] __attribute__((aligned(4096)));
static char memory_to[MEMORY] __attribute__((aligned(4096)));
double timed(void (*loop)(long))
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = isamap_now();
        loop(LOOPS);
        const double taken = isamap_now() - start;
        least = taken < least ? taken : least;
    }
    return least / LOOPS;
}
void additions(long n)
{
#define ADD x += 1; __asm__ volatile("" : "+r"(x));
    for (long i = 0, x = 0; i < n; i++) {
        ADD ADD ADD ADD ADD ADD ADD ADD
    }
}
"""


def main() -> int:
    """Print a table; exit with 2 where the description's code runs elsewhere."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="a description, or 'native'")
    parser.add_argument("instructions", nargs="*", help="those to time; all with vectors")
    parser.add_argument("--beside", help="one that is called after each")
    parser.add_argument("--trust", action="store_true", help="execute C of your own")
    arguments = parser.parse_args()
    machine = isamap.load_hardware(arguments.name, trust=arguments.trust)
    if machine.toolchain is None or (why := elsewhere(machine)):
        parser.error(f"{machine.name}: {why if machine.toolchain else 'it has no toolchain'}")
    if not machine.trusted:
        parser.error(f"{machine.name} does not ship with isamap: --trust executes its C")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    entries = {entry.name: entry for entry in machine.entries}
    wanted = arguments.instructions or [
        name for name, entry in entries.items() if uses_vectors(entry, machine)
    ]
    besides = [arguments.beside] if arguments.beside else []
    for name in (*wanted, *besides):
        if name not in entries:
            parser.error(f"{machine.name} has no instruction '{name}'")
    print("| instruction | cycles | told | ratio |\n|---|---:|---:|---:|")
    for name in wanted:
        together = [entries[one] for one in (name, *besides)]
        cycles = measured(together, machine)
        if cycles is None:
            print(f"| {name} | not timed | | |")
            continue
        said = told(together, machine)
        print(f"| {name} | {cycles:.2f} | {said:.2f} | {cycles / said:.2f} |", flush=True)
    return 0


def uses_vectors(entry: Entry, machine: Accelerator) -> bool:
    """Return whether some operand is in a register of more than 64 bits."""
    places = (machine.storage(entry.storage(o.name)) for o in entry.instruction.places)
    return any(place.kind == "registers" and (place.bits or 0) > 64 for place in places)


def told(entries: Sequence[Entry], machine: Accelerator) -> float:
    """Return the cycles from one start to the next by a description."""
    busy: dict[str, float] = {}
    for entry in entries:
        for unit, cycles in entry.busy.items():
            busy[unit] = busy.get(unit, 0.0) + float(cycles)
    return max(*busy.values(), sum(e.length for e in entries) / max(1, machine.issue))


def measured(entries: Sequence[Entry], machine: Accelerator) -> float | None:
    """Return the cycles of a call of each.

    None where lengths are not known, registers are no variables of C, or a compiler refuses them.
    """
    for entry in entries:
        places = [machine.storage(entry.storage(o.name)) for o in entry.instruction.places]
        if usual(entry) is None or entry.emit is None or any(p.numbered for p in places):
            return None
    loops = [Calls(entry, machine, f"{entry.name}_{n}") for n, entry in enumerate(entries)]
    body = "\n".join(
        [
            "void measured(long n);\nvoid measured(long n)\n{",
            *(line for calls in loops for line in calls.declared()),
            "    for (long i = 0; i < n; i++) {",
            *(line for n in range(COPIES) for calls in loops for line in calls.called(n)),
            "    }\n}",
        ]
    )
    text = f"#define MEMORY {MEMORY}\n{preamble_text(machine, body)}\n{TIMING}\n{body}\n"
    tools = machine.toolchain
    assert tools is not None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "one.c", Path(folder) / "one.so"
        source.write_text(text)
        command = [*tools.compiler, *tools.flags, *tools.shared, str(source), "-o", str(library)]
        done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            return None
        code = ctypes.CDLL(str(library))
        code.timed.restype = ctypes.c_double
        return float(code.timed(code.measured) / code.timed(code.additions))


class Calls:
    """The C of some calls of one instruction, each with results of its own."""

    def __init__(self, entry: Entry, machine: Accelerator, stem: str) -> None:
        self.entry = entry
        self.c = Machine.of(machine)
        self.shared: dict[str, Operand] = {}
        self.own: dict[str, list[Register]] = {}
        self.outputs = {operand.name for operand in entry.outputs}
        symbols = usual(entry)
        assert symbols is not None
        # Constants would turn parts of vectors into whole ones; a pitch with a range is always one.
        constant = {n for n, e in free_pitches(entry.instruction).items() if e.range}
        self.symbols = {f"{stem}_{n}": v for n, v in symbols.items() if n not in constant}
        self.env = Env({symbol: symbol for symbol in self.symbols})
        self.bound = tuple(
            (name, const(value) if name in constant else var(f"{stem}_{name}"))
            for name, value in symbols.items()
        )
        for operand in entry.instruction.places:
            name, storage = operand.name, machine.storage(entry.storage(operand.name))
            own = name in self.outputs or name in entry.same
            if storage.kind == "immediate":
                one = "1.0" if operand.dtype.is_float else "1"
                self.shared[name] = Literal(one, operand.dtype)
            elif storage.kind == "memory":
                self.shared[name] = Window(f"{stem}_{name}", const(0))
            elif own:
                self.own[name] = [
                    Register(f"{stem}_{name}_{n}", storage.name, operand.dtype, ())
                    for n in range(COPIES)
                ]
            else:
                self.shared[name] = Register(f"{stem}_{name}", storage.name, operand.dtype, ())
        if tied := [name for name in entry.same if name not in self.outputs]:
            first = next(name for name in entry.same if name in self.outputs)
            self.own |= dict.fromkeys(tied, self.own[first])

    def declared(self) -> Iterator[str]:
        """Yield what comes before the loop: registers of zeros, and addresses."""
        registers = [r for some in self.own.values() for r in some]
        registers += [r for r in self.shared.values() if isinstance(r, Register)]
        for register in dict.fromkeys(registers):
            yield f"    {self.c.register_type(register)} {in_register(register.name)} = {{0}};"
        for symbol, value in self.symbols.items():
            yield f"    int64_t {symbol} = {value};"
        for name, place in self.shared.items():
            if isinstance(place, Window):
                kind = c_type(self.entry.instruction.operand(name).dtype.name)
                side = "memory_to" if name in self.outputs else "memory_from"
                yield f"    {kind} *{in_memory(place.buffer)} = (void *){side};"

    def called(self, number: int) -> Iterator[str]:
        """Yield one call, between what keeps the compiler from knowing its operands."""
        places: dict[str, Register] = {name: some[number] for name, some in self.own.items()}
        call = Call(self.entry.name, tuple({**self.shared, **places}.items()), self.bound)
        for symbol in self.symbols:
            yield f'        __asm__ volatile("" : "+r"({symbol}));'
        for place in self.shared.values():
            if isinstance(place, Register):
                yield f"        {opaque(place, self.c)}"
            elif isinstance(place, Window):
                address = in_memory(place.buffer)
                yield f'        __asm__ volatile("" : "+r"({address}) : : "memory");'
        yield from (f"        {line}" for line in call_lines(call, self.c, self.env))
        for register in dict.fromkeys(places.values()):
            yield f"        {opaque(register, self.c)}"


def c_type(dtype: str) -> str:
    """Return the C type of elements in memory."""
    known = {"f64": "double", "f32": "float", "f16": "uint16_t", "bf16": "uint16_t"}
    if dtype in known:
        return known[dtype]
    if dtype == "bool":
        return "uint8_t"
    return f"{'u' if dtype[0] == 'u' else ''}int{max(8, int(dtype[1:]))}_t"


def opaque(register: Register, machine: Machine) -> str:
    """Return a statement after which a compiler knows nothing of what a register holds."""
    kind = machine.register_type(register)
    where = "r" if re.fullmatch(r"u?int\d+_t", kind) else "k" if "mask" in kind else VECTOR
    return f'__asm__ volatile("" : "+{where}"({in_register(register.name)}));'


if __name__ == "__main__":
    sys.exit(main())
