"""Layers that move elements, or that deal with shapes; and Input and Const.

Sources: catalogue, sections of the same names.
"""

from __future__ import annotations

from typing import Final

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.layer import computed_type, stored_type
from deconv_ir.formats.openvino_legacy.rules.elementwise import alike
from deconv_ir.ir.dtypes import F32, I32, I64
from deconv_ir.ir.graph import Source
from deconv_ir.ir.shapes import format_shape
from deconv_ir.ops.constants.parameter import Parameter
from deconv_ir.ops.shape.pad import PadValues
from deconv_ir.ops.shape.space import BlockMode

_END: Final = 2**31 - 1
"""An end of a slice behind any extent."""


def parameter(step: LayerConversion) -> Source:
    """Convert Input."""
    port = step.layer.outputs[0] if step.layer.outputs else None
    if port is None:
        raise step.unsupported("an Input without an output port")
    known = computed_type(stored_type(step.layer.precision))
    if port.element_type is not None and not port.element_type.is_float:
        known = port.element_type
    shape = () if port.shape is None else port.shape
    return step.apply(Parameter(shape=shape, element_type=known))[0]


def constant(step: LayerConversion) -> Source:
    """Convert Const; its blob has any name, ``custom`` in most files."""
    names = [name for name in step.layer.blobs if step.has_blob(name)] or ["custom"]
    stated = step.layer.outputs[0].shape if step.layer.outputs else ()
    return step.blob(names[0], () if stated is None else step.stated())


def concat(step: LayerConversion) -> Source:
    """Convert Concat."""
    inputs = list(step.inputs) or [step.input()]
    axis = step.axis(step.integer("axis", default=1), step.rank(inputs[0]))
    for index in range(1, len(inputs)):
        inputs[0], inputs[index] = alike(step, inputs[0], inputs[index])
    return step.add("Concat", *inputs, axis=axis)


def split(step: LayerConversion) -> list[Source]:
    """Convert Split and Slice: the extents of the parts are those of the outputs."""
    data, count = step.input(), len(step.layer.outputs)
    axis = step.axis(step.integer("axis", default=1), step.rank(data))
    parts = [step.stated(i) for i in range(count)]
    if any(len(part) <= axis for part in parts):
        raise step.fault("axis", "is not an axis of the outputs", axis)
    extents = [part[axis] for part in parts]
    along = step.literal((axis,), I64, (), suffix="axis")
    total = step.dims(data)[axis]
    if sum(extents) != total:
        raise step.unsupported(
            f"the parts {format_shape(tuple(extents))} are {sum(extents)} of {total} elements "
            f"on axis {axis}"
        )
    if len(set(extents)) == 1:
        return list(step.many("Split", data, along, outputs=count, num_splits=count))
    return list(
        step.many(
            "VariadicSplit", data, along, step.literal(extents, suffix="lengths"), outputs=count
        )
    )


def crop(step: LayerConversion) -> Source:
    """Convert Crop of all three types of the catalogue."""
    data = step.input()
    rank = step.rank(data)
    axes = [step.axis(axis, rank) for axis in step.integers("axis", default=(1,))]
    if step.has("crop_begin"):
        begin = step.integers("crop_begin", minimum=0)
        tail = step.integers("crop_end", default=(0,) * len(axes), minimum=0)
        end = tuple(-t if t else _END for t in tail)
    else:
        begin = step.integers("offset", default=(0,) * len(axes), minimum=0)
        if len(step.inputs) > 1:
            like = step.dims(step.input(1))
            dims = tuple(like[axis] for axis in axes if axis < len(like))
        else:
            dims = step.integers("dim", default=None, minimum=0)
            dims = tuple(step.stated(least=rank)[a] for a in axes) if dims is None else dims
        end = tuple(b + d for b, d in zip(begin, dims, strict=False))
    if not len(axes) == len(begin) == len(end):
        raise step.fault(
            "axis", f"has {len(axes)} axes, offsets or sizes differ", step.text("axis")
        )
    return take(step, data, axes, begin, end)


def take(
    step: LayerConversion,
    data: Source,
    axes: list[int],
    begin: tuple[int, ...],
    end: tuple[int, ...],
) -> Source:
    """Add a Slice with steps of 1."""
    ends = (step.literal(begin, suffix="begin"), step.literal(end, suffix="end"))
    ones = step.literal((1,) * len(axes), suffix="step")
    return step.add("Slice", data, *ends, ones, step.literal(axes, suffix="axes"), version="opset8")


