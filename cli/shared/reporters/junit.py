"""JUnit XML: a failed test case for each finding, a passed one for each clean file."""

from __future__ import annotations

from lxml import etree

from deconv_ir.errors import one_line
from deconv_ir.findings import Severity

from ..reporters import Report


def render(run: Report) -> str:
    """Write one test suite; notes of severity info are not failures."""
    suite = etree.Element("testsuite", name=run.tool.name)
    failures = 0
    for result in run.results:
        file = one_line(result.file)
        failed = [f for f in result.findings if f.severity is not Severity.INFO]
        notes = [f for f in result.findings if f.severity is Severity.INFO]
        for finding in failed:
            name = f"{file}:{finding.line or 1}: {finding.code} {finding.rule}"
            case = etree.SubElement(suite, "testcase", classname=file, name=name, time="0")
            failure = etree.SubElement(
                case, "failure", type=finding.code, message=one_line(finding.message)
            )
            failure.text = str(finding)
        if not failed:
            case = etree.SubElement(suite, "testcase", classname=file, name=file, time="0")
            if notes:
                text = "\n".join(f"{note.code} {note.rule}: {note}" for note in notes)
                etree.SubElement(case, "system-out").text = text
        failures += len(failed)
    counts: dict[str | bytes, str | bytes] = {
        "tests": str(len(suite)),
        "failures": str(failures),
        "errors": "0",
        "skipped": "0",
    }
    suite.attrib.update(counts | {"time": "0"})
    suites = etree.Element("testsuites", counts | {"name": run.tool.name})
    suites.append(suite)
    data: bytes = etree.tostring(suites, pretty_print=True, encoding="utf-8", xml_declaration=True)
    return data.decode()
