"""Comparison of two models, or of a model with another tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deconv_ir import DeconvError, bisect, diff, load
from deconv_ir.formats.dumps import MANIFEST, read_manifest
from deconv_ir.ir.shapes import compatible, format_shape, intersect, is_static

from ..shared.common import Mistake, note, warn

if TYPE_CHECKING:
    from deconv_ir import Model, ModelDifference
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.shapes import Shape

    from .request import DiffRequest

_VERDICTS: Mapping[str, bool | Literal["auto"]] = {"always": True, "auto": "auto", "never": False}
RUNTIMES = ("openvino", "onnxruntime")
NEEDS_ARRAYS = "compares tensors (use --input FILE, or --random-inputs SEED)"


def _arrays(
    model: Model, request: DiffRequest, second: Model | str | None = None
) -> dict[str, Array]:
    from ..shared.inputs import gather_inputs
    from ..shared.shapes import input_shapes

    shapes = input_shapes(model, request.shapes)
    if request.random_inputs is not None and request.runtime != "onnxruntime":
        shapes |= _sizes_of_second(model, shapes, second)
    return gather_inputs(
        model, request.inputs, request.random_inputs, shapes, modest=request.modest
    )


def _sizes_of_second(
    model: Model, shapes: Mapping[str, Shape], second: Model | str | None
) -> dict[str, Shape]:
    """Return the shapes of dynamic inputs for which the second model states sizes, with a note."""
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


def _needs_no_arrays(request: DiffRequest) -> bool:
    """Whether the first model has no inputs."""
    return not load(request.first, semantics=request.semantics, warn=False).inputs


def _load(request: DiffRequest) -> Model:
    from ..shared.changes import changed, with_constants

    model = load(request.first, semantics=request.semantics, warn=False, accuracy=request.accuracy)
    return changed(with_constants(model, request.constants, False), request)


def _load_second(first: Model, request: DiffRequest) -> Model | str | None:
    """Return the second model, changed as the first was if it is not an ONNX model."""
    from ..shared.changes import preprocessed, with_constants

    shapes = {name: port.shape for name, port in first.inputs.items()}
    options = request.preprocesses
    if request.runtime == "onnxruntime" and options:
        raise Mistake(f"{options[0]} changes IRs, and cannot be combined with an ONNX model")
    if request.runtime == "onnxruntime" and request.constants:
        raise Mistake("--set changes IRs, and cannot be combined with an ONNX model")
    if request.second is None or not (request.shapes or request.constants or options):
        return request.second
    if request.runtime == "onnxruntime":
        return request.second

    second = load(
        request.second, semantics=request.other_semantics or request.semantics, warn=False
    )
    second = with_constants(second, request.constants, False)
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


def find_differences(request: DiffRequest) -> ModelDifference:
    """Compare two models, or one in two runtimes, and their tensors if they run."""
    against: str | Dumps | tuple[Dumps, Dumps] | None = request.runtime
    if request.tool is not None:
        raise Mistake("--command requires --bisect")
    if request.report is not None or request.strip_weights:
        from .bug_report import require_target

        require_target(request)
    if request.second is None and against is None:
        raise Mistake("name a second model, or --against openvino, onnxruntime or a folder")

    needing = {"--against": request.runtime, "--plot": request.plot}
    needing["--fail-if"] = "" if request.fail_if else None
    needing["--report"], needing["--dump"] = request.report, request.dump
    needing["--set"] = "" if request.constants else None
    needing["--verdict"] = "" if request.verdict == "always" else None
    asked = [option for option, value in needing.items() if value is not None]
    asked += request.preprocesses
    runs = request.runs or (bool(asked) and _needs_no_arrays(request))
    if asked and not runs:
        raise Mistake(f"{asked[0]} {NEEDS_ARRAYS}")
    if isinstance(against, str) and (against not in RUNTIMES or len(request.against) > 1):
        if request.second is not None:
            raise Mistake("--against a folder takes no second model")
        against = _dumps(request.against)
    ignore = [] if request.ignore == "none" else request.ignore.split(",")
    first = _load(request) if runs else request.first
    second = request.second if isinstance(first, str) else _load_second(first, request)
    arrays = None if isinstance(first, str) else _arrays(first, request, second)
    settings = _settings(request)
    dumped = None
    if request.dump is not None:
        from .dumps import SideDumps

        assert not isinstance(first, str)
        dumped = SideDumps(first, request.dump, force=request.force)
    found = diff(
        first,
        second,
        arrays,
        against=against,
        ignore=[aspect.strip() for aspect in ignore if aspect.strip()],
        weights_tolerance=request.weights_tolerance,
        rtol=request.rtol,
        atol=request.atol,
        levels=request.levels,
        semantics=request.semantics,
        other_semantics=request.other_semantics,
        modest=request.modest,
        settings=settings,
        fail_if=request.fail_if,
        verdict=_VERDICTS[request.verdict],
        observe=None if dumped is None else dumped.write,
    )
    if dumped is not None:
        dumped.finish()
    if request.report is not None:
        from .bug_report import report_difference

        assert not isinstance(first, str)
        assert arrays is not None
        dumps = against if isinstance(against, tuple) else (against,)
        folders = tuple(d for d in dumps if isinstance(d, Dumps))
        report_difference(request, (first, second), arrays, folders, settings, found)
    return found


def _dumps(folders: Sequence[str]) -> Dumps | tuple[Dumps, Dumps]:
    """Open one folder, or two that are compared with each other."""
    if len(folders) > 2:
        raise Mistake("--against takes at most two folders")
    first, *others = map(Dumps, folders)
    return (first, others[0]) if others else first


def _settings(request: DiffRequest) -> dict[str, str]:
    """Return the settings of OpenVINO by name."""
    if request.settings and request.runtime != "openvino":
        raise Mistake("--setting goes with --against openvino")
    found = {}
    for text in request.settings:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise Mistake(f"--setting {text}: expected NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def find_first(request: DiffRequest) -> ModelDifference:
    """Cut the model and halve it until the first layer that differs is found."""
    if request.second is not None:
        raise Mistake("--bisect runs one model with two tools, and takes no second model")
    if (request.tool is None) == (request.runtime is None):
        raise Mistake("--bisect requires --command COMMAND or --against openvino")
    if request.levels:
        raise Mistake("--levels does not go with --bisect")
    if request.fail_if:
        raise Mistake("--fail-if does not go with --bisect")
    if request.dump is not None:
        raise Mistake("--dump does not go with --bisect")
    if request.report is not None:
        raise Mistake("--report does not go with --bisect (deconv-cut writes the part)")
    if request.verdict == "always":
        raise Mistake("--verdict always does not go with --bisect")
    if request.against not in ((), ("openvino",)):
        raise Mistake(f"--bisect cannot run {request.runtime!r} (use --command)")
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
