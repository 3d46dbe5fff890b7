"""Recall and precision on IRs that OpenVINO saved (tests/fixtures/ir).

One thing in a clean file is changed at random, seeded.  An oracle that shares no code with the
linter (`oracle.py`: lxml and NumPy) runs the network on sample shapes and tells whether the changed
file is consistent. The linter must find an inconsistency by one of the rules for that kind of
mistake, in the right place; consistent files are counted apart.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from deconv_ir.findings import Finding, Severity
from deconv_ir.linter.engine import FileResult, check_bytes, check_file
from deconv_ir.linter.options import choose

from .mutations import Mutation, mutate
from .oracle import judge, judge_file

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures/ir").glob("*.xml"))
DEFAULT = choose()
CHUNKS = 4
WANTED = 800 // CHUNKS

# Kind of mistake -> rules that report it in the line of the change ...
AT_THE_LINE = {
    "dim": {"IR401", "IR402", "IR209", "IR109"},
    "rank": {"IR401", "IR209"},
    "attribute": {
        *("IR107", "IR301", "IR302", "IR303", "IR304", "IR305", "IR306", "IR307"),
        *("IR308", "IR309", "IR311", "IR411", "IR503"),
    },
    "edge": {"IR203", "IR204", "IR205"},
    "offset": {"IR301", "IR303", "IR502", "IR503", "IR504", "IR506"},
    "type": {"IR301", "IR306", "IR503"},
    "precision": {"IR110", "IR210", "IR403"},
    "layer": {"IR213", "IR214", "IR301", "IR410", "IR412", "IR404", "IR415", "IR302"},
    "id": {"IR201", "IR212", "IR109"},
}
# ... and rules that report its consequences in a later layer: the file does not show whether a
# stride or the declared dims are wrong.
FURTHER_ON = {
    "attribute": {
        *("IR416", "IR401", "IR402", "IR403", "IR404", "IR405", "IR407", "IR408"),
        *("IR409", "IR411"),
        *("IR412", "IR413", "IR415", "IR209"),
    },
    "edge": {
        *("IR206", "IR207", "IR208", "IR209", "IR210"),
        *("IR401", "IR402", "IR403", "IR404", "IR405", "IR407", "IR408", "IR410", "IR411"),
        "IR416",
        *("IR412", "IR413", "IR415"),
    },
    "offset": {"IR416", "IR401", "IR402", "IR409", "IR411", "IR413", "IR415", "IR504", "IR506"},
    "type": {"IR403", "IR408", "IR410", "IR415", "IR210"},
    "layer": {
        "IR416",
        "IR401",
        "IR403",
        "IR208",
        "IR213",
        "IR107",
        "IR301",
        "IR412",
        "IR404",
        "IR206",
    },
    "id": {"IR203", "IR204", "IR206", "IR208"},
    "rank": {"IR401", "IR209"},
}


def layers_from(result: FileResult, line: int) -> set[int]:
    """Return the lines of the layer that contains a line, and of all layers behind it."""
    parsed = result.parsed
    assert parsed is not None
    if parsed.graph is None or not parsed.layers:
        return set()
    locator = parsed.locator()
    assert parsed.file_text is not None
    position = parsed.file_text.position
    extents = []
    for index in range(len(parsed.layers)):
        element = locator.layer(index)
        extents.append(range(position(element.start)[0], position(element.end)[0] + 1))
    reached = {i for i, extent in enumerate(extents) if line in extent}
    sources = parsed.graph.topology.sources
    for _ in range(len(sources)):
        more = {i for i, row in enumerate(sources) if any(s and s[0] in reached for s in row)}
        if more <= reached:
            break
        reached |= more
    return {number for index in reached for number in extents[index]}


def is_right(finding: Finding, mutation: Mutation, result: FileResult) -> bool:
    """Return whether a finding reports the change, in the right place."""
    if finding.line == mutation.line and finding.code in AT_THE_LINE[mutation.kind]:
        return True
    if finding.code not in FURTHER_ON.get(mutation.kind, ()):
        return False
    if mutation.kind in ("edge", "id"):
        return True  # any of the layers at the edge's two ends, before and after the change
    return finding.line in layers_from(result, mutation.line) or (
        finding.code in ("IR504", "IR506")  # the bytes belong to another constant
    )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_recall(chunk: int) -> None:
    choices = random.Random(20_000 + chunk)
    originals = [(p, p.read_text(), p.with_suffix(".bin")) for p in FIXTURES]
    kinds: Counter[str] = Counter()
    missed, misplaced, alarms = [], [], []
    while kinds.total() < WANTED:
        path, text, weights = choices.choice(originals)
        mutation = mutate(choices, text)
        verdict = judge(mutation.text.encode(), weights.read_bytes())
        result = check_bytes(mutation.text.encode(), path.name, DEFAULT, weights)
        told = f"{path.name}:{mutation.line} {mutation.kind} {mutation.was!r} -> {mutation.now!r}"
        if verdict is None:
            alarms += [f"{told}: {f}" for f in result.findings if f.severity is Severity.ERROR]
            continue
        kinds[mutation.kind] += 1
        if not result.findings:
            missed.append(f"{told}: {verdict}")
        elif not any(is_right(f, mutation, result) for f in result.findings):
            found = [(f.code, f.line) for f in result.findings]
            misplaced.append(f"{told}: {verdict}; found {found}")
    assert missed == []
    assert misplaced == []
    assert alarms == []
    assert len(kinds) == 9, "every kind of mistake was made"


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_precision(path: Path) -> None:
    assert judge_file(path) is None
    assert check_file(path, DEFAULT).findings == []