def pad(step: LayerConversion) -> Source:
    """Convert Pad."""
    data = step.input()
    rank = step.rank(data)
    begin = step.integers("pads_begin", default=REQUIRED, minimum=0)
    end = step.integers("pads_end", default=REQUIRED, minimum=0)
    for name, pads in (("pads_begin", begin), ("pads_end", end)):
        if len(pads) != rank:
            raise step.fault(name, f"must have {rank} numbers", step.text(name))
    mode = step.text("pad_mode", default="constant").lower()
    if mode not in {m.value for m in PadValues}:
        raise step.fault("pad_mode", "is unknown", mode)
    sources = [step.literal(begin, suffix="begin"), step.literal(end, suffix="end")]
    if mode == "constant":
        sources.append(step.scalar(step.number("pad_value", default=0.0), data))
    return step.add("Pad", data, *sources, pad_mode=PadValues(mode))


def reshape(step: LayerConversion) -> Source:
    """Convert Reshape: a shape from `dim`, from input 1, or else the declared dims.

    With `axis` and `num_axes`, as Caffe has them, `dim` stands for a part of the axes.
    """
    data = step.input()
    if len(step.inputs) > 1:
        return step.add("Reshape", data, step.integral(step.input(1)), special_zero=True)
    wanted = step.integers("dim", "shape", default=None)
    partly = step.integer("axis", default=0) or step.integer("num_axes", default=-1) != -1
    if wanted is None or partly:
        return step.reshape(data, step.stated())
    return step.reshape(data, wanted)


def flatten(step: LayerConversion) -> Source:
    """Convert Flatten of the axes from `axis` to `end_axis`."""
    data = step.input()
    dims = step.dims(data)
    if not dims:
        return step.reshape(data, (1,))
    # The catalogue's default is 0; files without the attribute declare dims with a batch.
    stated = step.declared()
    usual = 1 if stated is not None and len(stated) == 2 and len(dims) > 1 else 0
    first = step.axis(step.integer("axis", default=usual), len(dims))
    last = step.axis(step.integer("end_axis", default=-1), len(dims), "end_axis")
    if last < first:
        raise step.fault("end_axis", f"must be from axis {first} on", last)
    return step.reshape(data, (*(0,) * first, -1, *dims[last + 1 :]))


def permute(step: LayerConversion) -> Source:
    """Convert Permute."""
    data = step.input()
    order = step.integers("order", default=REQUIRED, minimum=0)
    if sorted(order) != list(range(step.rank(data))):
        raise step.fault("order", f"must permute {step.rank(data)} axes", step.text("order"))
    return step.add("Transpose", data, step.literal(order, suffix="order"))


def squeeze(step: LayerConversion) -> Source:
    """Convert Squeeze; without axes, all axes of extent 1."""
    data = step.input()
    if len(step.inputs) > 1:
        return step.add("Squeeze", data, step.integral(step.input(1)))
    axes = step.integers("axes", "axis", default=None)
    if axes is None:
        axes = tuple(i for i, extent in enumerate(step.dims(data)) if extent == 1)
        if not axes:
            return data
    return step.add("Squeeze", data, step.literal(axes, suffix="axes"))


def unsqueeze(step: LayerConversion) -> Source:
    """Convert Unsqueeze."""
    data = step.input()
    if len(step.inputs) > 1:
        return step.add("Unsqueeze", data, step.integral(step.input(1)))
    axes = step.integers("axes", "axis", default=REQUIRED)
    return step.add("Unsqueeze", data, step.literal(axes, suffix="axes"))


def tile(step: LayerConversion) -> Source:
    """Convert Tile of one axis."""
    data = step.input()
    rank = step.rank(data)
    if len(step.inputs) > 1:
        return step.add("Tile", data, step.integral(step.input(1)))
    axis = step.axis(step.integer("axis", default=REQUIRED), rank)
    count = step.integer("tiles", default=REQUIRED, minimum=1)
    repeats = tuple(count if i == axis else 1 for i in range(rank))
    return step.add("Tile", data, step.literal(repeats, suffix="repeats"))


def strided_slice(step: LayerConversion) -> Source:
    """Convert StridedSlice.

    In the catalogue, a 1 in `begin_mask` says that a bound counts; today, that it is ignored.
    """
    sources = [step.integral(step.input(i)) for i in range(1, len(step.inputs))]
    kinds = [step.type_of(source) for source in sources]
    if len(set(kinds)) > 1:
        sources = [step.convert(source, I64) for source in sources]
    known = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    given = {name: step.text(name) for name in known if step.has(name)}
    width = step.dims(sources[0])[0] if sources and step.rank(sources[0]) == 1 else 1
    for name in ("begin_mask", "end_mask"):
        bits = step.integers(name, default=(1,) * width, minimum=0)
        padded = [*bits, *(1,) * (width - len(bits))]
        given[name] = ",".join(str(1 - min(1, bit)) for bit in padded)
    return step.written("StridedSlice", step.input(), *sources, given=given)[0]


