"""Measures by the processor time that a program takes: GIGAHERTZ PROGRAM COUNT.

That is disturbed less by other programs than time by the clock is; of several threads it is the
sum, so have those timed by the clock.  It differs from run to run: isamap has the program compute
so often that starting it matters little, and takes medians.  Needs no package.
"""

import os
import sys

gigahertz, program, count = sys.argv[1:]

# Standard input and output are this program's own.
process = os.posix_spawn(program, [program], os.environ)
_, status, used = os.wait4(process, 0)

if status:
    code = os.waitstatus_to_exitcode(status)
    sys.exit(128 - code if code < 0 else code)
with open(count, "w") as file:
    print(f"{(used.ru_utime + used.ru_stime) * float(gigahertz) * 1e9:.0f}", file=file)
