"""deconv-diff: where two models differ, in structure and in what they compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .common import EXIT_DIFFERS, EXIT_OK, Mistake, note, run_model_command
from .options import CONTEXT, FILE, SEMANTICS, array_options, semantics_option, version_option

if TYPE_CHECKING:
    from deconv_ir import Model, ModelDifference
    from deconv_ir.ir.dtypes import Array

RUNTIMES = ("openvino", "onnxruntime")

EPILOG = """\b
Examples:
  deconv-diff a.xml b.xml
  deconv-diff a.xml b.xml --ignore names,rt_info --weights-tolerance 1e-3
  deconv-diff a.xml b.xml --input x.npy
  deconv-diff a.xml --random-inputs 0 --against openvino --plot error.png
  deconv-diff a.xml --input x.npy --against dumps/
  deconv-diff a.xml b.onnx --random-inputs 0 --against onnxruntime
  deconv-diff a.xml a.xml --random-inputs 0 --other-semantics openvino
  deconv-diff a.xml --random-inputs 0 --bisect --command 'tool {model} {inputs} {outputs}'

\b
Exit codes: 0 equal, 1 different, 2 something is wrong with the models, the
arrays or the options, 130 interrupted.
"""


@click.command("deconv-diff", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("first", metavar="A.xml", type=FILE)
@click.argument("second", metavar="[B.xml]", type=FILE, required=False)
@array_options(
    use="both models run, and all tensors are compared.",
    shape="Shape of an input with dynamic dims, for --random-inputs. Repeatable.",
)
@click.option(
    "--against",
    metavar="RUNTIME|DIR",
    help="openvino or onnxruntime: what runs the second model (or, without one, the first). "
    "A folder of .npy files by tensor name: the tensors of another tool.",
)
@click.option(
    "--bisect",
    is_flag=True,
    help="For a tool that gives final outputs only: cut the model, and halve it until the first "
    "layer that differs is found.",
)
@click.option(
    "--command",
    "tool",
    metavar="COMMAND",
    help="With --bisect: the tool. {model} stands for an IR, {inputs} for a .npz file to read, "
    "{outputs} for a .npz file to write, by output name.",
)
@semantics_option()
@click.option(
    "--other-semantics",
    type=click.Choice(SEMANTICS),
    help="The same for the second model. Default: those of the first.",
)
@click.option(
    "--ignore",
    default="ids,order",
    show_default=True,
    metavar="ASPECTS",
    help="Aspects that are not compared: names, type, version, attribute, edge, weights, folded, "
    "shape, rt_info, ids, order; 'none' compares everything.",
)
@click.option(
    "--weights-tolerance",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Difference of weights that does not count, relative to their largest magnitude.",
)
@click.option(
    "--rtol",
    type=click.FloatRange(0),
    default=1e-4,
    show_default=True,
    help="Tolerance of tensors, relative to their largest magnitude.",
)
@click.option("--atol", type=click.FloatRange(0), default=0.0, show_default=True)
@click.option("--plot", metavar="FILE.png", type=FILE, help="Draw the error through the network.")
@click.option("--force", is_flag=True, help="Overwrite the plot.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("-v", "--verbose", is_flag=True, help="List every difference and every tensor.")
@version_option("deconv-diff")
def command(**options: Any) -> int:
    """Compare two IRs: layers, attributes, shapes, connections, weights.

    With inputs, both run, every tensor that they have in common is compared, and the
    report names the first layer where an error appears.
    """
    found = _bisect(**options) if options["bisect"] else _diff(**options)
    from .reporters.diff import print_json, print_text

    plot = options["plot"]
    if plot is not None:
        from .plots import plot_errors

        plot_errors(found, Path(plot), force=options["force"])
    if options["form"] == "json":
        print_json(found)
    else:
        print_text(found, verbose=options["verbose"], rtol=options["rtol"])
    return EXIT_OK if found.equal else EXIT_DIFFERS


def _arrays(model: Model, options: Mapping[str, Any]) -> dict[str, Array] | None:
    """Return the inputs; None where none are asked for."""
    if not options["inputs"] and options["random_inputs"] is None:
        return None
    from .inputs import gather_inputs
    from .shapes import input_shapes

    shapes = input_shapes(model, options["shapes"])
    return gather_inputs(model, options["inputs"], options["random_inputs"], shapes)


def _load(options: Mapping[str, Any]) -> Model:
    from deconv_ir import load

    return load(options["first"], semantics=options["semantics"], warn=False)


def _diff(**options: Any) -> ModelDifference:
    from deconv_ir import diff

    against, second = options["against"], options["second"]
    if options["tool"] is not None:
        raise Mistake("--command requires --bisect")
    if second is None and against is None:
        raise Mistake("name a second model, or --against openvino, onnxruntime or a folder")
    running = options["inputs"] or options["random_inputs"] is not None
    for option, given in (("--against", against), ("--plot", options["plot"])):
        if given is not None and not running:
            raise Mistake(f"{option} compares tensors (use --input FILE, or --random-inputs SEED)")
    if against is not None and against not in RUNTIMES:
        if second is not None:
            raise Mistake("--against a folder takes no second model")
        against = Dumps(against)
    ignore = [] if options["ignore"] == "none" else options["ignore"].split(",")
    first = _load(options) if running else options["first"]
    return diff(
        first,
        second,
        _arrays(first, options) if running else None,
        against=against,
        ignore=[aspect.strip() for aspect in ignore if aspect.strip()],
        weights_tolerance=options["weights_tolerance"],
        rtol=options["rtol"],
        atol=options["atol"],
        semantics=options["semantics"],
        other_semantics=options["other_semantics"],
    )


def _bisect(**options: Any) -> ModelDifference:
    from deconv_ir import bisect

    if options["second"] is not None:
        raise Mistake("--bisect runs one model with two tools, and takes no second model")
    if (options["tool"] is None) == (options["against"] is None):
        raise Mistake("--bisect requires --command COMMAND or --against openvino")
    if options["against"] not in (None, "openvino"):
        raise Mistake(f"--bisect cannot run {options['against']!r} (use --command)")
    model = _load(options)
    arrays = _arrays(model, options)
    if arrays is None:
        raise Mistake("--bisect compares tensors (use --input FILE, or --random-inputs SEED)")
    from .tools import CommandTool, run_openvino

    run = CommandTool(options["tool"]) if options["tool"] else run_openvino
    return bisect(model, run, arrays, rtol=options["rtol"], atol=options["atol"], progress=note)


class Dumps(Mapping[str, Any]):
    """The .npy files of a folder by their names, read when they are asked for.

    Raises
    ------
    Mistake
        There is no such folder, or it has no .npy file.
    """

    def __init__(self, folder: str) -> None:
        if not Path(folder).is_dir():
            raise Mistake(
                f"--against {folder}: neither {' nor '.join(RUNTIMES)}, nor a folder of .npy files"
            )
        self.files = {path.stem: path for path in sorted(Path(folder).glob("*.npy"))}
        if not self.files:
            raise Mistake(f"--against {folder}: the folder has no .npy file")

    def __getitem__(self, name: str) -> Array:
        from deconv_ir.formats.npy import read

        return read(str(self.files[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def main() -> NoReturn:
    """Run the command; the entry point of the script."""
    run_model_command(command)


if __name__ == "__main__":
    main()
