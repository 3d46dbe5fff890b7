"""deconv-run: run an IR or a oneDNN Graph file, from .npy files to .npy files."""

from __future__ import annotations

import gc
import time
from typing import Any, NoReturn

import click

from ..shared.common import run_model_command
from ..shared.options import CONTEXT, version_option
from .request import CLUSTER, FOR_ONE_RUN, RunCommand, RunRequest

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
  deconv-run model.xml --shape 2,3,64,96 --save-xml larger.xml

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


@click.command("deconv-run", cls=RunCommand, epilog=EPILOG, context_settings=CONTEXT)
@RunRequest.add_to
@version_option("deconv-run", computes=True)
def command(**options: Any) -> int:
    """Run the network in MODEL on arrays from .npy or .npz files.

    MODEL is an OpenVINO IR (.xml), a oneDNN Graph file (.json), or '-': standard input.
    """
    request = RunRequest(**options)
    request.require_consistent()
    if request.save_onednn is not None:
        from .onednn import convert

        return convert(request)
    return max(map(_run_one, request.alternatives()))


def _run_one(request: RunRequest) -> int:
    from .models import open_model

    started = time.perf_counter()
    model = open_model(request)
    if request.save_xml is not None:
        from .onednn import save_xml

        return save_xml(model, request)
    # The modules and the graph stay alive: the collector need not scan them repeatedly.
    gc.freeze()
    gc.enable()
    if request.info:
        from .info import print_info

        return print_info(model, request)
    model.require_runnable(request.wanted)
    from ..shared.about import note_fallback

    note_fallback()
    if request.tile is not None:
        from .tiled import run_tiled

        return run_tiled(model, request)
    from ..shared.inputs import stands_for_many
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
