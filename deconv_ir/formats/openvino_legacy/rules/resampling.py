"""Interp, Resample and Upsampling.

Sources: catalogue, sections Interp and Resample; Model Optimizer 2019 R3, extensions/back,
InterpolateToInterpOrResample; Inference Engine 2018 R5, extension/ext_resample.cpp and
ext_interp.cpp (coordinates); Caffe of FlowNet 2, resample_layer.cu (CUBIC).
"""

from __future__ import annotations

from typing import Final

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.rules.shapes import take
from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.graph import Source
from deconv_ir.ir.shapes import MAX_EXTENT, format_shape
from deconv_ir.ops.shape.pad import PadValues


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
    dims = extents(step, data)
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


def extents(step: LayerConversion, data: Source, most: int | None = None) -> tuple[int, ...]:
    """Return the extents of the spatial axes, of which there are one or more."""
    found = step.dims(data, 3 if most is None else most, most)[2:]
    if min(found) < 1:
        raise step.unsupported(f"nothing can be interpolated in {format_shape(found)}")
    return found


def target(step: LayerConversion, dims: tuple[int, ...], factor: float | None) -> tuple[int, ...]:
    """Return the extents of the output: stated, by a factor, or those of the declared dims."""
    stated = step.declared()
    sizes = []
    for axis, name in enumerate(("height", "width")[: len(dims)]):
        extent = step.integer(name, default=0, minimum=0)
        if extent == 0 and factor:
            if not 0 < factor <= MAX_EXTENT:
                raise step.fault("factor", "must be a positive number", factor)
            extent = int(dims[axis] * factor)
        sizes.append(extent)
    if stated is not None and len(stated) == len(dims) + 2:
        return stated[2:]
    if len(dims) > 2 or not all(sizes):
        raise step.unsupported("the output has no dims, and the layer states no size")
    return tuple(sizes)


def interp(step: LayerConversion) -> Source:
    """Convert Interp: bilinear; pads add zeros around the input, negative ones crop it.

    The catalogue has pads of 0 and above, Caffe's layer those of 0 and below.
    """
    data = step.input()
    pads = step.integer("pad_beg", "pad_begin", default=0), step.integer("pad_end", default=0)
    if min(pads) < 0:
        first, last = (max(0, -pad) for pad in pads)
        ends = tuple(extent - last for extent in extents(step, data, 4))
        data = take(step, data, [2, 3], (first, first), ends)
    if max(pads) > 0:
        added = [(0, 0, max(0, pad), max(0, pad)) for pad in pads]
        sources = [step.literal(four, suffix="pads") for four in added]
        zero = step.scalar(0.0, data)
        data = step.add("Pad", data, *sources, zero, pad_mode=PadValues.CONSTANT)
    corners = step.flag("align_corners", default=True)
    sizes = target(step, extents(step, data, 4), step.number("factor", default=None))
    return interpolate(
        step, data, sizes, "linear_onnx", "align_corners" if corners else "asymmetric"
    )


def pillow(
    step: LayerConversion,
    data: Source,
    sizes: tuple[int, ...],
    mode: str,
    computed: Source | None = None,
) -> Source:
    """Add an Interpolate whose kernel is as wide as the input's step: only if both axes shrink.

    Weights are those of Caffe's ResampleLayer of FlowNet with antialias, of which the Inference
    Engine's is a copy: normalized, without elements outside; the cubic kernel has a = -0.5.
    """
    return step.written(
        "Interpolate",
        data,
        step.literal(sizes, suffix="sizes") if computed is None else computed,
        step.literal((2, 3), suffix="axes"),
        version="opset11",
        given={"mode": mode, "shape_calculation_mode": "sizes", "cube_coeff": "-0.5"},
    )[0]


_METHODS: Final = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}


def resample(step: LayerConversion) -> Source:
    """Convert Resample of one input, or of two: the second is the shape of the output."""
    data = step.input()
    name = step.text("type", "resample_type", default="caffe.ResampleParameter.NEAREST")
    spelt = name.lower().removeprefix("caffe.resampleparameter.")
    if spelt == "area":  # written by Model Optimizer for Interpolate
        raise step.unsupported(f"no release of the Inference Engine computed {name!r}", "type")
    mode = _METHODS.get(spelt)
    if mode is None:
        must = "must be LINEAR, CUBIC or NEAREST of caffe.ResampleParameter"
        raise step.fault("type", must, name)
    dims = extents(step, data)
    sizes = target(step, dims, step.number("factor", default=None))
    given = None
    if len(step.inputs) > 1:
        given = take(step, step.integral(step.input(1)), [0], (2,), (2 + len(dims),))
    pairs = list(zip(sizes, dims, strict=True))
    shrinks, grows = any(new < old for new, old in pairs), any(new > old for new, old in pairs)
    antialias = step.flag("antialias") and shrinks and mode != "nearest"
    if mode == "cubic" and ((shrinks and (grows or not antialias)) or len(dims) != 2):
        what = "CUBIC needs two axes that grow, or that shrink with antialias"
        raise step.unsupported(what, "type")
    if mode == "cubic" or (antialias and not grows and len(dims) == 2):
        kernel = "bicubic_pillow" if mode == "cubic" else "bilinear_pillow"
        return pillow(step, data, sizes, kernel, given)
    return interpolate(step, data, sizes, mode, "half_pixel", antialias, given)


def upsampling(step: LayerConversion) -> Source:
    """Convert Upsampling: each element is repeated."""
    data = step.input()
    scale = step.integer("scale", "factor", default=None, minimum=1)
    if scale is None and step.declared() is None:
        step.integer("scale", default=REQUIRED)
    sizes = target(step, extents(step, data), scale)
    return interpolate(step, data, sizes, "nearest", "half_pixel")


RULES: Final[dict[str, Rule]] = {
    "Interp": interp,
    "Resample": resample,
    "Upsampling": upsampling,
}
