"""Run a program and write its CPU time in seconds and its peak memory in bytes.

A process of its own, and a small one, run with -I -S: a program's peak counts what the
process that starts it had in memory at that moment.
"""

import os
import sys

process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
unit = 1 if sys.platform == "darwin" else 1024
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
