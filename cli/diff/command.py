"""deconv-diff: differences of two models, in structure and in computed tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from deconv_ir.formats.dumps import MANIFEST, read_manifest
from deconv_ir.ir.shapes import compatible, format_shape, intersect, is_static

from ..shared.common import EXIT_DIFFERS, EXIT_OK, Mistake, note, run_model_command, warn
from ..shared.options import (
    CONTEXT,
    FILE,
    SEMANTICS,
    IntegerRange,
    Options,
    argument,
    flag,
    input_arrays,
    input_shapes,
    option,
    preprocessing,
    random_inputs,
    reverse_channels,
    semantics,
    tolerance,
    version_option,
)

if TYPE_CHECKING:
    from deconv_ir import Model, ModelDifference
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.shapes import Shape

RUNTIMES = ("openvino", "onnxruntime")
NEEDS_ARRAYS = "compares tensors (use --input FILE, or --random-inputs SEED)"

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


class DiffRequest(Options):
    """The options of deconv-diff."""

    first: str = argument("A.xml")
    second: str | None = argument("[B.xml]", required=False)
    inputs: tuple[str, ...] = input_arrays(
        "Array for an input, as of deconv-run: both models run, and all tensors are compared."
    )
    random_inputs: int | None = random_inputs()
    shapes: tuple[str, ...] = input_shapes(
        "Shape of an input: that of dynamic dims, for --random-inputs; other static shapes "
        "reshape the model, and the declared one allows sizes that are much for a small network. "
        "Repeatable."
    )
    layout: tuple[str, ...] = preprocessing("layout")
    reverse_channels: bool = reverse_channels()
    mean: tuple[str, ...] = preprocessing("mean")
    scale: tuple[str, ...] = preprocessing("scale")
    input_type: tuple[str, ...] = preprocessing("input_type")
    against: str | None = option(
        "RUNTIME|DIR",
        "openvino or onnxruntime: the runtime of the second model (or, without one, of the "
        "first). A folder of .npy files by tensor name, such as deconv-run writes: the tensors of "
        "another tool.",
    )
    bisect: bool = flag(
        "For a tool that gives final outputs only: cut the model, and halve it until the first "
        "layer that differs is found."
    )
    tool: str | None = option(
        "COMMAND",
        "With --bisect: the tool. {model} stands for an IR, {inputs} for a .npz file to read, "
        "{outputs} for a .npz file to write, by output name.",
        "--command",
    )
    semantics: str = semantics()
    accuracy: str = option(
        None,
        "direct: the first model sums convolutions directly, without Winograd (docs/numerics.md).",
        type=click.Choice(["fast", "direct"]),
        default="fast",
        show_default=True,
    )
    other_semantics: str | None = option(
        None,
        "The same for the second model. Default: those of the first.",
        type=click.Choice(SEMANTICS),
    )
    ignore: str = option(
        "ASPECTS",
        "Aspects that are not compared: names, type, version, attribute, edge, weights, folded, "
        "shape, rt_info, ids, order; 'none' compares everything.",
        default="ids,order",
        show_default=True,
    )
    weights_tolerance: float = tolerance(
        0.0, "Difference of weights that does not count, relative to their largest magnitude."
    )
    rtol: float = tolerance(1e-4, "Tolerance of tensors, relative to their largest magnitude.")
    atol: float = tolerance(0.0)
    levels: int = option(
        "N",
        "Quantised tensors (outputs of FakeQuantize, Quantize and DynamicQuantize) may differ by N "
        "levels; the layers after them are compared for the same values.",
        type=IntegerRange(0),
        default=0,
        show_default=True,
    )
    plot: str | None = option("FILE.png", "Draw the error through the network.", type=FILE)
    force: bool = flag("Overwrite the plot.")
    form: str = option(
        None,
        None,
        "--format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
    )
    verbose: bool = flag("List every difference and every tensor.", "-v", "--verbose")

    @property
    def runs(self) -> bool:
        """Whether the models run."""
        return bool(self.inputs) or self.random_inputs is not None

    @property
    def modest(self) -> bool:
        """Whether sizes come from the files alone, so that the work is bounded."""
        return self.random_inputs is not None and not self.shapes


@click.command("deconv-diff", epilog=EPILOG, context_settings=CONTEXT)
@DiffRequest.add_to
@version_option("deconv-diff")
def command(**options: Any) -> int:
    """Compare two IRs: layers, attributes, shapes, connections, weights.

    With inputs, both run, every tensor that they have in common is compared, and the
    report names the first layer where an error appears.
    """
    request = DiffRequest(**options)
    found = _bisect(request) if request.bisect else _diff(request)
    from .report import print_json, print_text

    if request.plot is not None:
        from .plots import plot_errors

        plot_errors(found, Path(request.plot), force=request.force)
    if request.form == "json":
        print_json(found)
    else:
        print_text(found, verbose=request.verbose, rtol=request.rtol)
    return EXIT_OK if found.equal else EXIT_DIFFERS


def _arrays(
    model: Model, request: DiffRequest, second: Model | str | None = None
) -> dict[str, Array]:
    from ..shared.inputs import gather_inputs
    from ..shared.shapes import input_shapes

    shapes = input_shapes(model, request.shapes)
    if request.random_inputs is not None and request.against != "onnxruntime":
        shapes |= _sizes_of_second(model, shapes, second)
    return gather_inputs(
        model, request.inputs, request.random_inputs, shapes, modest=request.modest
    )


def _sizes_of_second(
    model: Model, shapes: Mapping[str, Shape], second: Model | str | None
) -> dict[str, Shape]:
    """Return the shapes of dynamic inputs for which the second model states sizes, with a note."""
    from deconv_ir import DeconvError, load

    if second is None or all(is_static(shape) for shape in shapes.values()):
        return {}
    try:
        other = load(second, warn=False) if isinstance(second, str) else second
    except DeconvError:  # reported by the comparison
        return {}
    if len(other.inputs) != len(shapes):
        return {}
    found = {}
    for name, theirs in _counterparts(model, other).items():
        stated = other.inputs[theirs].shape
        if compatible(shapes[name], stated) and not is_static(shapes[name]):
            both = intersect(shapes[name], stated)
            if both != shapes[name]:
                found[name] = both
                note(
                    f"input {name!r} {format_shape(shapes[name])}: the second model takes "
                    f"{format_shape(stated)}"
                )
    return found


def _load(request: DiffRequest) -> Model:
    from deconv_ir import load

    from ..shared.changes import changed

    model = load(request.first, semantics=request.semantics, warn=False, accuracy=request.accuracy)
    return changed(model, request)


def _load_second(first: Model, request: DiffRequest) -> Model | str | None:
    """Return the second model, changed as the first was if it is not an ONNX model."""
    from ..shared.changes import preprocessed, preprocesses

    shapes = {name: port.shape for name, port in first.inputs.items()}
    options = preprocesses(request)
    if request.against == "onnxruntime" and options:
        raise Mistake(f"{options[0]} changes IRs, and cannot be combined with an ONNX model")
    if request.second is None or not (request.shapes or options):
        return request.second
    if request.against == "onnxruntime":
        return request.second
    from deconv_ir import load

    second = load(
        request.second, semantics=request.other_semantics or request.semantics, warn=False
    )
    if len(second.inputs) != len(shapes):
        return second
    # Inputs correspond by position, unless their names are the same.
    second = preprocessed(second, request, _counterparts(first, second))
    named = zip(second.inputs, shapes.items(), strict=True)
    wanted = {own: shapes.get(own, shape) for own, (_, shape) in named}
    fits = all(compatible(port.shape, wanted[own]) for own, port in second.inputs.items())
    return second if fits else second.reshape(wanted)


def _counterparts(first: Model, second: Model) -> dict[str, str]:
    """Return the inputs of the second model for those of the first."""
    if set(first.inputs) == set(second.inputs):
        return {name: name for name in first.inputs}
    return dict(zip(first.inputs, second.inputs, strict=True))


def _diff(request: DiffRequest) -> ModelDifference:
    from deconv_ir import diff

    against: str | Dumps | None = request.against
    if request.tool is not None:
        raise Mistake("--command requires --bisect")
    if request.second is None and against is None:
        raise Mistake("name a second model, or --against openvino, onnxruntime or a folder")
    from ..shared.changes import preprocesses

    needing = {"--against": against, "--plot": request.plot}
    for option_name, value in (needing | dict.fromkeys(preprocesses(request), "")).items():
        if value is not None and not request.runs:
            raise Mistake(f"{option_name} {NEEDS_ARRAYS}")
    if isinstance(against, str) and against not in RUNTIMES:
        if request.second is not None:
            raise Mistake("--against a folder takes no second model")
        against = Dumps(against)
    ignore = [] if request.ignore == "none" else request.ignore.split(",")
    first = _load(request) if request.runs else request.first
    second = request.second if isinstance(first, str) else _load_second(first, request)
    return diff(
        first,
        second,
        None if isinstance(first, str) else _arrays(first, request, second),
        against=against,
        ignore=[aspect.strip() for aspect in ignore if aspect.strip()],
        weights_tolerance=request.weights_tolerance,
        rtol=request.rtol,
        atol=request.atol,
        levels=request.levels,
        semantics=request.semantics,
        other_semantics=request.other_semantics,
        modest=request.modest,
    )


def _bisect(request: DiffRequest) -> ModelDifference:
    from deconv_ir import bisect

    if request.second is not None:
        raise Mistake("--bisect runs one model with two tools, and takes no second model")
    if (request.tool is None) == (request.against is None):
        raise Mistake("--bisect requires --command COMMAND or --against openvino")
    if request.levels:
        raise Mistake("--levels does not go with --bisect")
    if request.against not in (None, "openvino"):
        raise Mistake(f"--bisect cannot run {request.against!r} (use --command)")
    model = _load(request)
    if not request.runs:
        raise Mistake(f"--bisect {NEEDS_ARRAYS}")
    from .tools import CommandTool, run_openvino

    run = CommandTool(request.tool) if request.tool else run_openvino
    arrays = _arrays(model, request)
    tolerances = {"rtol": request.rtol, "atol": request.atol}
    return bisect(model, run, arrays, **tolerances, progress=note, modest=request.modest)


class Dumps(Mapping[str, Any]):
    """The .npy files of a folder, read on demand.

    A file has the name of the tensor that the manifest of the folder states, else its own.

    Raises
    ------
    Mistake
        The folder does not exist, or has no .npy file.
    InputError
        The manifest is damaged.
    """

    def __init__(self, folder: str) -> None:
        root = Path(folder)
        if not root.is_dir():
            raise Mistake(
                f"--against {folder}: neither {' nor '.join(RUNTIMES)}, nor a folder of .npy files"
            )
        there = {path.name: path for path in sorted(root.glob("*.npy"))}
        if not there:
            raise Mistake(f"--against {folder}: the folder has no .npy file")
        listed = read_manifest(root)
        if lost := [entry.file for entry in listed if entry.file not in there]:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            warn(f"{root / MANIFEST} names {lost[0]}{more}, which the folder does not have")
        files = {e.name: there[e.file] for e in listed if e.file in there and not e.within}
        known = {entry.file for entry in listed}
        self.files = {path.stem: path for name, path in there.items() if name not in known} | files

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
