"""Interp, Resample and Upsampling.

Sources: catalogue, sections Interp and Resample; Model Optimizer 2019 R3, extensions/back,
InterpolateToInterpOrResample; Inference Engine 2018 R5, extension/ext_resample.cpp and
ext_interp.cpp (coordinates).
"""

from __future__ import annotations

from typing import Final

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.rules.shapes import take
from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.graph import Source


def interpolate(
    step: LayerConversion,
    data: Source,
    sizes: tuple[int, ...],
    mode: str,
    coordinates: str,
    antialias: bool = False,
    computed: Source | None = None,
) -> Source:
    """Add an Interpolate of the spatial axes; `computed` is a tensor with their sizes."""
    given = {
        "mode": mode,
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": "round_prefer_ceil",
        "antialias": "true" if antialias else "false",
    }
    axes = tuple(range(2, 2 + len(sizes)))
    dims = step.dims(data)[2:]
    scales = [new / old for new, old in zip(sizes, dims, strict=True)]
    return step.written(
        "Interpolate",
        data,
        step.literal(sizes, suffix="sizes") if computed is None else computed,
        step.literal(scales, F32, suffix="scales"),
        step.literal(axes, suffix="axes"),
        version="opset4",
        given=given,
    )[0]


def target(step: LayerConversion, dims: tuple[int, ...], factor: float | None) -> tuple[int, ...]:
    """Return the extents of the output: stated, by a factor, or those of the declared dims."""
    stated = step.declared()
    sizes = []
    for axis, name in enumerate(("height", "width")[: len(dims)]):
        extent = step.integer(name, default=0, minimum=0)
        if extent == 0 and factor:
            extent = int(dims[axis] * factor)
        sizes.append(extent)
    if stated is not None and len(stated) == len(dims) + 2:
        return stated[2:]
    if len(dims) > 2 or not all(sizes):
        raise step.unsupported("the output has no dims, and the layer states no size")
    return tuple(sizes)


def interp(step: LayerConversion) -> Source:
    """Convert Interp: bilinear; negative pads crop the input."""
    data = step.input()
    before = step.integer("pad_beg", "pad_begin", default=0)
    after = step.integer("pad_end", default=0)
    if before > 0 or after > 0:
        raise step.unsupported("Interp with pads above 0 has no counterpart", "pad_beg")
    if before or after:
        ends = tuple(extent + after for extent in step.dims(data)[2:])
        data = take(step, data, [2, 3], (-before, -before), ends)
    corners = step.flag("align_corners", default=True)
    sizes = target(step, step.dims(data)[2:], step.number("factor", default=None))
    return interpolate(
        step, data, sizes, "linear_onnx", "align_corners" if corners else "asymmetric"
    )


_METHODS: Final = {
    "caffe.resampleparameter.nearest": "nearest",
    "caffe.resampleparameter.linear": "linear",
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
}


def resample(step: LayerConversion) -> Source:
    """Convert Resample of one input, or of two: the second is the shape of the output."""
    data = step.input()
    name = step.text("type", "resample_type", default="caffe.ResampleParameter.NEAREST")
    mode = _METHODS.get(name.lower())
    if mode is None:
        raise step.fault("type", "must be LINEAR or NEAREST of caffe.ResampleParameter", name)
    dims = step.dims(data)[2:]
    sizes = target(step, dims, step.number("factor", default=None))
    given = None
    if len(step.inputs) > 1:
        given = take(step, step.integral(step.input(1)), [0], (2,), (2 + len(dims),))
    shrinks = any(new < old for new, old in zip(sizes, dims, strict=True))
    antialias = mode == "linear" and step.flag("antialias") and shrinks
    return interpolate(step, data, sizes, mode, "half_pixel", antialias, given)


def upsampling(step: LayerConversion) -> Source:
    """Convert Upsampling: each element is repeated."""
    data = step.input()
    scale = step.integer("scale", "factor", default=None, minimum=1)
    if scale is None and step.declared() is None:
        step.integer("scale", default=REQUIRED)
    sizes = target(step, step.dims(data)[2:], scale)
    return interpolate(step, data, sizes, "nearest", "half_pixel")


RULES: Final[dict[str, Rule]] = {
    "Interp": interp,
    "Resample": resample,
    "Upsampling": upsampling,
}
