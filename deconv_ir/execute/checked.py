"""Checks of layers whose inputs are known only when they run: constants and dynamic shapes."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.execute.memory import require_memory
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Call, Context, Infos
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.checks import VALUE_LIMIT
from deconv_ir.ops.values import actual


def require_fit(layer: Layer, inputs: Infos, context: Context, memory_limit: int | None) -> Infos:
    """Require that actual inputs fit a layer, and its outputs, which are returned, into memory."""
    outputs = infer_layer(layer, inputs, context)
    needed = sum(tensor_bytes(info) or 0 for info in outputs)
    require_memory(needed, memory_limit, subject="the layer")
    return outputs


def reads_unknown_lists(layer: Layer, inputs: Infos) -> bool:
    """Whether inputs may be axes, sizes or indices that inference could not check."""
    return layer.operation.checks_values and any(
        info.element_type is not None
        and info.element_type.is_integer
        and is_static(info.shape)
        and len(static(info.shape)) <= 1
        and element_count(static(info.shape)) <= VALUE_LIMIT
        and not is_static(info.value)
        for info in inputs
    )


def checked(
    layer: Layer,
    inputs: Infos,
    context: Context,
    call: Call,
    memory_limit: int | None,
) -> Call:
    """Return a call that requires its actual inputs to fit the layer, and its outputs into memory.

    `inputs` describe the constants, for which the call gets None.
    """

    def run(arrays: Sequence[Array], out: Array | None) -> Sequence[Array]:
        found = [
            info if array is None else actual(array, info.element_type)
            for array, info in zip(arrays, inputs, strict=True)
        ]
        require_fit(layer, found, context, memory_limit)
        return call(arrays, out)

    return run
