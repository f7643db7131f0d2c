"""Reports on the terminal, with rich."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from gradfn.check.verdict import FAIL, PASS, SKIP, WARN, Report, Verdict

MARKS = {
    PASS: ("✓", "green"),
    FAIL: ("✗", "bold red"),
    WARN: ("!", "yellow"),
    SKIP: ("·", "dim"),
}


def table(report: Report, *, all_lines: bool = True) -> Any:
    """A report as something that rich prints; of what passed, perhaps only the number."""
    head = Text()
    head.append(report.function, "bold")
    where = f"{_short(report.file)}:{report.line}" if report.file else ""
    head.append(f"  on {report.library}  {where}", "dim")
    grid = Table(box=None, padding=(0, 1), show_header=False, expand=False)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for verdict in report.verdicts:
        if all_lines or verdict.level in (FAIL, WARN):
            grid.add_row(*_cells(verdict))
    return Group(head, grid)


def _short(file: str) -> str:
    """The file's path from where the user stands, if it lies below."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _cells(verdict: Verdict) -> list[Text]:
    mark, style = MARKS[verdict.level]
    body = Text()
    if verdict.cause:
        body.append(f"{verdict.cause}: ", style)
    body.append(verdict.text, "dim" if verdict.level in (SKIP, PASS) else "")
    if verdict.example:
        body.append(f"\nsmallest input: {verdict.example}", "cyan")
    return [Text(mark, style), Text(verdict.audit, style if verdict.cause else ""), body]


def summary(reports: list[Report]) -> Text:
    """The last line."""
    failed = [r for r in reports if not r.ok]
    total = len(reports)
    plural = "Function" if total == 1 else "Functions"
    if not failed:
        return Text(f"{total} {plural} checked, none failed", "green")
    names = ", ".join(r.function for r in failed)
    return Text(f"{len(failed)} of {total} {plural} failed: {names}", "bold red")


def show(reports: list[Report], console: Console, *, quiet: bool = False) -> None:
    """Prints them all."""
    for report in reports:
        console.print(table(report, all_lines=not quiet))
        console.print()
    console.print(summary(reports))
