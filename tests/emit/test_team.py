"""Threads that share the loops of a call."""

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from isamap.emit import team
from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Call, Loop, Register, Scope, Window
from isamap.run.build import build_program, build_shared
from isamap.run.outcome import Crash
from isamap.run.program import run_program
from tests.emit.building import MACHINE, compiled, emitted
from tests.emit.machines import kernel
from tests.emit.samples import Sample, gemm, reversal, sample, stages


def expected(x: np.ndarray, rounds: int) -> dict[str, np.ndarray]:
    y, w, z = x.copy(), x.copy(), np.zeros_like(x)
    for t in range(rounds):
        y = y[::-1].copy()
        y[-1] = y[0]
        z[:] = y[-1]
        if t <= rounds - 2:
            w = z[::-1].copy()
    return {"Y": y, "Z": z, "W": w}


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(("size", "rounds"), [(1, 1), (2, 5), (5, 4), (100, 33)])
def test_what_one_thread_writes_another_one_reads_next(
    size: int, rounds: int, threads: int
) -> None:
    x = np.random.default_rng(size).integers(-99, 99, size, np.int32)
    for _ in range(3):
        got = compiled(stages())(x, threads=threads, symbols={"T": rounds})
        for name, array in expected(x, rounds).items():
            np.testing.assert_array_equal(got[name], array, err_msg=name)


def test_threads_begin_at_once_where_each_reads_what_others_write_over() -> None:
    # Of stages, all threads read the last element of Y, which the next round changes.
    assert "isamap_meet_all(threads);" in emitted(stages()).text.split("_part(")[1]
    for made in (gemm(parallel=True), reversal()):
        assert "isamap_meet_all(threads);" not in emitted(made).text


def test_a_register_that_goes_with_memory_keeps_its_loops_on_one_thread() -> None:
    # One instruction between the loops would leave the other threads without its register.
    r, i = Register("r", "raw", DTYPES["s32"], ()), var("i")
    write = Loop("i", var("N"), (Call("put_s32", (("r", r), ("m", Window("Y", i)))),), True)
    mixed = Loop(
        "j",
        const(1),
        (
            Call("set_s32", (("v", Literal("7", DTYPES["s32"])), ("r", r))),
            Call("put_s32", (("r", r), ("m", Window("X", const(0))))),
        ),
    )
    shapes = kernel("mixed", [("X", "out", "s32", [1]), ("Y", "out", "s32", ["N"])], ["N"])
    made = sample(shapes, (Scope((r,), (mixed, write)),))
    assert "isamap_together" not in emitted(made).text
    got = compiled(made)(threads=3, symbols={"N": 50})
    np.testing.assert_array_equal(got["Y"], np.full(50, 7))


TEAM = Path(team.__file__).with_name("team.h")


@cache
def sanitised() -> Accelerator:
    """Return the machine with programs that watch their threads."""
    tools = MACHINE.toolchain
    assert tools is not None
    return replace(MACHINE, toolchain=replace(tools, flags=(*tools.flags, "-fsanitize=thread")))


