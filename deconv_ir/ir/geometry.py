"""Integers on one axis: extents, pads, and their closed-interval forms.

This is the only place with padding arithmetic.  Per spatial axis, with input
extent X, kernel extent K, stride s and dilation d::

    effective kernel  E = (K - 1) * d + 1
    natural extent    F = s * (X - 1) + E
    full[t] = sum over x, k with s*x + d*k == t of data[x] * filter[k],  0 <= t < F
    output[y] = full[y + pad_begin] where that index exists, else 0,     0 <= y < Y

A kernel needs two integers per axis, `pad_begin` and Y.  The functions below
compute them by the rules of each document and of the OpenVINO runtime.
"""

import enum
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from deconv_ir.ir.options import Semantics


class Interval(NamedTuple):
    """A dim that is not fixed: ``min <= dim <= max``.

    Attributes
    ----------
    min : int
        Smallest extent.
    max : int or None
        Largest extent; None: unbounded.

    Examples
    --------
    >>> from deconv_ir import Interval
    >>> Interval(1, 4), Interval(2), Interval()
    (1..4, 2.., ?)
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/documents/convolution_backprop_data_3_output_shape.xml")
    >>> model.infer_shapes()  # the value of output_shape is known when the model runs
    {'upsampling_node': (1, 10, ?, ?)}
    """

    min: int = 0
    max: int | None = None

    def __str__(self) -> str:
        if self.max is None:
            return "?" if self.min == 0 else f"{self.min}.."
        return f"{self.min}..{self.max}"

    def __repr__(self) -> str:
        return str(self)


Dim = int | Interval
"""A dim of a shape: an int, or an interval if it is dynamic."""

UNKNOWN = Interval()


def interval(low: int, high: int | None) -> Dim:
    """Return the dim from `low` to `high`: an int if they are equal."""
    return low if low == high else Interval(low, high)


def bounds(dim: Dim) -> tuple[int, int | None]:
    """Return the smallest and the largest value of a dim (None: unbounded)."""
    return (dim, dim) if isinstance(dim, int) else (dim.min, dim.max)


def monotone(function: Callable[..., int], *dims: Dim) -> Dim:
    """Apply a function that is increasing in each argument to dims.

    The result is the interval between the values at the two ends; its lower
    end is at least 0, since no extent is negative.
    """
    ends = [bounds(d) for d in dims]
    low = max(0, function(*(e[0] for e in ends)))
    if any(e[1] is None for e in ends):
        return Interval(low, None)
    return interval(low, max(0, function(*(e[1] for e in ends))))


class PadMode(enum.Enum):
    """The rule for pads: the `auto_pad` attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir import PadMode, conv_transpose
    >>> x, w = np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]])
    >>> conv_transpose(x, w, strides=2, output_shape=[4], auto_pad=PadMode.SAME_UPPER)
    array([[[2., 4., 2., 3.]]])
    >>> conv_transpose(x, w, strides=2, output_shape=[4], auto_pad=PadMode.SAME_LOWER)
    array([[[1., 2., 4., 2.]]])
    """

    EXPLICIT = "explicit"
    SAME_UPPER = "same_upper"
    SAME_LOWER = "same_lower"
    VALID = "valid"


class AxisGeometry(NamedTuple):
    """The pads and the output extent of one spatial axis.

    `pad_begin` is the index of the natural output at which the output starts; if it is
    negative, the output starts with ``-pad_begin`` zeros.  `pad_end` elements of the natural output
    (with output_padding) are cropped at the end; if it is negative, zeros are appended.
    """

    pad_begin: int
    pad_end: int
    output: int
    template: str
    numbers: tuple[int, ...]
    partial: bool = False
    """Whether the window may be larger than the padded data."""

    @property
    def formula(self) -> str:
        """The formula for `output` and the pads, with its numbers."""
        return self.template.format(*self.numbers)


def effective_kernel(kernel: int, dilation: int) -> int:
    """E: the extent of a dilated kernel."""
    return (kernel - 1) * dilation + 1


def natural_extent(data: int, kernel: int, stride: int, dilation: int) -> int:
    """F: the extent of the output without padding and output_padding."""
    return stride * (data - 1) + effective_kernel(kernel, dilation)


class Axis(NamedTuple):
    """The attributes of one spatial axis of a transposed convolution."""

    stride: int = 1
    dilation: int = 1
    pad_begin: int = 0
    pad_end: int = 0
    output_padding: int = 0

    def natural(self, data: int, kernel: int) -> int:
        """F of this axis."""
        return natural_extent(data, kernel, self.stride, self.dilation)


