"""`gradfn check`: is a hand-written derivative right, and if not, why not?

    report = gradfn.check(Square, (x,))     # or gradfn.check(Square), which finds examples
    print(report)                           # a line an audit
    report.raise_failures()                 # CheckError, an AssertionError, in a test

The module may be called: it is the function `check` of gradfn.check.run. Each audit is a
function in gradfn.check.audits. PyTorch's Functions are checked on PyTorch.
"""

from __future__ import annotations

from gradfn._names import callable_as
from gradfn.check.run import check
from gradfn.check.verdict import CheckError, Report, Verdict

__all__ = ["CheckError", "Report", "Verdict", "check"]

callable_as(__name__, check)
