"""Layers with windows: Convolution, Deconvolution, Pooling; and FullyConnected.

Sources: catalogue, sections of the same names; Inference Engine 2020.3, ie_layer_validators.cpp,
`parseParams` (spellings of version 2, and defaults) and ie_layers_internal.cpp, `getPaddingsImpl`
(`auto_pad`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.ir.geometry import PadMode, Rounding
from deconv_ir.ir.graph import Source
from deconv_ir.ir.shapes import format_shape


class OldWindow(NamedTuple):
    """The window of a layer; a number for each spatial axis.

    Attributes
    ----------
    kernel, strides, dilations, begin, end : tuple of int
    auto_pad : str
        ``same_upper``, ``same_lower``, ``valid`` or empty: explicit pads.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    auto_pad: str

    @property
    def extents(self) -> list[int]:
        """Extents of the kernel with its dilations."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]


_AUTO: Final = ("same_upper", "same_lower", "valid")
_EXPLICIT: Final = ("", "explicit", "notset", "none")


def window(step: LayerConversion) -> OldWindow:
    """Read a window in the lists of version 3 and later, or the numbers of version 2.

    A version 2 file has ``kernel-x``, ``stride-y``, ``pad-x``, ``pad-r`` and so on; a stride of 0
    means 1 there.
    """
    auto_pad = step.text("auto_pad", "auto-pad").lower()
    if auto_pad not in (*_AUTO, *_EXPLICIT):
        raise step.fault("auto_pad", f"must be one of {', '.join(_AUTO)}", auto_pad)
    auto_pad = auto_pad if auto_pad in _AUTO else ""
    if step.has("kernel"):
        kernel = step.integers("kernel", minimum=1)
        count = len(kernel)
        begin = step.integers("pads_begin", default=(0,) * count)
        found = OldWindow(
            kernel,
            step.integers("strides", default=(1,) * count, minimum=1),
            step.integers("dilations", default=(1,) * count, minimum=1),
            begin,
            step.integers("pads_end", default=begin),
            auto_pad,
        )
        for name in ("strides", "dilations", "begin", "end"):
            if len(getattr(found, name)) != count:
                spelt = f"pads_{name}" if name in ("begin", "end") else name
                raise step.fault(spelt, f"must have {count} numbers, as kernel", step.text(spelt))
        return found
    before = [step.integer(f"pad-{axis}", default=0) for axis in "yx"]
    return OldWindow(
        tuple(step.integer(f"kernel-{axis}", default=REQUIRED, minimum=1) for axis in "yx"),
        tuple(step.integer(f"stride-{axis}", default=1, minimum=0) or 1 for axis in "yx"),
        tuple(step.integer(f"dilation-{axis}", default=1, minimum=0) or 1 for axis in "yx"),
        tuple(before),
        tuple(
            step.integer(f"pad-{side}", default=pad) for side, pad in zip("br", before, strict=True)
        ),
        auto_pad,
    )


def filter_of(step: LayerConversion, shape: Sequence[int]) -> Source:
    """Return the filter: the blob ``weights``, or input 1 in late version 7 files."""
    if "w-scale" in step.layer.blobs or "oi-scale" in step.layer.blobs:
        raise step.unsupported("weights with the scales w-scale and oi-scale are not supported")
    if len(step.inputs) > 1 and not step.has_blob("weights"):
        return step.reshape(step.input(1), shape)
    return step.blob("weights", shape)


def with_bias(step: LayerConversion, found: Source, channels: int, rank: int) -> Source:
    """Add the blob ``biases``, or input 2, if the layer has one."""
    shape = (1, channels, *(1,) * (rank - 2))
    if step.has_blob("biases"):
        return step.add("Add", found, step.blob("biases", shape))
    if len(step.inputs) > 2:
        return step.add("Add", found, step.reshape(step.input(2), shape))
    return found


def channels(step: LayerConversion, name: str = "output") -> tuple[int, int]:
    """Return the number of output channels and of groups, which must divide them."""
    count = step.integer(name, default=REQUIRED, minimum=1)
    group = step.integer("group", default=1, minimum=0) or 1
    inputs = step.dims(step.input())[1]
    for value, what in ((count, "output channels"), (inputs, "input channels")):
        if value % group:
            raise step.fault("group", f"must divide the {value} {what}", group)
    return count, group


def spatial(step: LayerConversion, found: OldWindow) -> None:
    """Require an input with the axes of a window."""
    rank = step.rank(step.input())
    if rank != len(found.kernel) + 2:
        dims = format_shape(step.dims(step.input()))
        raise step.fault(
            "kernel" if step.has("kernel") else "kernel-x",
            f"does not fit {dims}",
            ",".join(map(str, found.kernel)),
        )


def convolution(step: LayerConversion) -> Source:
    """Convert Convolution; the weights are in the order G, O, I, then spatial."""
    found = window(step)
    spatial(step, found)
    count, group = channels(step)
    data = step.input()
    inputs = step.dims(data)[1]
    kind, shape = "Convolution", (count, inputs, *found.kernel)
    if group > 1:
        kind, shape = "GroupConvolution", (group, count // group, inputs // group, *found.kernel)
    zeros = (0,) * len(found.kernel)
    made = step.add(
        kind,
        data,
        filter_of(step, shape),
        strides=found.strides,
        dilations=found.dilations,
        pads_begin=zeros if found.auto_pad else found.begin,
        pads_end=zeros if found.auto_pad else found.end,
        auto_pad=PadMode(found.auto_pad) if found.auto_pad else PadMode.EXPLICIT,
    )
    return with_bias(step, made, count, len(found.kernel) + 2)


def deconvolution(step: LayerConversion) -> Source:
    """Convert Deconvolution; the weights are in the order G, I, O, then spatial.

    The catalogue names their order GOIYX, as that of Convolution, whose gradient a Deconvolution
    is: O are the channels of the convolution's output, which are the input here.
    """
    found = window(step)
    spatial(step, found)
    count, group = channels(step)
    data = step.input()
    dims = step.dims(data)
    kind, shape = "ConvolutionBackpropData", (dims[1], count, *found.kernel)
    if group > 1:
        kind = "GroupConvolutionBackpropData"
        shape = (group, dims[1] // group, count // group, *found.kernel)
    begin, end = deconvolution_pads(found)
    padding = step.integers("output_padding", default=(0,) * len(begin), minimum=0)
    # A negative pad at the end extends the output.
    padding = tuple(p + max(0, -e) for p, e in zip(padding, end, strict=True))
    made = step.add(
        kind,
        data,
        filter_of(step, shape),
        strides=found.strides,
        dilations=found.dilations,
        pads_begin=begin,
        pads_end=tuple(max(0, e) for e in end),
        output_padding=padding,
        auto_pad=PadMode.EXPLICIT,
    )
    return with_bias(step, made, count, len(found.kernel) + 2)


def deconvolution_pads(found: OldWindow) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pads at the begin and at the end of each axis; a negative one extends it.

    With `same_upper` and `same_lower`, the output has the input's extent times the stride.
    """
    if not found.auto_pad:
        return found.begin, found.end
    zeros = (0,) * len(found.kernel)
    if found.auto_pad == "valid":
        return zeros, zeros
    begin, end = [], []
    for extent, stride in zip(found.extents, found.strides, strict=True):
        total = extent - stride
        first = max(0, total) // 2
        if found.auto_pad == "same_lower":
            first = max(0, total) - first
        begin.append(first)
        end.append(total - first)
    return tuple(begin), tuple(end)


