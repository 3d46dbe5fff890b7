"""Checks of layers whose inputs are known only when they run: constants and dynamic shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deconv_ir.execute.memory import require_memory
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Context, Infos, LayerPlan
from deconv_ir.ir.shapes import element_count, is_static, largest, static
from deconv_ir.ops.checks import VALUE_LIMIT
from deconv_ir.ops.values import actual


def require_fit(
    layer: Layer, inputs: Infos, context: Context, memory_limit: int | None, held: int | None = None
) -> Infos:
    """Require that actual inputs fit a layer, and its outputs, which are returned, into memory.

    A run holds `held` bytes already.  A limit holds for the largest outputs that there may be.
    """
    outputs = infer_layer(layer, inputs, context)
    counted: Infos = outputs
    if memory_limit is not None:
        counted = [info._replace(shape=largest(info.shape)) for info in outputs]
    needed = sum(tensor_bytes(info) or 0 for info in counted)
    if held is None:
        require_memory(needed, memory_limit, subject="the layer")
        return outputs
    if all(is_static(info.shape) for info in (*inputs, *counted)):
        needed += layer.operation.scratch(inputs, counted, context)
    subject = "the run up to the layer"
    require_memory(held + needed, memory_limit, held=held, subject=subject)
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


class CheckedPlan(LayerPlan):
    """A plan that requires its actual inputs to fit the layer, and its outputs into memory.

    `inputs` describe the constants, for which runs get None.  With `is_counted`, the plan of the
    model has the memory of this one.
    """

    def __init__(
        self,
        layer: Layer,
        inputs: Infos,
        context: Context,
        memory_limit: int | None,
        plan: LayerPlan,
        *,
        is_counted: bool,
    ) -> None:
        super().__init__(plan.run, plan.choice)
        self.is_counted = is_counted
        self._layer, self._inputs = layer, inputs
        self._context, self._limit = context, memory_limit

    def run(self, inputs: Sequence[Any], out: Any, held: int | None = None) -> Sequence[Any]:
        """Compute the outputs while the run holds a number of bytes already."""
        found = [
            info if array is None else actual(array, info.element_type)
            for array, info in zip(inputs, self._inputs, strict=True)
        ]
        require_fit(self._layer, found, self._context, self._limit, held)
        return super().run(inputs, out)