_NATURAL = "stride*(X - 1) + ((K - 1)*dilation + 1)"
_NATURAL_NUMBERS = "{}*({} - 1) + (({} - 1)*{} + 1)"
_NATURAL_NUMBERS_AT = "{0}*({1} - 1) + (({2} - 1)*{3} + 1)"


def _from_pads(axis: Axis, data: int, kernel: int, begin: int, end: int) -> AxisGeometry:
    """Compute Y from the pads: S0, S1, S2 'Detailed description'; S3, first equation."""
    output = axis.natural(data, kernel) - begin - end + axis.output_padding
    return AxisGeometry(
        begin,
        end,
        output,
        f"Y = {_NATURAL} - pad_begin - pad_end + output_padding"
        f" = {_NATURAL_NUMBERS} - {{}} - {{}} + {{}} = {{}}",
        (axis.stride, data, kernel, axis.dilation, begin, end, axis.output_padding, output),
    )


def _from_output(
    axis: Axis,
    data: int,
    kernel: int,
    output: int,
    begin: Callable[[int], int],
    rule: str,
    name: str = "output_shape",
) -> AxisGeometry:
    """Compute the pads from Y; `begin` maps the total padding to the pad at the start."""
    total = axis.natural(data, kernel) - output + axis.output_padding
    first = begin(total)
    return AxisGeometry(
        first,
        total - first,
        output,
        f"Y = {name} = {{8}}; total_padding = {_NATURAL} - Y + output_padding"
        f" = {_NATURAL_NUMBERS_AT} - {{8}} + {{4}} = {{5}};"
        f" pad_begin = {rule} = {{6}}, pad_end = {{7}}",
        (
            axis.stride,
            data,
            kernel,
            axis.dilation,
            axis.output_padding,
            total,
            first,
            total - first,
            output,
        ),
    )


_Rule = tuple[Callable[[int], int], str]
"""A function from the total padding to the pad at the start, and its formula."""


def _ceil_half(total: int) -> int:
    return total - total // 2


_FLOOR_HALF: _Rule = lambda total: total // 2, "total_padding // 2"
_CEIL_HALF: _Rule = _ceil_half, "total_padding - total_padding // 2"


def _stated(axis: Axis, auto_pad: PadMode) -> _Rule:
    """Return the rule of pads that do not depend on the total."""
    if auto_pad is PadMode.VALID:
        return lambda _: 0, "0 (valid)"
    return lambda _: axis.pad_begin, "pads_begin"


def openvino_axis(
    axis: Axis,
    data: int,
    kernel: int,
    auto_pad: PadMode = PadMode.EXPLICIT,
    output: int | None = None,
    semantics: Semantics = Semantics.SPEC,
) -> AxisGeometry:
    """Find pads and extent as ConvolutionBackpropData-1 does (and its Group form).

    `data` and `kernel` are the extents X and K, `output` the element of the `output_shape` input
    for this axis.  Source of SPEC: OpenVINO documents ConvolutionBackpropData-1 and
    GroupConvolutionBackpropData-1, 'Detailed description'.  OPENVINO is the CPU runtime, which
    differs only with `output`.
    """
    if output is None:
        if auto_pad is PadMode.EXPLICIT:
            return _from_pads(axis, data, kernel, axis.pad_begin, axis.pad_end)
        return _from_pads(axis, data, kernel, 0, 0)
    upper, lower = auto_pad is PadMode.SAME_UPPER, auto_pad is PadMode.SAME_LOWER
    if semantics is Semantics.SPEC:
        begin, rule = _CEIL_HALF if upper else _FLOOR_HALF
    elif upper:
        begin, rule = lambda t: _ceil_half(max(0, t)), "ceil(max(0, total_padding) / 2)"
    elif lower:
        begin, rule = lambda t: max(0, t) // 2, "max(0, total_padding) // 2"
    else:
        begin, rule = _stated(axis, auto_pad)
    return _from_output(axis, data, kernel, output, begin, rule)


