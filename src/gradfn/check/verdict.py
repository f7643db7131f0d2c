"""What an audit says: verdicts, and the report that gathers them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["FAIL", "PASS", "SKIP", "WARN", "CheckError", "Report", "Verdict"]

PASS, FAIL, WARN, SKIP = "pass", "fail", "warn", "skip"
_RANK = {SKIP: 0, PASS: 1, WARN: 2, FAIL: 3}


@dataclass(frozen=True)
class Verdict:
    """The answer of one audit."""

    audit: str
    level: str  # PASS, FAIL, WARN or SKIP
    text: str = ""  # what was found, or why nothing was looked for
    cause: str = ""  # a short name of what is probably wrong
    example: str = ""  # the smallest call that shows it

    @property
    def rank(self) -> int:
        """How bad it is: the larger, the worse."""
        return _RANK[self.level]

    def line(self) -> str:
        """The verdict in a line."""
        cause = f" [{self.cause}]" if self.cause else ""
        text = f": {self.text}" if self.text else ""
        example = f"; smallest: {self.example}" if self.example else ""
        return f"{self.level:4} {self.audit}{cause}{text}{example}"


@dataclass
class Report:
    """The verdicts of all audits on one Function. True if none failed."""

    function: str
    library: str  # "gradfn" or "torch"
    file: str = ""
    line: int = 0
    examples: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Verdict]:
        """The verdicts that failed."""
        return [v for v in self.verdicts if v.level == FAIL]

    @property
    def warnings(self) -> list[Verdict]:
        """The verdicts that warn."""
        return [v for v in self.verdicts if v.level == WARN]

    @property
    def ok(self) -> bool:
        """Did no audit fail?"""
        return not self.failures

    @property
    def causes(self) -> list[str]:
        """The names of what is wrong, without repetition."""
        return list(dict.fromkeys(v.cause for v in self.failures))

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        what = "ok" if self.ok else "FAILED"
        head = f"{self.function} on {self.library}: {what}"
        return "\n".join([head, *(f"  {v.line()}" for v in self.verdicts)])

    def raise_failures(self) -> None:
        """CheckError with the report, if an audit failed."""
        if not self.ok:
            raise CheckError(self)

    def to_dict(self) -> dict[str, Any]:
        """The report in lists, dicts, strings and numbers."""
        return {**asdict(self), "ok": self.ok}


class CheckError(AssertionError):
    """A Function failed its check. `report` has the verdicts."""

    def __init__(self, report: Report) -> None:
        failed = "\n".join(f"  {v.line()}" for v in report.failures)
        super().__init__(
            f"{report.function} failed its check on {report.library}:\n{failed}"
        )
        self.report = report


def worst(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The worst of them, the first of equals; None of none."""
    return max(verdicts, key=lambda v: v.rank, default=None)
