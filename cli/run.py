"""deconv-run: run an IR, from .npy files to .npy files."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from . import npy
from .common import EXIT_DIFFERS, EXIT_OK, FILE, Mistake, run_and_leave, version_option, warn
from .hints import as_line
from .limits import OF_AN_IR, limit_options
from .request import BatchSize, CastMode, Request, RunCommand, Size

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir import Finding, Model
    from deconv_ir.dtypes import Array
    from deconv_ir.execute.profile import Profile

    from .compare import Comparison

EPILOG = """\b
Examples:
  deconv-run model.xml --input x.npy
  deconv-run model.xml --input data=x.npy --input mask=m.npy --output results/
  deconv-run model.xml --input 'frames/*.npy' --output results/ --resume
  deconv-run model.xml --random-inputs 0 --json
  deconv-run model.xml --random-inputs 0 --profile trace.json
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


def _list_operations(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from .tables import print_operations

        print_operations()
        context.exit()


@click.command(
    cls=RunCommand, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.argument("model", metavar="MODEL.xml", type=FILE)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE.npy",
    help="Array for an input of the model; without a name, in order. '-': standard input. "
    "A quoted pattern, 'frames/*.npy': the model is run on each file.",
)
@click.option(
    "--output",
    metavar="FILE.npy|DIR",
    help="Where outputs go: a file, a directory, or '-' for standard output. "
    "Default: one .npy per output, in this directory (none with --expect).",
)
@click.option("--weights", metavar="FILE.bin", type=FILE, help="Default: beside the model.")
@click.option(
    "--semantics",
    type=click.Choice(["spec", "openvino"]),
    default="spec",
    show_default=True,
    help="Whose rule decides where the documents and the OpenVINO runtime differ.",
)
@click.option("--layer", metavar="NAME_OR_ID", help="Run this layer alone.")
@click.option(
    "--until",
    metavar="LAYER",
    help="Run only what LAYER needs; its outputs are the outputs. "
    "LAYER is a tensor name, a layer name or a layer id.",
)
@click.option(
    "--output-layer",
    "output_layers",
    multiple=True,
    metavar="LAYER",
    help="Take this inner tensor out, and run only what is needed. Repeatable.",
)
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
@click.option(
    "--cast",
    type=CastMode(),
    default=False,
    metavar="[=wrap]",
    help="Convert inputs of another element type where every value fits, up to rounding of floats; "
    "=wrap: also where not (integers modulo 2^bits, floats to infinity).",
)
@click.option("--force", is_flag=True, help="Overwrite output files.")
@click.option(
    "--batch",
    type=BatchSize(),
    metavar="[N]",
    help="With a pattern: stack the files along the first axis, N at a time (default: all).",
)
@click.option("--resume", is_flag=True, help="With a pattern: skip files whose outputs are there.")
@click.option("--fail-fast", is_flag=True, help="With a pattern: stop at the first bad file.")
@click.option("--threads", type=click.IntRange(1), help="Default: all cores.")
@click.option(
    "--memory-limit",
    type=Size(),
    metavar="SIZE",
    help="Refuse to run beyond this, as 2GiB or 500MB. Default: what is available.",
)
@limit_options(OF_AN_IR)
@click.option(
    "--explain-plan", is_flag=True, help="Print how the model would be run, and do not run it."
)
@click.option(
    "--profile",
    metavar="[FILE.json]",
    help="Print the time of each layer; with a file, also write it as a Chrome trace.",
)
@click.option(
    "--list-operations",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_operations,
    help="Print the operations that can be run, and exit.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
@version_option("deconv-run", _kernel_details)
def command(**options: Any) -> int:
    """Run the network in MODEL.xml on arrays from .npy files."""
    request = Request(**options)
    if request.output == npy.STREAM and request.as_json:
        raise Mistake("--output - and --json both write to standard output (use one of them)")
    # NumPy's import is most of the start; nothing above needs it.
    from deconv_ir.api import load

    started = time.perf_counter()
    model = load(
        request.model,
        request.weights,
        request.semantics,
        warn=False,
        limits=request.limits,
        memory_limit=request.memory_limit,
    )
    if request.layer is not None:
        model = model.layer(request.layer)
    model.require_runnable(request.wanted)
    gc.enable()
    if request.explain_plan:
        return _explain(model, request)
    from .inputs import is_pattern

    if any(is_pattern(text) for text in request.inputs):
        from .many import run_many

        return run_many(model, request)
    return _run_once(model, request, started)


def _run_once(model: Model, request: Request, started: float) -> int:
    """Run the model on one array an input, and report."""
    for option, given in (
        ("--batch", request.batch is not None),
        ("--resume", request.resume),
        ("--fail-fast", request.fail_fast),
    ):
        if given:
            raise Mistake(
                f"{option} requires many input files (for example --input 'frames/*.npy')"
            )
    from .inputs import gather_inputs, pair
    from .memory import hand_back
    from .targets import output_targets
    from .threads import limit_threads

    names = model.output_names(request.wanted)
    arrays = gather_inputs(model, request.inputs, request.random_inputs)
    targets = output_targets(names, request.output, request.force, bool(request.expect))
    references = pair("--expect", request.expect, names)
    profile, trace = start_profile(request)
    hand_back()
    loaded_at = time.perf_counter()
    findings = model.check(arrays, cast=request.cast)
    report_findings(findings, request.strict)
    with limit_threads(request.threads):
        results = model.run(arrays, outputs=request.wanted, cast=request.cast, profile=profile)
    finished = time.perf_counter()
    comparisons = [
        _compare(name, results[name], path, request.rtol, request.atol)
        for name, path in references.items()
    ]
    for name, target in targets.items():
        if target is None:
            npy.write_stdout(results[name])
        else:
            npy.write(results[name], target)
    from .summary import Summary, print_summary

    summary = Summary(
        model,
        arrays,
        results,
        targets,
        comparisons,
        findings,
        {"load": loaded_at - started, "run": finished - loaded_at},
        model.plan(arrays, outputs=request.wanted, cast=request.cast),
        profile,
    )
    print_summary(summary, request)
    if profile is not None and trace is not None:
        from .tables import write_trace

        write_trace(profile, trace)
    return EXIT_OK if all(c.within for c in comparisons) else EXIT_DIFFERS


def _explain(model: Model, request: Request) -> int:
    """Print the plan, for the arrays that are given, else for the declared shapes."""
    from .inputs import gather_inputs, pair
    from .tables import print_plan

    names = list(model.inputs)
    given = pair("--input", request.inputs, names)
    if len(given) == len(names):
        arrays = gather_inputs(model, request.inputs, None)
        plan = model.plan(arrays, outputs=request.wanted, cast=request.cast)
    else:
        shapes = {name: npy.read(path).shape for name, path in given.items()}
        plan = model.plan_for_shapes(shapes, outputs=request.wanted)
    print_plan(model, plan, as_json=request.as_json)
    return EXIT_OK


def start_profile(request: Request) -> tuple[Profile | None, Path | None]:
    """Return what takes note of times, and the file for the trace."""
    if request.profile is None:
        return None, None
    from deconv_ir.execute.profile import Profile

    if not request.profile:
        return Profile(), None
    from pathlib import Path

    trace = Path(request.profile)
    if trace.exists() and not request.force:
        raise Mistake(f"{trace} already exists (use --force to overwrite)")
    if not trace.parent.is_dir():
        raise Mistake(f"--profile {trace}: directory {trace.parent} does not exist")
    return Profile(), trace


def report_findings(findings: Sequence[Finding], strict: bool) -> None:
    """Warn of findings; with `strict`, declared dims that are wrong are mistakes."""
    wrong = [f for f in findings if f.rule.startswith("declared-")]
    if strict and wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Mistake(f"{as_line(wrong[0])}{more}")
    for finding in findings:
        warn(as_line(finding))


def _compare(name: str, result: Array, path: str, rtol: float, atol: float) -> Comparison:
    from .compare import compare

    expected = npy.read(path)
    if expected.dtype.kind == "V" and expected.dtype.itemsize == result.dtype.itemsize:
        expected = expected.view(result.dtype)
    return compare(name, result, expected, rtol, atol)


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    # The kernels have threads of their own.  Those of NumPy's BLAS would take a
    # third of its import to start, and spin beside ours after each product.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run_and_leave(command)


if __name__ == "__main__":
    main()