def conv_transpose_axis(
    axis: Axis,
    data: int,
    kernel: int,
    auto_pad: PadMode = PadMode.EXPLICIT,
    semantics: Semantics = Semantics.SPEC,
) -> AxisGeometry:
    """Find pads and extent as oneDNN Graph ConvTranspose-1 does.

    SAME_UPPER and SAME_LOWER split an odd total the other way round from the
    OpenVINO operations, and the total is not clamped at 0 (S3, equations).  ONEDNN is the library,
    which clamps it.
    """
    if auto_pad is PadMode.EXPLICIT:
        return _from_pads(axis, data, kernel, axis.pad_begin, axis.pad_end)
    if auto_pad is PadMode.VALID:
        return _from_pads(axis, data, kernel, 0, 0)
    total = effective_kernel(kernel, axis.dilation) - axis.stride
    if total < 0 and semantics is Semantics.ONEDNN:
        return _from_pads(axis, data, kernel, 0, 0)
    begin = total // 2 if auto_pad is PadMode.SAME_UPPER else total - total // 2
    output = axis.stride * data + axis.output_padding
    rule = "" if auto_pad is PadMode.SAME_UPPER else "total_padding - "
    return AxisGeometry(
        begin,
        total - begin,
        output,
        "Y = stride*X + output_padding = {0}*{1} + {2} = {3};"
        " total_padding = (K - 1)*dilation + 1 - stride = ({4} - 1)*{5} + 1 - {0} = {6};"
        f" pad_begin = {rule}total_padding // 2 = {{7}}",
        (axis.stride, data, axis.output_padding, output, kernel, axis.dilation, total, begin),
    )


def backward_data_axis(
    axis: Axis,
    data: int,
    kernel: int,
    output: int,
    auto_pad: PadMode = PadMode.EXPLICIT,
    semantics: Semantics = Semantics.SPEC,
) -> AxisGeometry:
    """Find pads as oneDNN Graph ConvolutionBackwardData does; `output` is its dst extent.

    ONEDNN is the library, which pads as the convolution of dst does: it puts an odd element on the
    other side, and the total is not negative.
    """
    halves = {PadMode.SAME_LOWER: _FLOOR_HALF, PadMode.SAME_UPPER: _CEIL_HALF}
    if semantics is Semantics.ONEDNN and auto_pad in halves:
        same = _same_axis(axis, output, kernel, auto_pad).pad_begin
        begin, rule = lambda _: same, "that of a convolution of dst"
    else:
        begin, rule = halves.get(auto_pad) or _stated(axis, auto_pad)
    return _from_output(axis, data, kernel, output, begin, rule, "dst_shape")


