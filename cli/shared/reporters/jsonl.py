"""For programs that read line by line: one JSON object for each finding.

Source: JSON Lines, https://jsonlines.org.
"""

from __future__ import annotations

from ..common import to_json
from ..reporters import Report
from .json import as_object


def render(run: Report) -> str:
    """Write one line for each finding, with the keys of the format json; none for a clean run."""
    return "".join(to_json(as_object(f, run.tool), None) for f in run.findings)
