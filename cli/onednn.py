"""Options of deconv-run for oneDNN Graph files: overrides, physical layout, conversion."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .common import EXIT_OK, STREAM, Mistake, note, read_standard_input, require_absent

if TYPE_CHECKING:
    from deconv_ir import Model, Overrides
    from deconv_ir.ir.dtypes import Array

    from .request import Request


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
        request.replace(**dict(zip(names, chosen, strict=True)))
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
