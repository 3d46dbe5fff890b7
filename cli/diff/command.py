"""deconv-diff: differences of two models, in structure and in computed tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import click

from ..shared.common import EXIT_DIFFERS, EXIT_OK, run_model_command
from ..shared.options import CONTEXT, version_option
from .request import DiffRequest

EPILOG = """\b
Examples:
  deconv-diff a.xml b.xml
  deconv-diff a.xml b.xml --ignore names,rt_info --weights-tolerance 1e-3
  deconv-diff a.xml b.xml --input x.npy
  deconv-diff a.xml --random-inputs 0 --against openvino --plot error.png
  deconv-diff a.xml --input x.npy --against openvino --report bug.zip
  deconv-diff a.xml --input x.npy --against dumps/
  deconv-diff a.xml --input x.npy --against dumps/ --against others/
  deconv-diff a.xml b.onnx --random-inputs 0 --against onnxruntime
  deconv-diff a.xml a.xml --random-inputs 0 --other-semantics openvino
  deconv-diff a.xml --random-inputs 0 --bisect --command 'tool {model} {inputs} {outputs}'

\b
Exit codes: 0 equal, 1 different, 2 something is wrong with the models, the
arrays or the options, 130 interrupted.
"""


@click.command("deconv-diff", epilog=EPILOG, context_settings=CONTEXT)
@DiffRequest.add_to
@version_option("deconv-diff")
def command(**options: Any) -> int:
    """Compare two IRs: layers, attributes, shapes, connections, weights.

    With inputs, both run, every tensor that they have in common is compared, and the
    report names the first layer where an error appears.
    """
    request = DiffRequest(**options)
    from .run import find_differences, find_first

    found = find_first(request) if request.bisect else find_differences(request)
    from .report import print_json, print_text

    if request.plot is not None:
        from .plots import plot_errors

        plot_errors(found, Path(request.plot), force=request.force)
    if request.form == "json":
        print_json(found)
    else:
        print_text(found, verbose=request.verbose, rtol=request.rtol)
    return EXIT_OK if found.equal else EXIT_DIFFERS


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
