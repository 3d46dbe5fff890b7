"""deconv-run: run an IR or a oneDNN Graph file, from .npy files to .npy files."""

from __future__ import annotations

import gc
import time
from typing import Any, NoReturn

import click

from .common import run_model_command
from .completion import complete_layers, complete_tensors
from .onednn import alternatives, convert, onednn_options
from .options import (
    CONTEXT,
    FILE,
    OF_AN_IR,
    limit_options,
    listing_option,
    parse_size,
    semantics_option,
    tolerance_options,
    version_option,
)
from .request import CLUSTER, FOR_ONE_RUN, Request, RunCommand, batch_size, cast_mode

EPILOG = """\b
Examples:
  deconv-run model.xml --info
  deconv-run - --weights model.bin --info < model.xml
  deconv-run model.xml --input x.npy
  deconv-run model.xml --input data=x.npy --input mask=m.npy --output results/
  deconv-run model.xml --input 'frames/*.npy' --output results/ --resume
  deconv-run model.xml --input inputs.npz --output outputs.npz
  deconv-run model.xml --random-inputs 0 --shape data=1,3,224,224 --json
  deconv-run model.xml --random-inputs 0 --save-inputs inputs.npz --no-output
  deconv-run model.xml --random-inputs 0 --no-output --repeat 100 --warmup 10
  deconv-run model.xml --random-inputs 0 --profile trace.json
  deconv-run model.xml --input x.npy --expect y.npy --rtol 1e-4
  deconv-run layer.xml --input x.npy --input filter.npy --output - | ...
  deconv-run model.xml --input volume.npy --output result.npy --tile auto
  deconv-run graph.json --input 0=x.npy --input 1=weights.npy
  deconv-run graph.json --random-inputs 0 --in-shapes 0:2x64x56x56 --op-attrs 0:strides:2x2
  deconv-run graph.json --save-xml model.xml

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


def _list_operations() -> None:
    from .tables import print_operations

    print_operations()


@click.command("deconv-run", cls=RunCommand, epilog=EPILOG, context_settings=CONTEXT)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Array for an input of the model, as .npy; without a name, in order. '-': standard "
    "input. A .npz file has arrays for all inputs that it names. "
    "A folder, a pattern as 'frames/*.npy' or several files: the model is run on each.",
)
@click.option(
    "--output",
    metavar="FILE|DIR",
    help="Where outputs go: a .npy file, a .npz file for all of them, a directory, or '-' for "
    "standard output. Default: one .npy per output, in this directory (none with --expect).",
)
@click.option("--no-output", is_flag=True, help="Write no outputs, only print the summary.")
@click.option(
    "--weights",
    metavar="FILE.bin",
    type=FILE,
    help="The weights. Default: the .bin beside the model; a model on standard input has none.",
)
@semantics_option()
@click.option(
    "--accuracy",
    type=click.Choice(["fast", "direct"]),
    default="fast",
    show_default=True,
    help="direct: sum convolutions directly, without Winograd (docs/numerics.md).",
)
@click.option(
    "--layer", metavar="NAME_OR_ID", shell_complete=complete_layers, help="Run this layer alone."
)
@click.option(
    "--until",
    metavar="LAYER",
    shell_complete=complete_tensors,
    help="Run only the layers that LAYER needs, and return its outputs. "
    "LAYER is a tensor name, a layer name or a layer id.",
)
@click.option(
    "--output-layer",
    "output_layers",
    multiple=True,
    metavar="LAYER",
    shell_complete=complete_tensors,
    help="Return this inner tensor; run only the layers that it needs. Repeatable.",
)
@click.option("--strict", is_flag=True, help="Treat wrong declared dims as errors.")
@click.option(
    "--random-inputs",
    type=click.IntRange(0),
    metavar="SEED",
    help="Seeded random arrays for the inputs that are not given: floats are standard normal, "
    "integers from 0 to 9.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="[NAME=]SHAPE",
    help="Shape of an input with dynamic dims, as in data=1,3,224,224: for --random-inputs, "
    "--explain-plan and --info. Repeatable.",
)
@click.option(
    "--save-inputs",
    metavar="FILE|DIR",
    help="Also write the arrays of the inputs: a .npz file, a .npy file or a directory.",
)
@click.option(
    "--expect",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Reference for an output, as .npy; a .npz file has one for each output that it names. "
    "With many inputs: a folder or a pattern, paired by name. "
    "Exit code 1 when out of tolerance.",
)
@tolerance_options(rtol=1e-5, atol=1e-6)
@click.option(
    "--cast",
    type=cast_mode,
    default=False,
    metavar="[=wrap]",
    help="Convert inputs of another element type where every value fits, up to rounding of floats; "
    "=wrap: also where not (integers modulo 2^bits, floats to infinity).",
)
@click.option("--force", is_flag=True, help="Overwrite output files.")
@click.option(
    "--batch",
    type=batch_size,
    metavar="[N]",
    help="With many files: stack them along the first axis, N at a time (default: all).",
)
@click.option(
    "--resume",
    is_flag=True,
    help="With many files: keep the outputs that this model computed from these inputs with "
    "these options, compute the others.",
)
@click.option("--fail-fast", is_flag=True, help="With many files: stop at the first bad file.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    metavar="N",
    help="Run N times; print median, 90th percentile, mean and range of the latency, and the "
    "throughput.",
)
@click.option(
    "--warmup",
    type=click.IntRange(0),
    metavar="M",
    help="With --repeat: M warm-up runs that are not counted. Default: 1.",
)
@click.option("--threads", type=click.IntRange(1), help="Default: all cores.")
@click.option(
    "--memory-limit",
    type=parse_size,
    metavar="SIZE",
    help="Refuse to run beyond this, as 2GiB or 500MB. Default: what is available.",
)
@click.option(
    "--tile",
    metavar="auto|SIZE",
    help="Compute the output tile by tile, exactly: from .npy or .zarr files to one, neither "
    "ever whole in memory. SIZE as in 64,256,256: extents of the last axes; auto: what "
    "--memory-limit allows. --resume continues an interrupted run.",
)
@click.option(
    "--two-pass",
    is_flag=True,
    help="With --tile: compute what reductions and normalizations need of whole axes in passes "
    "of their own.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="With --tile or many files: run on N processes of this machine (extra 'cluster').",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="With --tile or many files: run on this Dask cluster, as tcp://host:8786; files are "
    "read and written by its workers. Default: the environment variable DASK_SCHEDULER_ADDRESS.",
)
@click.option(
    "--scheduler-file", metavar="FILE", type=FILE, help="As --scheduler, from a file of Dask's."
)
@limit_options(OF_AN_IR)
@onednn_options
@click.option(
    "--info",
    is_flag=True,
    help="Print names, types and shapes of inputs and outputs, and do not run the model.",
)
@click.option("--explain-plan", is_flag=True, help="Print the plan without running the model.")
@click.option(
    "--profile",
    metavar="[FILE.json]",
    help="Print the time of each layer; with a file, also write it as a Chrome trace.",
)
@listing_option(
    "--list-operations", _list_operations, "Print the operations that can be run, and exit."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Print more.")
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")
@version_option("deconv-run", computes=True)
def command(**options: Any) -> int:
    """Run the network in MODEL on arrays from .npy or .npz files.

    MODEL is an OpenVINO IR (.xml), a oneDNN Graph file (.json), or '-': standard input.
    """
    request = Request(**options)
    request.require_consistent()
    if request.save_xml is not None or request.save_onednn is not None:
        return convert(request)
    return max(map(_run_one, alternatives(request)))


def _run_one(request: Request) -> int:
    from .models import open_model

    started = time.perf_counter()
    model = open_model(request)
    gc.enable()
    if request.info:
        from .info import print_info

        return print_info(model, request)
    model.require_runnable(request.wanted)
    if request.tile is not None:
        from .tiled import run_tiled

        return run_tiled(model, request)
    from .patterns import stands_for_many
    from .single import explain, run_once

    if any(stands_for_many(text) for text in request.inputs):
        from .many import run_many

        request.require_none_of(
            FOR_ONE_RUN, "requires one file for each input, --input stands for many"
        )
        return run_many(model, request)
    request.require_none_of(CLUSTER, "requires --tile, or many files")
    if request.explain_plan:
        return explain(model, request)
    return run_once(model, request, started)


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
