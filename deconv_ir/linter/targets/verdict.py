"""The verdict on a file for a target: blocked, unverified or likely; verified by a trial only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deconv_ir.linter.releases import RELEASES, Release, Target, release_of, shown
from deconv_ir.linter.targets.reasons import reasons
from deconv_ir.linter.targets.table import measured

if TYPE_CHECKING:
    from deconv_ir.findings import Finding
    from deconv_ir.ir.graph import Layer
    from deconv_ir.linter.context import LintContext

BLOCKED: Final = "blocked"
"""The release cannot read the file, or cannot compile it for the CPU."""
UNVERIFIED: Final = "unverified"
"""The tables do not tell."""
LIKELY: Final = "likely"
"""Everything in the file is accepted, each by itself, in small networks."""
VERIFIED: Final = "verified"
"""This release has read and compiled the file."""

DISPUTED: Final = frozenset({"IR403"})
"""Findings after which inference goes on with declared element types, which OpenVINO ignores."""
RULES: Final = "rules"
"""The section of the table about findings: code -> releases that accept files with it."""


class Because(NamedTuple):
    """A reason for a verdict."""

    blocks: bool
    message: str
    of: tuple[str, ...]
    """The releases, in their order."""
    line: int | None = None
    layer: str | None = None
    """As ``'name' (Type, id 5)``, the first layer with this reason."""
    more: int = 0
    """Further layers with it."""

    @property
    def releases(self) -> str:
        """The releases in words, as ``2023.0 to 2024.4``."""
        return shown_releases(frozenset(map(release_of, self.of)))


class TargetVerdict(NamedTuple):
    """The verdict on a file."""

    target: str
    word: str
    because: tuple[Because, ...] = ()
    """Reasons that block first."""
    words: tuple[tuple[str, str], ...] = ()
    """The word of each release of the target."""

    def plain(self) -> dict[str, Any]:
        """Return the verdict as JSON has it."""
        return {
            "target": self.target,
            "verdict": self.word,
            "releases": dict(self.words),
            "reasons": [
                {
                    "blocks": because.blocks,
                    "message": because.message,
                    "releases": list(because.of),
                    "line": because.line,
                    "layer": because.layer,
                    "more_layers": because.more,
                }
                for because in self.because
            ],
        }


def judge(
    contexts: Sequence[LintContext],
    findings: Iterable[Finding],
    targets: Iterable[Target],
) -> tuple[TargetVerdict, ...]:
    """Return a verdict for each target.

    Parameters
    ----------
    contexts : sequence of LintContext
        The file and its bodies.
    findings : iterable of Finding
        Those of severity error and warning, complete.
    targets : iterable of Target
    """
    found = list(findings)
    return tuple(_judge(contexts, found, target) for target in targets)


def _judge(
    contexts: Sequence[LintContext], findings: list[Finding], target: Target
) -> TargetVerdict:
    merged: dict[tuple[bool, str, frozenset[Release]], Because] = {}

    def add(
        blocks: bool, message: str, where: frozenset[Release], line: int | None, layer: str | None
    ) -> None:
        old = merged.get((blocks, message, where))
        merged[blocks, message, where] = (
            old._replace(more=old.more + 1)
            if old is not None
            else Because(blocks, message, tuple(map(shown, sorted(where))), line, layer)
        )

    for context in contexts:
        for reason in reasons(context, target.releases):
            at = None if reason.layer is None else context.graph.layers[reason.layer]
            label = None if reason.layer is None else context.parsed.label(reason.layer)
            add(reason.blocks, reason.message, reason.releases, at and at.line, label)
    # Without a Result nothing is needed, and what nothing needs is not read.
    has_result = any(layer.type == "Result" for layer in _layers(contexts[0]))
    for finding in findings:
        for refused, where in _of_finding(finding, target.releases):
            blocks = refused and has_result
            add(blocks, f"{finding.code} {finding.message}", where, finding.line, finding.layer)
    words = []
    for release in target.releases:
        blocking = {blocks for blocks, _, where in merged if release in where}
        word = BLOCKED if True in blocking else UNVERIFIED if blocking else LIKELY
        words.append((shown(release), word))
    said = {word for _, word in words}
    worst = next((word for word in (BLOCKED, UNVERIFIED) if word in said), LIKELY)
    because = sorted(merged.values(), key=lambda b: (not b.blocks, b.line or 0))
    return TargetVerdict(target.text, worst, tuple(because), tuple(words))


def _layers(context: LintContext) -> tuple[Layer, ...]:
    graph = context.parsed.graph
    return () if graph is None else graph.layers


def _of_finding(
    finding: Finding, releases: Iterable[Release]
) -> Iterable[tuple[bool, frozenset[Release]]]:
    """Return whether a finding means that releases refuse the file, and which."""
    found = measured().of(RULES).get(finding.code)
    asked = frozenset(releases)
    if found is None or finding.code in DISPUTED:
        return [(False, asked)]
    blocked = asked & frozenset(measured().releases) - found.accepted - found.unclear
    unknown = asked - blocked - found.accepted
    return [(blocks, where) for blocks, where in ((True, blocked), (False, unknown)) if where]


def shown_releases(releases: frozenset[Release]) -> str:
    """Return releases in words, runs of them by their ends."""
    runs: list[list[Release]] = []
    for index, release in enumerate(RELEASES):
        if release not in releases:
            continue
        if runs and RELEASES[index - 1] == runs[-1][-1]:
            runs[-1].append(release)
        else:
            runs.append([release])
    words = [shown(r[0]) if len(r) == 1 else f"{shown(r[0])} to {shown(r[-1])}" for r in runs]
    unknown = sorted(releases.difference(RELEASES))
    return ", ".join([*words, *map(shown, unknown)])
