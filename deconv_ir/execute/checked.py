"""Layers of which shapes are known only when they run: each run infers them first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Call, Context, TensorInfo
from deconv_ir.ops.values import actual

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


def checked(layer: Layer, inputs: Sequence[TensorInfo], context: Context, call: Call) -> Call:
    """Return a call that requires its actual inputs to fit the layer.

    Parameters
    ----------
    layer : Layer
    inputs : sequence of TensorInfo
        What is known of inputs that the call finds None for: constants.
    context : Context
    call : callable
        As `Operation.bind` returns it.
    """

    def run(arrays: Sequence[Array], out: Array | None) -> Sequence[Array]:
        found = [
            info if array is None else actual(array, info.element_type)
            for array, info in zip(arrays, inputs, strict=True)
        ]
        infer_layer(layer, found, context)
        return call(arrays, out)

    return run