@pytest.fixture
def works(tmp_path: Path) -> None:
    """Skip where the compiler or the kernel has no thread sanitiser."""
    source = tmp_path / "nothing.c"
    source.write_text("int main(void) { return 0; }")
    program = tmp_path / "nothing"
    command = ["gcc", "-fsanitize=thread", str(source), "-o", str(program)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("the compiler has no thread sanitiser: install libtsan")
    if subprocess.run([program], capture_output=True, check=False).returncode:
        pytest.skip("programs of the thread sanitiser do not start on this system")


CASES: dict[str, tuple[Sample, dict[str, tuple[int, ...]], dict[str, int]]] = {
    "stages": (stages(), {"X": (64,)}, {"N": 64, "T": 40}),
    "gemm": (gemm(parallel=True), {"A": (5, 7), "B": (7, 37)}, {"M": 5, "N": 37, "K": 7}),
    "reversal": (reversal(), {"X": (9, 50)}, {"N": 50}),
}


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize("name", CASES)
def test_threads_do_not_race(name: str, tmp_path: Path) -> None:
    made, shapes, symbols = CASES[name]
    arrays = {
        p.name: np.ones(shapes[p.name], p.dtype.numpy)
        for p in made.kernel.buffers
        if p.name in shapes
    }
    source = emit_c(made.lowered, sanitised(), made.kernel)
    program = build_program(source, sanitised(), tmp_path)
    for threads in (2, 3):
        got = run_program(program, source, sanitised(), arrays, symbols, threads=threads)
        assert not isinstance(got, Crash), got.message


@pytest.mark.usefixtures("works")
def test_the_sanitiser_sees_a_race(tmp_path: Path) -> None:
    made = stages()
    source = emit_c(made.lowered, sanitised(), made.kernel)
    wrong = replace(source, functions=source.functions.replace("isamap_meet(threads);", ";"))
    program = build_program(wrong, sanitised(), tmp_path)
    x = np.ones(64, np.int32)
    for _ in range(30):  # one thread may have done all before the other one had a processor
        got = run_program(program, wrong, sanitised(), {"X": x}, {"N": 64, "T": 40}, threads=2)
        if isinstance(got, Crash):
            break
    assert isinstance(got, Crash)
    assert "data race" in got.message


# Threads come by three loops in any order of their steps; each iteration must be taken once.
TAKING = """
#define _REENTRANT 1
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline int64_t isamap_min(int64_t a, int64_t b) {{ return a < b ? a : b; }}
#include "{team}"
enum {{ THREADS = 5, LOOPS = 9 }};
static char taken[LOOPS][300];
int main(int n, char **given)
{{
    (void)n;
    srand((unsigned)atoi(given[1]));
    const int threads = 1 + rand() % THREADS;
    static int64_t counts[LOOPS];
    static struct isamap_turn turns[THREADS];
    static uint64_t loops[THREADS];
    static int at[THREADS];
    for (int k = 0; k < LOOPS; ++k) counts[k] = rand() % 3 ? rand() % 300 : rand() % 4;
    /* One that computes alone counts its loops on its own: a team has had some of these numbers. */
    for (int k = 1; k <= ISAMAP_LOOPS && threads == 1; ++k)
        isamap_taken[(1000 + k) % ISAMAP_LOOPS][0].units = (uint64_t)(1000 + k) * ISAMAP_UNITS + 5;
    for (int t = 0; t < threads; ++t) {{
        loops[t] = 1000;
        turns[t] = isamap_at(counts[0], &loops[t], t, threads);
    }}
    for (int left = threads; left;) {{
        const int t = rand() % threads;
        if (at[t] == LOOPS || (t == 1 && rand() % 9)) continue; /* the second one is slow */
        if (isamap_take(&turns[t])) {{
            assert(turns[t].from < turns[t].past);
            for (int64_t i = turns[t].from; i < turns[t].past; ++i) ++taken[at[t]][i];
        }} else if (++at[t] == LOOPS) {{
            --left;
        }} else {{
            turns[t] = isamap_at(counts[at[t]], &loops[t], t, threads);
        }}
    }}
    for (int k = 0; k < LOOPS; ++k)
        for (int64_t i = 0; i < 300; ++i) assert(taken[k][i] == (i < counts[k]));
    puts("done");
    return 0;
}}
"""


def built(text: str, folder: Path) -> Path:
    """Compile a program around the runtime and return where it is."""
    source, program = folder / "team.c", folder / "team"
    source.write_text(text.format(team=TEAM))
    command = ["gcc", "-D_GNU_SOURCE", "-pthread", str(source), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return program


def test_each_iteration_is_taken_once(tmp_path: Path) -> None:
    program = built(TAKING, tmp_path)
    for seed in range(200):
        done = subprocess.run([program, str(seed)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "done"), (seed, done.stderr)


# Nobody waits for a worker that does not come, which is too late once the others have met; one that
# sleeps is brought to the caller's processor.
LATE = """
#define _REENTRANT 1
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static inline int64_t isamap_min(int64_t a, int64_t b) {{ return a < b ? a : b; }}
#include "{team}"
static int taken[2][100];
static void pass(uint64_t *loops, int thread, int threads, int number)
{{
    struct isamap_turn turn = isamap_at(100, loops, thread, threads);
    while (isamap_take(&turn))
        for (int64_t i = turn.from; i < turn.past; ++i) ++taken[number][i];
}}
static void alone(const void *call, uint64_t *loops, int thread, int threads)
{{
    (void)call;
    assert(thread == 0 && threads == 2);
    assert(!isamap_join(isamap_team.round - 512));
    pass(loops, thread, threads, 0);
    isamap_meet(threads);
    pass(loops, thread, threads, 1);
    /* The other one comes late, finds nothing to do, and is waited for from now on. */
    assert(isamap_join(isamap_team.round));
    uint64_t others[] = {{isamap_team.loops, 0}};
    pass(others, 1, threads, 0);
    uint64_t *own = loops;
    loops = others;
    isamap_meet(threads); /* where the first one was alone */
    pass(others, 1, threads, 1);
    loops = own;
    assert(isamap_team.crew % ISAMAP_LATE == 2 * ISAMAP_IN);
    __atomic_fetch_add(&isamap_team.crew, ISAMAP_HERE, __ATOMIC_RELEASE); /* it waits */
    isamap_meet(threads);
    assert(isamap_team.crew % ISAMAP_LATE == 2 * ISAMAP_IN);
    __atomic_sub_fetch(&isamap_team.crew, ISAMAP_IN, __ATOMIC_RELEASE);
    /* There may be more meetings than the crew's number has room for. */
    while (loops[1] < ISAMAP_MEETINGS + 5) isamap_meet(threads);
    assert(!isamap_join(isamap_team.round));
}}
static int moved;
static void sleeps(const void *call, uint64_t *loops, int thread, int threads)
{{
    (void)call, (void)loops, (void)threads;
    if (thread == 0) {{
        const uint64_t *crew = &isamap_team.crew;
        while (__atomic_load_n(crew, __ATOMIC_ACQUIRE) % ISAMAP_HERE != 2) sched_yield();
        return;
    }}
    for (cpu_set_t allowed; !moved; usleep(2000)) {{
        assert(pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) == 0);
        moved = __atomic_load_n(&isamap_team.fetched, __ATOMIC_RELAXED) && CPU_COUNT(&allowed) == 1;
    }}
}}
static void nothing(const void *call, uint64_t *loops, int thread, int threads)
{{
    (void)call, (void)loops, (void)thread, (void)threads;
}}
int main(void)
{{
    cpu_set_t allowed, own;
    assert(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    isamap_team.size = 1;
    isamap_team.workers[0] = pthread_self();
    isamap_together(alone, NULL, 2);
    assert(!isamap_join(isamap_team.round));
    for (int i = 0; i < 100; ++i) assert(taken[0][i] == 1 && taken[1][i] == 1);
    isamap_team.size = 0;
    sched_setaffinity(0, sizeof allowed, &allowed); /* it took this thread for its worker */
    isamap_together(sleeps, NULL, 2);
    assert(moved);
    /* With fewer processors than threads a worker may be on any of them in the next call. */
    isamap_together(nothing, NULL, CPU_COUNT(&allowed) + 1);
    pthread_getaffinity_np(isamap_team.workers[0], sizeof own, &own);
    assert(CPU_EQUAL(&own, &allowed));
    puts("done");
    return 0;
}}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are brought elsewhere on Linux only")
def test_a_call_does_not_wait_for_workers_that_others_keep_from_running(tmp_path: Path) -> None:
    program = built(LATE, tmp_path)
    for _ in range(20):
        done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


FORKING = """
import os, sys
import numpy as np
sys.path.insert(0, {root!r})
from tests.emit.building import compiled
from tests.emit.samples import stages
from tests.emit.test_team import expected
x = np.arange(50, dtype=np.int32)
call = compiled(stages())
def right():
    got = call(x, threads=3, symbols=dict(T=9))
    return all((got[n] == a).all() for n, a in expected(x, 9).items())
assert right()
child = os.fork()
if child == 0:
    os._exit(0 if right() and right() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert right()
print("done")
"""


def test_a_fork_has_threads_of_its_own_and_programs_end() -> None:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", FORKING.format(root=root)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no list of threads")
def test_threads_end_with_the_library(tmp_path: Path) -> None:
    text = """
import ctypes, _ctypes, os, sys
count = lambda: len(os.listdir("/proc/self/task"))
before = count()
library = ctypes.CDLL(sys.argv[1])
call = library.stages
x, y, z, w = ((ctypes.c_int32 * 8)(*range(8)) for _ in range(4))
room = ctypes.create_string_buffer(4096)
for _ in range(3):
    assert call(x, y, z, w, ctypes.c_int64(8), ctypes.c_int64(3), room, 3) == 0
assert count() == before + 2, count()
_ctypes.dlclose(library._handle)
assert count() == before, count()
print("done")
"""
    library = build_shared(emitted(stages()), MACHINE, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", text, str(library)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
