"""deconv-run: run an IR, from .npy files to .npy files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from deconv_ir.errors import DeconvError

from . import npy
from .common import EXIT_DIFFERS, Mistake, run_command, version_option, warn

if TYPE_CHECKING:
    from deconv_ir import Finding, Model
    from deconv_ir.dtypes import Array

    from .compare import Comparison

EPILOG = """\b
Examples:
  deconv-run model.xml --input x.npy
  deconv-run model.xml --input data=x.npy --input mask=m.npy --output results/
  deconv-run model.xml --random-inputs 0 --json
  deconv-run model.xml --input x.npy --expect y.npy --rtol 1e-4
  deconv-run layer.xml --input x.npy --input filter.npy --output - | ...

\b
Exit codes: 0 done, 1 the comparison failed, 2 something is wrong with the
model, the arrays or the options, 130 interrupted.

\b
Types that NumPy lacks (bf16, f8) are stored in .npy files as raw bytes,
dtype V2 or V1: array.view(ml_dtypes.bfloat16) gives them back.

\b
Shell completion: eval "$(_DECONV_RUN_COMPLETE=bash_source deconv-run)", with
zsh_source or fish_source for those shells.
"""


def _kernel_details() -> str:
    from .about import describe_kernels

    return describe_kernels()


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", metavar="MODEL.xml", type=click.Path())
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE.npy",
    help="Array for an input of the model; without a name, in order. '-': standard input.",
)
@click.option(
    "--output",
    metavar="FILE.npy|DIR",
    help="Where outputs go: a file, a directory, or '-' for standard output. "
    "Default: one .npy per output, in this directory (none with --expect).",
)
@click.option("--weights", metavar="FILE.bin", type=click.Path(), help="Default: beside the model.")
@click.option(
    "--semantics",
    type=click.Choice(["spec", "openvino"]),
    default="spec",
    show_default=True,
    help="Whose rule decides where the documents and the OpenVINO runtime differ.",
)
@click.option("--layer", metavar="NAME_OR_ID", help="Run this layer alone.")
@click.option("--strict", is_flag=True, help="Declared dims that are wrong are errors.")
@click.option(
    "--random-inputs",
    type=click.IntRange(0),
    metavar="SEED",
    help="Seeded random arrays for the inputs that are not given.",
)
@click.option(
    "--expect",
    multiple=True,
    metavar="[NAME=]FILE.npy",
    help="Reference for an output; exit code 1 when out of tolerance.",
)
@click.option("--rtol", type=click.FloatRange(0), default=1e-5, show_default=True)
@click.option("--atol", type=click.FloatRange(0), default=1e-6, show_default=True)
@click.option("--cast", is_flag=True, help="Convert inputs of another element type (f64 to f32).")
@click.option("--force", is_flag=True, help="Overwrite output files.")
@click.option("--threads", type=click.IntRange(1), help="Default: all cores.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
@version_option("deconv-run", _kernel_details)
def command(
    model: str,
    inputs: tuple[str, ...],
    output: str | None,
    weights: str | None,
    semantics: str,
    layer: str | None,
    strict: bool,
    random_inputs: int | None,
    expect: tuple[str, ...],
    rtol: float,
    atol: float,
    cast: bool,
    force: bool,
    threads: int | None,
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> int:
    """Run the network in MODEL.xml on arrays from .npy files."""
    if output == npy.STREAM and as_json:
        raise Mistake("--output - and --json would both write to standard output")
    # NumPy's import is most of the start; nothing above needs it.
    from deconv_ir.api import load

    from .threads import limit_threads

    started = time.perf_counter()
    loaded = load(model, weights, semantics, warn=False)
    if layer is not None:
        loaded = loaded.layer(layer)
    arrays = _gather_inputs(loaded, inputs, random_inputs)
    targets = _targets(loaded, output, force, bool(expect))
    references = _pair("--expect", expect, list(loaded.outputs))
    loaded_at = time.perf_counter()
    findings = loaded.check(arrays, cast=cast)
    _report_findings(findings, strict)
    with limit_threads(threads):
        results = loaded.run(arrays, cast=cast)
    finished = time.perf_counter()
    comparisons = [
        _compare(name, results[name], path, rtol, atol) for name, path in references.items()
    ]
    for name, target in targets.items():
        if target is None:
            npy.write_stdout(results[name])
        else:
            npy.write(results[name], target)
    from .summary import print_summary

    timing = {"load": loaded_at - started, "run": finished - loaded_at}
    print_summary(
        loaded,
        arrays,
        results,
        targets,
        comparisons,
        findings,
        timing,
        as_json=as_json,
        verbose=verbose,
        quiet=quiet,
    )
    return 0 if all(c.within for c in comparisons) else EXIT_DIFFERS


def _gather_inputs(model: Model, given: Sequence[str], seed: int | None) -> dict[str, Array]:
    """Read the arrays, and make the ones that --random-inputs asks for."""
    names = list(model.inputs)
    paths = _pair("--input", given, names)
    if list(paths.values()).count(npy.STREAM) > 1:
        raise Mistake("standard input can be one input only")
    missing = [name for name in names if name not in paths]
    if missing and seed is None:
        raise Mistake(
            f"{model.graph.file}: no array for input {', '.join(map(repr, missing))} "
            "(--input gives one, --random-inputs SEED makes one)"
        )
    arrays: dict[str, Array] = {}
    for index, (name, port) in enumerate(model.inputs.items()):
        if name in paths:
            try:
                arrays[name] = npy.read(paths[name])
            except DeconvError as error:
                raise error.locate(file=paths[name]) from error
        else:
            from deconv_ir.arrays import random_array

            arrays[name] = random_array(port.shape, port.element_type, seed or 0, index)
    return arrays


def _pair(option: str, given: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Match ``[NAME=]FILE`` options with names; those without a name go in order."""
    pairs: dict[str, str] = {}
    unnamed: list[str] = []
    for text in given:
        name, equals, _ = text.partition("=")
        matches = [n for n in names if text.startswith(f"{n}=")]
        if matches:
            # A name may hold '=' itself: the longest that fits is meant.
            name = max(matches, key=len)
            if name in pairs:
                raise Mistake(f"{option} {name!r} is given twice")
            pairs[name] = text[len(name) + 1 :]
        elif equals and not Path(text).exists():
            known = ", ".join(map(repr, names)) or "none"
            raise Mistake(f"{option} {text}: the model has no {name!r}; it has {known}")
        else:
            unnamed.append(text)
    free = [name for name in names if name not in pairs]
    if len(unnamed) > len(free):
        raise Mistake(
            f"{option} {unnamed[len(free)]}: the model has {len(names)} "
            f"({', '.join(map(repr, names))}), {len(given)} are given"
        )
    pairs.update(zip(free, unnamed, strict=False))
    return pairs


