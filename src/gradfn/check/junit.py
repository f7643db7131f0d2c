"""Reports as JUnit XML, which continuous integration shows: a suite a Function."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from gradfn.check.verdict import FAIL, SKIP, WARN, Report, Verdict


def junit(reports: Iterable[Report]) -> str:
    """The XML of the reports."""
    root = ET.Element("testsuites", name="gradfn check")
    for report in reports:
        count = dict.fromkeys((FAIL, SKIP), 0)
        for verdict in report.verdicts:
            count[verdict.level] = count.get(verdict.level, 0) + 1
        suite = ET.SubElement(
            root,
            "testsuite",
            name=report.function,
            tests=str(len(report.verdicts)),
            failures=str(count[FAIL]),
            errors="0",
            skipped=str(count[SKIP]),
            time=f"{report.seconds:.3f}",
        )
        for verdict in report.verdicts:
            _case(suite, report, verdict)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, report: Report, verdict: Verdict) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=f"{report.library}.{report.function}",
        name=verdict.audit,
        file=report.file,
        line=str(report.line),
    )
    if verdict.level == FAIL:
        failure = ET.SubElement(case, "failure", message=verdict.text, type=verdict.cause)
        failure.text = verdict.line()
    elif verdict.level == SKIP:
        ET.SubElement(case, "skipped", message=verdict.text)
    elif verdict.level == WARN:
        ET.SubElement(case, "system-out").text = verdict.line()
