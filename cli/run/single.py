"""One run: the model on one array for each input."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..shared.common import EXIT_DIFFERS, EXIT_OK
from ..shared.inputs import gather_inputs, pair, read_input
from ..shared.shapes import drawn_shapes, input_shapes
from .models import guard_run, report_findings
from .profiles import start_profiles, write_trace
from .request import FOR_MANY_RUNS
from .targets import Targets, output_targets, write_arrays

if TYPE_CHECKING:
    from deconv_ir import BoundModel, Model
    from deconv_ir.execute.plan import Plan
    from deconv_ir.ir.dtypes import Array

    from .compare import Comparison
    from .profiles import RunProfiles
    from .request import RunRequest
    from .timing import Latency


def run_once(model: Model, request: RunRequest, started: float) -> int:
    """Run the model and report; return the exit code."""
    request.require_none_of(
        ("batch",),
        "joins many input files, for example --input 'frames/*.npy' (--shape with another batch "
        "reshapes the model)",
    )
    request.require_none_of(
        FOR_MANY_RUNS, "requires many input files (for example --input 'frames/*.npy')"
    )
    from .report import Summary, print_summary

    names = model.output_names(request.wanted)
    shapes = input_shapes(model, request.shapes)
    arrays = gather_inputs(model, request.inputs, request.random_inputs, shapes)
    references: dict[str, str] = {}
    if request.expect:
        from .patterns import name_references

        references = pair("--expect", name_references(request.expect, names), names)
    given = pair("--input", request.inputs, list(model.inputs))
    read = [(f"the array of input {name!r}", path) for name, path in given.items()]
    read += [(f"the reference of output {name!r}", path) for name, path in references.items()]
    guard = guard_run(model, request, read)
    targets = saved = Targets()
    if not (request.no_output or (request.output is None and request.expect)):
        targets = output_targets("--output", names, request.output or "", request.force, guard)
    if request.save_inputs is not None:
        saved = output_targets(
            "--save-inputs", list(arrays), request.save_inputs, request.force, guard
        )
    dumped = None
    if request.dump is not None:
        from .dump import Dump

        dumped = Dump(model, request, guard, arrays)
    if request.profile:
        guard.allow("--profile", request.profile)
    profiles = start_profiles(request)
    loaded_at = time.perf_counter()
    bound = model.bind(arrays, outputs=request.wanted, cast=request.cast)
    report_findings(bound.findings, request.strict)
    results, latency, plan = _run(bound, request, profiles)
    finished = time.perf_counter()
    comparisons: tuple[Comparison, ...] = ()
    if references:
        from .compare import compare_files

        comparisons = compare_files(results, references, request.rtol, request.atol)
    write_arrays(arrays, saved)
    laid_out = results
    if request.physical:
        from .onednn import physical

        laid_out = physical(model, results)
    write_arrays(laid_out, targets)
    if dumped is not None:
        dumped.write(arrays, request)
    summary = Summary(
        model,
        arrays,
        results,
        saved.paths,
        targets.paths,
        comparisons,
        bound.findings,
        {"load": loaded_at - started, "run": finished - loaded_at},
        latency,
        plan,
        profiles,
    )
    print_summary(summary, request)
    write_trace(profiles, request)
    return EXIT_OK if all(c.within for c in comparisons) else EXIT_DIFFERS


def _run(
    bound: BoundModel, request: RunRequest, profiles: RunProfiles | None
) -> tuple[dict[str, Array], Latency | None, Plan]:
    """Run the model once, or --repeat times; also return the plan for its threads."""
    from .resources import hand_back, limit_threads

    def run(counts: bool = True) -> dict[str, Array]:
        profile = None if profiles is None else profiles.of_run(counts)
        return bound.run(profile=profile, once=not request.repeats)

    with limit_threads(request.threads):
        if not request.repeats:
            hand_back(bound.plan)
            return run(), None, bound.plan
        results, found, _ = repeat(run, request)
        return results, found, bound.plan


def repeat(
    run: Callable[[bool], dict[str, Array]], request: RunRequest
) -> tuple[dict[str, Array], Latency, list[float]]:
    """Run a model as --repeat, --seconds and --warmup say."""
    from .timing import end_progress, repeat_run, show_progress

    warmup = 1 if request.warmup is None else request.warmup
    quiet = request.quiet or request.as_json
    progress = None if quiet else show_progress(request.repeat, request.seconds)
    try:
        return repeat_run(run, warmup, request.repeat, request.seconds, progress=progress)
    finally:
        end_progress(progress)


def explain(model: Model, request: RunRequest) -> int:
    """Print the plan for the given arrays, or else for the shapes."""
    from .resources import limit_threads
    from .tables import print_plan

    shapes = input_shapes(model, request.shapes)
    given = pair("--input", request.inputs, list(shapes))
    if len(given) == len(shapes):
        arrays = gather_inputs(model, request.inputs, None, shapes)
        bound = model.bind(arrays, outputs=request.wanted, cast=request.cast)
    else:
        shapes |= {
            name: read_input(path, name, model, shapes[name]).shape for name, path in given.items()
        }
        if request.random_inputs is not None:
            shapes |= drawn_shapes(model, shapes, [name for name in shapes if name not in given])
        bound = model.bind(shapes=shapes, outputs=request.wanted)
    report_findings(bound.findings, request.strict)
    with limit_threads(request.threads):
        print_plan(bound.plan, as_json=request.as_json, limit=request.memory_limit)
    return EXIT_OK