def _targets(
    model: Model, output: str | None, force: bool, comparing: bool
) -> dict[str, Path | None]:
    """Tell where each output goes (None: standard output), before anything is computed."""
    names = list(model.outputs)
    targets: dict[str, Path | None]
    if output is None and comparing:
        return {}
    if output == npy.STREAM:
        if len(names) != 1:
            raise Mistake(f"--output -: the model has {len(names)} outputs, one can be written")
        return {names[0]: None}
    folder = Path(output) if output else Path()
    if output and not folder.is_dir() and not output.endswith("/"):
        if len(names) > 1:
            raise Mistake(
                f"--output {output}: the model has {len(names)} outputs; "
                "name a directory that exists, or end its name with '/'"
            )
        targets = {names[0]: folder}
        folder = folder.parent
    else:
        targets = dict(zip(names, _file_names(folder, names), strict=True))
        if output and output.endswith("/"):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise Mistake(f"{output}: can not make the directory: {error.strerror}") from error
    if not folder.is_dir():
        raise Mistake(f"--output {output}: there is no directory {folder}")
    for target in targets.values():
        if target is not None and target.exists():
            if target.is_dir():
                raise Mistake(f"{target}: is a directory")
            if not force:
                raise Mistake(f"{target}: is there already (--force overwrites it)")
    return targets


def _file_names(folder: Path, names: Sequence[str]) -> list[Path]:
    """Make file names of output names: safe characters, no two alike."""
    paths: list[Path] = []
    for name in names:
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:150].lstrip(".")
        stem = safe or "output"
        path, number = folder / f"{stem}.npy", 1
        while path in paths:
            number += 1
            path = folder / f"{stem}.{number}.npy"
        paths.append(path)
    return paths


def _report_findings(findings: Sequence[Finding], strict: bool) -> None:
    wrong = [f for f in findings if f.rule.startswith("declared-")]
    if strict and wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Mistake(f"{wrong[0]}{more}")
    for finding in findings:
        warn(str(finding))


def _compare(name: str, result: Array, path: str, rtol: float, atol: float) -> Comparison:
    from .compare import compare

    expected = npy.read(path)
    if expected.dtype.kind == "V" and expected.dtype.itemsize == result.dtype.itemsize:
        expected = expected.view(result.dtype)
    return compare(name, result, expected, rtol, atol)


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_command(command)


if __name__ == "__main__":
    main()