def deformable(step: LayerConversion) -> Source:
    """Convert DeformableConvolution; input 1 has the offsets."""
    found = window(step)
    spatial(step, found)
    count, group = channels(step)
    data = step.input()
    zeros = (0,) * len(found.kernel)
    weights = step.blob("weights", (count, step.dims(data)[1] // group, *found.kernel))
    made = step.add(
        "DeformableConvolution",
        data,
        step.input(1),
        weights,
        strides=found.strides,
        dilations=found.dilations,
        pads_begin=zeros if found.auto_pad else found.begin,
        pads_end=zeros if found.auto_pad else found.end,
        auto_pad=PadMode(found.auto_pad) if found.auto_pad else PadMode.EXPLICIT,
        group=group,
        deformable_group=step.integer(
            "deformable_group", "num_deformable_group", default=1, minimum=1
        ),
    )
    if not step.has_blob("biases"):
        return made
    return step.add("Add", made, step.blob("biases", (1, count, *(1 for _ in zeros))))


def pooling(step: LayerConversion) -> Source:
    """Convert Pooling.

    Before `rounding_type` existed, the declared dims alone told how a size was rounded.
    """
    found = window(step)
    spatial(step, found)
    method = step.text("pool-method", "pool_method", default="max").lower()
    if method not in ("max", "avg"):
        raise step.fault("pool-method", "must be max or avg", method)
    data = step.input()
    padded = found.auto_pad in ("", "valid")
    begin, end = found.begin, found.end
    if found.auto_pad:
        begin = end = (0,) * len(found.kernel)
    rounding = pooling_rounding(step, found, begin, end) if padded else Rounding.FLOOR
    common: dict[str, Any] = {
        "kernel": found.kernel,
        "strides": found.strides,
        "pads_begin": begin,
        "pads_end": end,
        "rounding_type": rounding,
        "auto_pad": PadMode(found.auto_pad) if found.auto_pad else PadMode.EXPLICIT,
    }
    if method == "max":
        return step.add("MaxPool", data, **common)
    exclude = step.flag("exclude-pad", "exclude_pad")
    # The Inference Engine counted only elements that exist if there were no pads.
    exclude = exclude or (padded and not any((*begin, *end)))
    return step.add("AvgPool", data, exclude_pad=exclude, **common)


def pooling_rounding(
    step: LayerConversion, found: OldWindow, begin: Sequence[int], end: Sequence[int]
) -> Rounding:
    """Return how the size of an output is rounded: as stated, or as the declared dims were."""
    text = step.text("rounding_type", "rounding-type").lower()
    if text in ("floor", "ceil"):
        return Rounding(text)
    if text:
        raise step.fault("rounding_type", "must be floor or ceil", text)
    stated = step.declared()
    dims = step.dims(step.input())
    if stated is None or len(stated) != len(dims):
        return Rounding.FLOOR
    free = [
        (x + b + e - k, s)
        for x, b, e, k, s in zip(dims[2:], begin, end, found.kernel, found.strides, strict=True)
    ]
    floor = tuple(n // s + 1 for n, s in free)
    ceil = tuple(-(-n // s) + 1 for n, s in free)
    return Rounding.CEIL if stated[2:] == ceil != floor else Rounding.FLOOR


def fully_connected(step: LayerConversion) -> Source:
    """Convert FullyConnected: the weights are in the order O, I; the input is flattened."""
    data = step.input()
    dims, stated = step.dims(data), step.declared()
    count = step.integer("out-size", "out_size", default=None, minimum=1)
    if count is None:
        count = step.stated(least=1)[-1]
    if "w-scale" in step.layer.blobs or "oi-scale" in step.layer.blobs:
        raise step.unsupported("weights with the scales w-scale and oi-scale are not supported")
    keeps = len(dims) == 3 and stated is not None and len(stated) == 3
    inner = dims[-1] if keeps else math.prod(dims[1:])
    if not keeps and len(dims) != 2:
        data = step.reshape(data, (0, -1) if len(dims) > 1 else (1, -1))
        inner = math.prod(dims[1:]) if len(dims) > 1 else math.prod(dims)
    made = step.add(
        "MatMul", data, filter_of(step, (count, inner)), transpose_a=False, transpose_b=True
    )
    shape = (1, 1, count) if keeps else (1, count)
    if step.has_blob("biases"):
        made = step.add("Add", made, step.blob("biases", shape))
    elif len(step.inputs) > 2:
        made = step.add("Add", made, step.reshape(step.input(2), shape))
    if stated is not None and len(stated) > 2 and not keeps:
        made = step.reshape(made, (0, -1, *(1,) * (len(stated) - 2)))
    return made


RULES: Final[dict[str, Rule]] = {
    "Convolution": convolution,
    "Deconvolution": deconvolution,
    "DeformableConvolution": deformable,
    "FullyConnected": fully_connected,
    "InnerProduct": fully_connected,
    "Pooling": pooling,
}
