"""The verdicts of --target, --needs and --verify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import one_line

from ..shared.common import STREAM, Mistake, to_json
from ..shared.reporters.verdicts import reason

if TYPE_CHECKING:
    from deconv_ir.linter.engine import FileResult

    from .request import LintRequest


def verify(results: Sequence[FileResult], request: LintRequest) -> list[FileResult]:
    """Add the verdict of the OpenVINO that is installed, in a process of its own.

    Raises
    ------
    Mistake
        OpenVINO is not installed, or a file is standard input.
    """
    from deconv_ir.linter.targets.trial import MissingOpenVINOError, Trial
    from deconv_ir.linter.targets.verdict import BLOCKED, VERIFIED, Because, TargetVerdict

    if any(result.file == STREAM for result in results):
        raise Mistake("--verify cannot read standard input (name a file)")
    found = []
    with Trial() as trial:
        try:
            trial.start()
        except MissingOpenVINOError as error:
            raise Mistake(
                f"--verify needs OpenVINO: {one_line(str(error))} (pip install openvino)"
            ) from None
        version = trial.version.split("-")[0]
        for result in results:
            answer = trial.ask(result.file, request.weights)
            because: tuple[Because, ...] = ()
            if not answer.accepted:
                message = " ".join(answer.message.split())
                because = (Because(True, f"{answer.step}: {message}", (version,)),)
            word = VERIFIED if answer.accepted else BLOCKED
            verdict = TargetVerdict(f"openvino={version}", word, because, ((version, word),))
            found.append(result._replace(verdicts=(*result.verdicts, verdict)))
    return found


def needs(results: Sequence[FileResult], format_: str) -> str:
    """Return for each file the oldest release that nothing keeps from it, and the reason."""
    rows = [_need(result) for result in results]
    if format_ == "json":
        return to_json(rows)
    lines = []
    for row in rows:
        likely = row["likely"]
        words = [f"{one_line(row['file'])}: {row['oldest'] or 'none'}"]
        if row["last"] is not None:
            words.append(f"to {row['last']}")
        if row["oldest"] is not None and likely != row["oldest"]:
            words.append(f"(likely from {likely} on)" if likely else "(likely on no release)")
        why = f": {row['reason']}" if row["reason"] else ""
        lines.append(f"{' '.join(words)}{why}\n")
    return "".join(lines)


def _need(result: FileResult) -> dict[str, Any]:
    """Return the need of one file: releases, and the reason that keeps older ones from it."""
    from deconv_ir.linter.targets.verdict import BLOCKED, LIKELY

    row: dict[str, Any] = {
        "file": result.file,
        "oldest": None,
        "last": None,
        "likely": None,
        "layer": None,
        "line": None,
        "reason": None,
    }
    if not result.verdicts:
        return row | {"reason": "the file cannot be read"}
    verdict = result.verdicts[0]
    runs = [release for release, word in verdict.words if word != BLOCKED]
    every = [release for release, _ in verdict.words]
    row["likely"] = next((release for release, word in verdict.words if word == LIKELY), None)
    if runs:
        row["oldest"] = runs[0]
        row["last"] = runs[-1] if runs[-1] != every[-1] else None
    before = every[every.index(runs[0]) - 1] if runs and runs[0] != every[0] else None
    after = every[every.index(runs[-1]) + 1] if row["last"] is not None else None
    for because in verdict.because:
        where = before or after or every[-1]
        if because.blocks and (not runs or before or after) and where in because.of:
            return row | {
                "layer": because.layer,
                "line": because.line,
                "reason": reason(because),
            }
    return row
