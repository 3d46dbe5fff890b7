"""The reports of deconv-lint: findings in the requested format, counts, the page of --html."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import utf_8

from ..shared.common import STREAM, Mistake
from ..shared.reporters import Report, render, write

if TYPE_CHECKING:
    from deconv_ir.findings import Finding
    from deconv_ir.linter.options import CheckOptions

    from .request import LintRequest


def report(run: Report, request: LintRequest) -> None:
    """Print the findings, or their counts by rule, or write them to the file of --output."""
    if request.statistics:
        from .rules import count_by_rule

        text = count_by_rule(run, request.format_)
    elif request.format_ == "text" and request.quiet:
        from ..shared.reporters.text import show

        shown = [show(f, result) for result in run.results for f in result.findings]
        text = "".join(f"{line}\n" for line in shown)
    else:
        text = render(request.format_, run)
    write(text, request.format_, request.output)


def require_one(files: Sequence[str]) -> None:
    """Require a single file whose text can be read again."""
    if len(files) != 1:
        raise Mistake(f"--html shows a single model, found {len(files)}")
    if files[0] == STREAM:
        raise Mistake("--html cannot show standard input (name a file)")


def write_html(
    file: str, findings: Sequence[Finding], options: CheckOptions, request: LintRequest
) -> None:
    """Write the page of a model with the findings of a run."""
    from deconv_ir.drawing.page.html import write_page
    from deconv_ir.formats.openvino_xml.weights import weights_beside

    from ..shared.pages import progress, read_linted_file, read_model
    from ..shared.pages import write as write_file

    data, _ = read_model(file, request.limits)
    weights = request.weights or weights_beside(file)
    linted = read_linted_file(data, file, options, weights, request.limits)
    page = write_page(linted._replace(findings=findings), progress=progress())
    write_file(utf_8(page), request.html or "")
