"""The options of deconv-lint as one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..shared.common import STREAM, Mistake
from ..shared.options import (
    FILE,
    OF_AN_IR,
    SEMANTICS,
    SEVERITIES,
    IntegerRange,
    Options,
    argument,
    completer,
    flag,
    given,
    limit_options,
    option,
    weights_beside,
)
from ..shared.reporters import FORMAT, OUTPUT

if TYPE_CHECKING:
    from deconv_ir.limits import Limits


def _rules(text: str) -> Any:
    return option("RULES", text, multiple=True, shell_complete=completer("complete_rules"))


class LintRequest(Options):
    """The options of deconv-lint."""

    paths: tuple[str, ...] = argument("[PATH...]", nargs=-1)
    format_: str = given(FORMAT)
    output: str | None = given(OUTPUT)
    html: str | None = option("FILE", "Also write the page of deconv-show with them.", type=FILE)
    select: tuple[str, ...] = _rules("Run these rules only.")
    ignore: tuple[str, ...] = _rules("Leave these rules out.")
    extend_select: tuple[str, ...] = _rules("Run these rules too.")
    severity: str | None = option(
        None,
        "Run rules of this severity and above. Default: warning.",
        type=click.Choice(SEVERITIES),
    )
    semantics: str | None = option(
        None,
        "Rules to follow where documents and runtime differ. Default: spec.",
        type=click.Choice(SEMANTICS),
    )
    shapes: tuple[str, ...] = option(
        "NAME=SHAPE",
        "Check whether the layers fit at another input shape, as in data=1,3,64,64.",
        "--shape",
        "--reshape",
        multiple=True,
    )
    weights: str | None = weights_beside()
    target: tuple[str, ...] = option(
        "OPENVINO",
        "Whether the files run on releases: openvino=2024.6, or openvino>=2023.0.",
        multiple=True,
    )
    needs: bool = flag("Print the oldest release that each file needs, and why.")
    verify: bool = flag("Compile the files with the OpenVINO that is installed.")
    deep: bool = flag("Read all weights: look for NaN, infinity, zeros.")
    preview: bool = flag("Run the rules in preview, too.")
    fix: bool = flag("Fix findings in place; the .bin is never changed.")
    unsafe_fixes: bool = flag(
        "With --fix or --diff: also make fixes that the rest of the file does not confirm."
    )
    diff: bool = flag("Show the changes of --fix without making them.")
    fixable: tuple[str, ...] = _rules("Fix findings of these rules only.")
    unfixable: tuple[str, ...] = _rules("Fix no finding of these rules.")
    show_fixes: bool = flag("With --fix or --diff: list the findings that are fixed.")
    baseline: str | None = option("FILE", "Ignore the findings recorded in this file.", type=FILE)
    update_baseline: bool = flag("Write the findings to the baseline.")
    config: str | None = option(
        "FILE", "Use these settings, not those found next to the files.", type=FILE
    )
    isolated: bool = flag("Ignore all settings files.")
    exit_zero: bool = flag("Exit with 0 even if there are findings.")
    exit_zero_on_no_files: bool = flag("Exit with 0 even if no file is found.")
    statistics: bool = flag("Count findings by rule.")
    show_files: bool = flag("List the files that would be checked, and exit.")
    show_settings: bool = flag("Show the settings in effect, and exit.")
    settings_schema: bool = flag("Print the JSON schema of settings files.")
    list_rules: bool = flag("List all rules and exit.")
    explain: str | None = option(
        "RULE", "Explain a rule and exit.", shell_complete=completer("complete_rule")
    )
    stdin_filename: str | None = option("NAME", "File name to report for standard input ('-').")
    watch: bool = flag("Check again whenever a file changes, until interrupted.")
    jobs: int | None = option(
        "N",
        "Number of processes. Default: all cores where that is faster.",
        type=IntegerRange(1),
    )
    limits: Limits = given(limit_options(OF_AN_IR))
    no_cache: bool = flag("Check files even if their results are cached.")
    cache_dir: str | None = option("DIR", "Directory of the cache.", type=FILE)
    quiet: bool = flag("Print findings only: no summary, no progress.", "-q", "--quiet")
    _stdio = given(click.option("--stdio", is_flag=True, hidden=True, expose_value=False))
    """An option that editors add."""

    def require_consistent(self) -> None:
        """Require that options do not contradict each other."""
        if self.fix and self.diff:
            raise Mistake("--fix and --diff cannot be combined")
        if self.needs and (self.target or self.verify):
            raise Mistake("--needs considers all releases: leave --target and --verify out")
        if (self.needs or self.verify) and (self.fix or self.diff):
            raise Mistake("--fix and --diff cannot be combined with --needs or --verify")
        if self.unsafe_fixes and not (self.fix or self.diff):
            raise Mistake("--unsafe-fixes requires --fix or --diff")
        if self.show_fixes and not (self.fix or self.diff):
            raise Mistake("--show-fixes requires --fix or --diff")
        if self.watch and (STREAM in self.paths or self.diff or self.update_baseline):
            raise Mistake("--watch cannot be combined with '-', --diff or --update-baseline")
        if (self.fix or self.diff) and self.shapes:
            raise Mistake(
                "--fix and --diff cannot be combined with --shape: the file declares its own shapes"
            )
