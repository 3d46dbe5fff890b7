"""Options of deconv-run for oneDNN Graph files: overrides, physical layout, conversion."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .common import EXIT_OK, STREAM, Mistake, note, read_standard_input, require_absent

if TYPE_CHECKING:
    from deconv_ir import Model, Overrides
    from deconv_ir.ir.dtypes import Array

    from .request import Request

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _override(name: str, metavar: str, text: str) -> Callable[[_Command], _Command]:
    text = f"oneDNN Graph file: {text}"
    return click.option(name, default="", metavar=metavar, help=text)


OPTIONS: tuple[Callable[[Any], Any], ...] = (
    _override(
        "--in-shapes",
        "ID:SHAPE",
        "other shapes and layouts of inputs, as in 0:2x64x56x56*acdb+1:32x64x2x2.",
    ),
    _override(
        "--op-attrs",
        "ID:NAME:VALUE",
        "other attributes of operations, as in 0:strides:2x2*auto_pad:SAME_UPPER; undef removes "
        "one.",
    ),
    _override("--op-kind", "ID:KIND", "other kinds of operations, as in 1:Maximum."),
    _override("--mb", "N", "batch size; 0: as it is."),
    _override(
        "--dt",
        "DTYPE",
        "element type of all floating-point tensors, as in bf16, or of some, as in 0:f16+1:f16.",
    ),
    click.option(
        "--physical",
        is_flag=True,
        help="oneDNN Graph file: write each output as a list of its elements in the order of its "
        "strides.",
    ),
    click.option(
        "--save-xml",
        metavar="FILE.xml",
        help="Write a oneDNN Graph file as an OpenVINO IR, and do not run it.",
    ),
    click.option(
        "--save-onednn",
        metavar="FILE.json",
        help="Write an IR as a oneDNN Graph file, its constants as .npz beside it, and do not "
        "run it.",
    ),
)


def onednn_options(command: _Command) -> _Command:
    """Add the options to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def alternatives(request: Request) -> list[Request]:
    """Return a request for each combination of alternatives, which commas separate.

    Raises
    ------
    Mistake
        There are several, and each would write outputs to the same place.
    InputError
        One does not have its form.
    """
    names = ("in_shapes", "op_attrs", "op_kind", "mb", "dt")
    values = [[text.strip() for text in getattr(request, name).split(",")] for name in names]
    found = [
        request._replace(**dict(zip(names, chosen, strict=True)))
        for chosen in itertools.product(*values)
    ]
    if len(found) > 1:
        for one in found:
            overrides_of(one)  # mistakes in any are reported before the first runs
        if not (request.no_output or request.info or request.explain_plan):
            raise Mistake(
                f"{len(found)} alternatives would write to the same files "
                "(use --no-output, --info or --explain-plan, or one alternative)"
            )
        for name in ("save_inputs", "profile", "expect", "resume"):
            if getattr(request, name):
                option = name.replace("_", "-")
                raise Mistake(f"--{option} cannot be combined with several alternatives")
    return found


def overrides_of(request: Request) -> Overrides | None:
    """Return the changes that the options ask for; None where there are none.

    Raises
    ------
    InputError
        An option does not have its form.
    """
    given = {
        "in_shapes": request.in_shapes,
        "op_attrs": request.op_attrs,
        "op_kind": request.op_kind,
        "dt": request.dt,
    }
    if not any((*given.values(), request.mb)):
        return None
    from deconv_ir import Overrides

    if not request.mb.isascii() or not (request.mb or "0").isdigit() or len(request.mb) > 18:
        raise Mistake(f"mb: expected a batch size, found {request.mb!r}")
    return Overrides(**given, mb=int(request.mb or 0))


def convert(request: Request) -> int:
    """Write the model in the other format, and return the exit code."""
    from deconv_ir.formats.conversion import to_onednn, to_openvino

    target = request.save_xml or request.save_onednn
    assert target is not None, "one of the options was given"
    given: str | bytes = request.model
    if given == STREAM:
        given = read_standard_input(request.limits.xml_bytes)
    require_absent(Path(target), request.force)
    if request.save_xml is not None:
        written = to_openvino(given, target, request.limits, overrides_of(request))
    else:
        written = to_onednn(given, target, request.weights, request.limits)
    if not request.quiet:
        note(f"wrote {' and '.join(written)}")
    return EXIT_OK


def physical(model: Model, results: Mapping[str, Array]) -> dict[str, Array]:
    """Lay results out as the strides of their tensors say; one without strides is dense.

    Raises
    ------
    DeconvError
        Strides do not describe a layout, or what they span does not fit into memory.
    """
    from deconv_ir.errors import InputError
    from deconv_ir.execute.memory import require_memory
    from deconv_ir.formats.onednn_json.layout import span, strides_of, to_physical
    from deconv_ir.ir.tensor_names import find_tensors

    graph, found = model.graph, {}
    for name, array in results.items():
        ((layer, output),) = find_tensors(graph, [name]).values()
        strides = strides_of(graph.layers[layer].outputs[output])
        if strides is None:
            found[name] = array.reshape(-1)
            continue
        if len(strides) == array.ndim:
            needed = span(array.shape, strides) * array.dtype.itemsize
            require_memory(needed, model.memory_limit, file=graph.file)
        try:
            found[name] = to_physical(array, strides)
        except InputError as error:
            error.locate(file=graph.file, layer=graph.layers[layer].label)
            raise
    return found
