"""The base of operations with a sliding window: attributes for each spatial axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import (
    Axis,
    AxisGeometry,
    Dim,
    PadMode,
    bounds,
    convolution_axis,
    effective_kernel,
    interval,
    monotone,
)
from deconv_ir.ir.operation import Operation
from deconv_ir.ops.base import attribute, choice, integers

AUTO_PAD = choice(PadMode, notset=PadMode.EXPLICIT, none=PadMode.EXPLICIT)


class Windowed(Operation):
    """Attributes of a window that slides over padded data, for each spatial axis."""

    strides: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    pads_begin: tuple[int, ...] | None = attribute(integers(per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(per_axis=True), None, required=True)
    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)

    def rule(self, axis: Axis, data: int, kernel: int) -> AxisGeometry:
        """Find pads and extent of an axis, as convolutions do."""
        return convolution_axis(axis, data, kernel, self.auto_pad)


_NEUTRAL = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0, "output_padding": 0}
"""Attributes of windows -> the element for which absence stands."""


def without_void(operation: Operation) -> Operation:
    """Return an operation without the attributes of its window that have no effect.

    These are pads next to an `auto_pad` that determines them, and lists that say what their absence
    says.  Source: OpenVINO operation specifications of convolutions and pooling, `pads_begin` and
    `pads_end`; oneDNN Graph documents of the same, `auto_pad`.
    """
    mode = getattr(operation, "auto_pad", PadMode.EXPLICIT)
    changes: dict[str, None] = {}
    for name, neutral in _NEUTRAL.items():
        declared = operation.fields.get(name)
        values = getattr(operation, name, None)
        if declared is None or declared.default is not None or not isinstance(values, tuple):
            continue
        void = mode is not PadMode.EXPLICIT and name.startswith("pads_")
        if void or all(value == neutral for value in values):
            changes[name] = None
    return operation.replace(**changes) if changes else operation


AxisRule = Callable[[Axis, int, int], AxisGeometry]
"""A function of an axis's attributes, X and K that returns its geometry."""


def check_length(name: str, values: tuple[int, ...] | None, spatial: int) -> None:
    """Require one value for each spatial axis."""
    if values is not None and len(values) != spatial:
        raise ShapeError(
            f"{name} must have {spatial} elements, one for each spatial axis, "
            f"found {len(values)}: {','.join(map(str, values))}",
            attribute=name,
            expected=spatial,
            actual=len(values),
            rule="attribute-length",
        )


def window_axes(operation: Operation, spatial: int) -> tuple[Axis, ...]:
    """Return the attributes axis by axis; absent ones are 1, or 0 for pads."""
    lists = []
    for name, value in (("strides", 1), ("dilations", 1), ("pads_begin", 0), ("pads_end", 0)):
        values = getattr(operation, name) or None
        check_length(name, values, spatial)
        lists.append(values or (value,) * spatial)
    return tuple(map(Axis, *lists))


def window_extent(
    index: int, axis: Axis, data: Dim, kernel: Dim, auto_pad: PadMode, rule: AxisRule
) -> Dim:
    """Return the output extent of an axis."""
    if auto_pad in (PadMode.SAME_UPPER, PadMode.SAME_LOWER):
        # The pads are chosen to fit any kernel.
        return monotone(lambda x: rule(axis, x, 1).output, data)
    if isinstance(data, int) and isinstance(kernel, int):
        geometry = rule(axis, data, kernel)
        padded = data + geometry.pad_begin + geometry.pad_end
        if geometry.partial and geometry.output > 0 and data > 0:
            return geometry.output
        if padded < effective_kernel(kernel, axis.dilation):
            raise ShapeError(
                f"the window does not fit the padded data on spatial axis {index}: "
                f"{geometry.formula}",
                actual=padded,
                expected=f">= {effective_kernel(kernel, axis.dilation)}",
                rule="window",
            )
        return geometry.output
    # Without at least one window, the sizes do not fit.  The extent grows with the data and shrinks
    # with the kernel.
    (data_low, data_high), (kernel_low, kernel_high) = bounds(data), bounds(kernel)
    low = 1 if kernel_high is None else max(1, rule(axis, data_low, kernel_high).output)
    if data_high is None:
        return interval(low, None)
    return interval(low, max(low, rule(axis, data_high, max(1, kernel_low)).output))


def explain_window(axis: Axis, data: Dim, kernel: Dim, rule: AxisRule) -> str:
    """Return the formula of the extent of an axis."""
    if isinstance(data, int) and isinstance(kernel, int):
        return rule(axis, data, kernel).formula
    return f"X {data}, K {kernel}, stride {axis.stride}, dilation {axis.dilation}"


def static_geometry(
    axes: Sequence[Axis],
    data: Sequence[int],
    kernel: Sequence[int],
    auto_pad: PadMode,
    rule: AxisRule,
) -> tuple[AxisGeometry, ...]:
    """Return the geometry of all axes of an actual array."""
    for index, (axis, x, k) in enumerate(zip(axes, data, kernel, strict=True)):
        window_extent(index, axis, x, k, auto_pad, rule)
    return tuple(map(rule, axes, data, kernel))