def interior_taps(axis: Axis, kernel: int) -> tuple[int, int, int]:
    """Count the kernel elements that outputs far from the borders sum on one axis.

    Output t sums the elements k with ``t - dilation*k`` divisible by the stride.

    Returns
    -------
    fewest, most : int
        The smallest and the largest number that any output sums.
    unreached : int
        The number of outputs, among `stride` consecutive ones, that sum no element.

    Examples
    --------
    >>> interior_taps(Axis(stride=2), 3)  # odd outputs sum one element, even ones two
    (1, 2, 0)
    """
    # Taps k and k + period reach the same sub-convolution.
    period = axis.stride // math.gcd(axis.stride, axis.dilation)
    reached = min(kernel, period)
    fewest = kernel // period if reached == axis.stride else 0
    return fewest, -(-kernel // period), axis.stride - reached


def tap_counts(
    axis: Axis, data: int, kernel: int, pad_begin: int, outputs: range
) -> tuple[int, ...]:
    """Count the kernel elements that overlap data, for each output of a transposed convolution.

    That is, for each output y the number of pairs (x, k) with ``stride*x + dilation*k == y +
    pad_begin``, where `pad_begin` is as in `AxisGeometry`; positions outside of the output are
    counted like any other.  The time does not depend on the extents.

    Examples
    --------
    >>> tap_counts(Axis(stride=2), 3, 3, 0, range(7))
    (1, 1, 2, 1, 2, 1, 1)
    """
    stride, dilation = axis.stride, axis.dilation
    common = math.gcd(stride, dilation)
    period = stride // common
    inverse = pow(dilation // common, -1, period)
    counts = []
    for y in outputs:
        t = y + pad_begin
        first = max(0, -(-(t - stride * (data - 1)) // dilation))
        last = min(kernel - 1, t // dilation)
        if t % common or last < first or data < 1:
            counts.append(0)
            continue
        k = t // common * inverse % period  # k, k + period, ... reach t
        counts.append((last - k) // period - (first - 1 - k) // period)
    return tuple(counts)


class Rounding(enum.Enum):
    """The rounding of the number of pooling windows: the `rounding_type` attribute."""

    FLOOR = "floor"
    CEIL = "ceil"
    CEIL_TORCH = "ceil_torch"


def _same_axis(axis: Axis, data: int, kernel: int, auto_pad: PadMode) -> AxisGeometry:
    """Compute Y = ceil(X / stride), and the pads from Y."""
    output = -(-data // axis.stride)
    total = max(0, (output - 1) * axis.stride + effective_kernel(kernel, axis.dilation) - data)
    upper = auto_pad is PadMode.SAME_UPPER
    begin = total // 2 if upper else total - total // 2
    rule = "total_padding // 2" if upper else "total_padding - total_padding // 2"
    return AxisGeometry(
        begin,
        total - begin,
        output,
        "Y = ceil(X / stride) = ceil({0} / {1}) = {2};"
        " total_padding = max(0, (Y - 1)*stride + (K - 1)*dilation + 1 - X) = {3};"
        f" pad_begin = {rule} = {{4}}",
        (data, axis.stride, output, total, begin),
    )


def convolution_axis(
    axis: Axis, data: int, kernel: int, auto_pad: PadMode = PadMode.EXPLICIT
) -> AxisGeometry:
    """Find pads and extent as OpenVINO Convolution-1 does (and its Group form).

    Here pads are added to the data: ``output[y]`` is the sum over k of
    ``data[stride*y + dilation*k - pad_begin] * filter[k]`` where that index exists;
    `output_padding` has no meaning.
    """
    return pooling_axis(axis, data, kernel, auto_pad, Rounding.FLOOR)


def pooling_axis(
    axis: Axis,
    data: int,
    kernel: int,
    auto_pad: PadMode = PadMode.EXPLICIT,
    rounding: Rounding = Rounding.FLOOR,
) -> AxisGeometry:
    """Find pads and extent as OpenVINO MaxPool-1, -8, -14 and AvgPool-1, -14 do.

    Rounding up counts a last window that reaches beyond the end; CEIL_TORCH counts it only if
    it starts in the data or in the pad before the data.
    """
    if auto_pad in (PadMode.SAME_UPPER, PadMode.SAME_LOWER):
        return _same_axis(axis, data, kernel, auto_pad)
    begin, end = (axis.pad_begin, axis.pad_end) if auto_pad is PadMode.EXPLICIT else (0, 0)
    free = data + begin + end - effective_kernel(kernel, axis.dilation)
    if rounding is Rounding.FLOOR:
        output, rule = free // axis.stride + 1, "floor"
    else:
        output, rule = -(-free // axis.stride) + 1, "ceil"
    note = ""
    if rounding is Rounding.CEIL_TORCH and (output - 1) * axis.stride >= data + begin:
        output -= 1
        note = ", less 1: the last window would start after the data"
    return AxisGeometry(
        begin,
        end,
        output,
        f"Y = {rule}((X + pad_begin + pad_end - ((K - 1)*dilation + 1)) / stride) + 1"
        f" = {rule}(({{0}} + {{1}} + {{2}} - (({{3}} - 1)*{{4}} + 1)) / {{5}}) + 1 = {{6}}{note}",
        (data, begin, end, kernel, axis.dilation, axis.stride, output),
        rounding is Rounding.CEIL_TORCH,
    )


@functools.lru_cache(maxsize=4096)
def window_reach(
    axis: Axis, pad_begin: int, data: int, kernel: int, span: tuple[int, int]
) -> tuple[int, int] | None:
    """Return the data that windows read: from ``s*y + d*k - pad_begin`` for y in a span.

    The smallest range of all x with ``0 <= x < data``; None if the windows cover only padding.
    """
    stride, dilation = axis.stride, axis.dilation
    lowest = -(-(pad_begin - stride * (span[1] - 1)) // dilation)
    highest = (data - 1 - stride * span[0] + pad_begin) // dilation
    found = []
    for tap in range(max(0, lowest), min(kernel, highest + 1)):
        shift = dilation * tap - pad_begin
        low = max(span[0], -(shift // stride))
        high = min(span[1] - 1, (data - 1 - shift) // stride)
        if low <= high:
            found += [stride * low + shift, stride * high + shift]
    return (min(found), max(found) + 1) if found else None


@functools.lru_cache(maxsize=4096)
def transposed_reach(
    axis: Axis, pad_begin: int, data: int, kernel: int, span: tuple[int, int]
) -> tuple[int, int] | None:
    """Return the data that a span of a transposed convolution's output depends on.

    The smallest range of all x with ``s*x + d*k == y + pad_begin`` for some k and some y of the
    span; None if no tap reaches the span.
    """
    found = []
    for tap in range(kernel):
        shift = pad_begin - axis.dilation * tap
        low = max(0, -(-(span[0] + shift) // axis.stride))
        high = min(data - 1, (span[1] - 1 + shift) // axis.stride)
        if low <= high:
            found += [low, high]
    return (min(found), max(found) + 1) if found else None