def shuffle_channels(step: LayerConversion) -> Source:
    """Convert ShuffleChannels."""
    data = step.input()
    axis = step.axis(step.integer("axis", default=1), step.rank(data))
    group = step.integer("group", default=1, minimum=1)
    return step.add("ShuffleChannels", data, axis=axis, group=group)


def depth_to_space(step: LayerConversion) -> Source:
    """Convert DepthToSpace; the blocks come first, as in the catalogue's formula."""
    size = step.integer("block_size", default=1, minimum=1)
    return step.add("DepthToSpace", step.input(), block_size=size, mode=block_mode(step))


def space_to_depth(step: LayerConversion) -> Source:
    """Convert SpaceToDepth."""
    size = step.integer("block_size", default=1, minimum=1)
    return step.add("SpaceToDepth", step.input(), block_size=size, mode=block_mode(step))


def block_mode(step: LayerConversion) -> BlockMode:
    """Return the order of blocks and channels, of late files; the blocks come first."""
    text = step.text("mode", default="blocks_first").lower()
    if text not in {mode.value for mode in BlockMode}:
        raise step.fault("mode", "is unknown", text)
    return BlockMode(text)


def shape_of(step: LayerConversion) -> Source:
    """Convert Shape and ShapeOf, whose result is of I32 as the constants around it."""
    return step.add("ShapeOf", step.input(), version="opset3", output_type=I32)


def fill(step: LayerConversion) -> Source:
    """Convert Fill: input 1 in the shape of input 0."""
    value = step.input(1)
    if step.rank(value):
        value = step.reshape(value, (1,))
    return step.add("Broadcast", value, step.integral(step.input(0)))


def broadcast(step: LayerConversion) -> Source:
    """Convert Broadcast, by NumPy's rule."""
    return step.add("Broadcast", step.input(), step.integral(step.input(1)))


def range_(step: LayerConversion) -> Source:
    """Convert Range; its inputs have no dims, or one of extent 1."""
    sources = [scalar(step, step.input(i)) for i in range(3)]
    kinds = [step.type_of(source) for source in sources]
    wide = next((kind for kind in kinds if kind.is_float), kinds[0])
    return step.add(
        "Range", *(step.convert(s, wide) for s in sources), version="opset4", output_type=wide
    )


def scalar(step: LayerConversion, source: Source) -> Source:
    """Return a tensor of one element without dims."""
    rank = step.rank(source)
    if not rank:
        return source
    return step.add("Squeeze", source, step.literal(range(rank), suffix="axes"))


def one_hot(step: LayerConversion) -> Source:
    """Convert OneHot, whose depth and values are attributes."""
    depth = step.integer("depth", default=REQUIRED, minimum=1)
    on, off = step.number("on_value", default=1.0), step.number("off_value", default=0.0)
    indices = step.input()
    if step.type_of(indices).is_float:
        indices = step.convert(indices, I64)
    return step.add(
        "OneHot",
        indices,
        step.literal((depth,), I64, (), suffix="depth"),
        step.literal((on,), F32, (), suffix="on_value"),
        step.literal((off,), F32, (), suffix="off_value"),
        axis=step.integer("axis", default=-1),
    )


def reverse_sequence(step: LayerConversion) -> Source:
    """Convert ReverseSequence."""
    return step.add(
        "ReverseSequence",
        step.input(),
        step.integral(step.input(1)),
        batch_axis=step.integer("batch_axis", default=0),
        seq_axis=step.integer("seq_axis", default=1),
    )


RULES: Final[dict[str, Rule]] = {
    "Broadcast": broadcast,
    "Concat": concat,
    "Const": constant,
    "Crop": crop,
    "DepthToSpace": depth_to_space,
    "Fill": fill,
    "Flatten": flatten,
    "Input": parameter,
    "OneHot": one_hot,
    "Pad": pad,
    "Permute": permute,
    "Range": range_,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Shape": shape_of,
    "ShapeOf": shape_of,
    "ShuffleChannels": shuffle_channels,
    "Slice": split,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "StridedSlice": strided_slice,
    "Tile": tile,
    "Unsqueeze": unsqueeze,
}
