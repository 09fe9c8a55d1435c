"""Measures by the clock of this machine: GIGAHERTZ PROGRAM COUNT.

Times the program from its start to its end.  Such times differ from run to run: isamap has the
program compute so often that starting it matters little, and takes medians.  Needs no package.
"""

import os
import sys
from time import perf_counter_ns

gigahertz, program, count = sys.argv[1:]

start = perf_counter_ns()
# Standard input and output are this program's own.
process = os.posix_spawn(program, [program], os.environ)
_, status = os.waitpid(process, 0)
taken = perf_counter_ns() - start

if status:
    code = os.waitstatus_to_exitcode(status)
    sys.exit(128 - code if code < 0 else code)
with open(count, "w") as file:
    print(f"{taken * float(gigahertz):.0f}", file=file)
