"""SARIF 2.1.0, for code scanning services and editors.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from deconv_ir.findings import Finding, Severity
from deconv_ir.version import __version__

from ..common import to_json
from ..reporters import LINT, Fingerprints, Report, from_here

if TYPE_CHECKING:
    from ..reporters import AnyRule, Tool

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(run: Report) -> str:
    """Write one SARIF run; it describes the rules with findings."""
    codes = sorted({finding.code for finding in run.findings})
    fingerprints = Fingerprints()
    results = [
        _result(
            finding,
            codes.index(finding.code),
            result.lines,
            run.tool.name,
            fingerprints.of(finding),
        )
        for result in run.results
        for finding in result.findings
    ]
    pages = run.docs_url or rules_page() if run.tool is LINT else None
    rules = [_rule(code, run.tool.rule(code), pages, run.tool) for code in codes]
    content: dict[str, Any] = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": run.tool.name,
                        "semanticVersion": __version__,
                        "rules": rules,
                    }
                },
                "columnKind": "unicodeCodePoints",
                "artifacts": [
                    {
                        "location": {"uri": _uri(result.file)},
                        "mimeType": run.tool.mime_type(result.file),
                    }
                    for result in run.results
                ],
                "results": results,
            }
        ],
    }
    return to_json(content)


def _rule(code: str, entry: AnyRule, page: str | None, tool: Tool) -> dict[str, Any]:
    rule = {
        "id": code,
        "name": "".join(word.capitalize() for word in entry.name.split("-")),
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": f"{entry.title} {entry.why}"},
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
        "properties": {"tags": [entry.family]},
    }
    address = rule_uri(page, code) if tool is LINT else None
    if address:
        rule["helpUri"] = address
    return rule


def rule_uri(page: str | None, code: str) -> str | None:
    """Return the address of a lint rule: its own page, or its place in the page of rules."""
    from deconv_ir.linter.catalogue import RULES

    rule = RULES.get(code)
    if rule is None or not code.startswith("IR"):
        return rule.docs if rule and rule.docs else None
    return f"{page}#{code.lower()}-{rule.name}" if page else None


def rules_page() -> str | None:
    """Return the address of docs/rules.md in the repository from which pip installed the package.

    Source: Python packaging user guide, "Recording the Direct URL Origin of installed
    distributions" (direct_url.json).
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("deconv-ir").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    commit = origin.get("vcs_info", {}).get("commit_id")
    url = origin.get("url", "")
    if commit is None or not url.startswith("https://"):
        return None
    return f"{url.removesuffix('/').removesuffix('.git')}/blob/{commit}/docs/rules.md"


def _result(
    finding: Finding, index: int, lines: Mapping[int, str], tool: str, fingerprint: str
) -> dict[str, Any]:
    message = finding.message + (f" ({finding.hint})" if finding.hint else "")
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(finding.file or "")}}
    }
    if finding.line is not None:
        region: dict[str, Any] = {"startLine": finding.line}
        if finding.column is not None:
            region["startColumn"] = finding.column
        if finding.end_column is not None:
            region["endColumn"] = finding.end_column
        if finding.line in lines:
            region["snippet"] = {"text": lines[finding.line]}
        location["physicalLocation"]["region"] = region
    if finding.layer is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.layer, "kind": "member"}]
    first, *rest = tool.split("-")
    tool_name = first + "".join(word.capitalize() for word in rest)
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": message},
        "locations": [location],
        "partialFingerprints": {f"{tool_name}/v2": fingerprint[:32]},
    }


def _uri(file: str) -> str:
    """Return a relative reference if possible, as code scanning requires."""
    path = Path(from_here(file))
    if path.is_absolute():
        return path.as_uri()
    # A colon in the first segment would look like a scheme.
    return quote(os.fsencode(path.as_posix())).replace(":", "%3A")
