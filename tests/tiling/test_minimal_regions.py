"""The regions that layers need are minimal, shown by changes of their faces and of all outside."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from support import batches
from tiling.test_operations import CASES, one_layer

from deconv_ir import Model
from deconv_ir.errors import InputError
from deconv_ir.ir.boxes import Box, as_slices
from deconv_ir.ir.operation import Context, Operation
from deconv_ir.operations import find_operation
from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import OperationExample, parse_example

Arrays = dict[str, np.ndarray]

BOXES = 10
"""Largest number of boxes of an output that are tried."""


def changed(array: np.ndarray) -> Iterator[np.ndarray]:
    """Return other elements; infinities also reveal a weight of 0."""
    if array.dtype.kind == "b":
        yield ~array
    elif array.dtype.kind in "iu":
        yield from (array + 1, array * 0, array ^ 1)
    else:
        yield from (array * 64 + 7, array * -64)
        yield from (np.full_like(array, value) for value in (np.inf, np.nan))


def data_sets(arrays: Arrays) -> Iterator[Arrays]:
    """Return elements that matter to operations: products of ones, sums of zeros."""
    yield arrays
    for value in range(-1, 5):
        yield {name: np.full_like(array, value) for name, array in arrays.items()}
    yield {name: np.full_like(array, at % 2) for at, (name, array) in enumerate(arrays.items())}


def boxes_of(shape: tuple[int, ...], free: tuple[int, ...]) -> list[Box]:
    """Return boxes of one to three elements an axis, whole on axes that cannot be tiled."""
    spans = [
        [(a, b) for a in range(n) for b in range(a + 1, min(a + 3, n) + 1)]
        if axis in free
        else [(0, n)]
        for axis, n in enumerate(shape)
    ]
    draw = random.Random(sum(shape))
    if np.prod([len(several) for several in spans]) <= BOXES:
        return list(itertools.product(*spans))
    corners = [tuple(several[at] for several in spans) for at in (0, -1)]
    return corners + [tuple(map(draw.choice, spans)) for _ in range(BOXES - 2)]


class Layer:
    """A layer, with its results for several data sets."""

    def __init__(self, model: Model, arrays: Arrays, output: str) -> None:
        self.model, self.output = model, output
        self.runs = [(x, y) for x in data_sets(arrays) if (y := self.run(x)) is not None]

    def run(self, arrays: Arrays) -> np.ndarray | None:
        """Run the layer; return None if an index is outside the data."""
        with np.errstate(all="ignore"), contextlib.suppress(InputError):
            return self.model.run(arrays)[self.output]
        return None

    def sees(self, box: Box, name: str, part: Box) -> bool:
        """Return whether a box of the output depends on a part of an input, for some data."""
        index = as_slices(part)
        for given, result in self.runs:
            for other in changed(given[name][index]):
                array = given[name].copy()
                array[index] = other
                if differ(self.run(given | {name: array}), result, box):
                    return True
        return False

    def sees_outside(self, box: Box, regions: dict[str, Box]) -> bool:
        """Return whether a box of the output depends on elements outside its regions."""
        given, result = self.runs[0]
        for others in zip(*(changed(array) for array in given.values()), strict=False):
            arrays = dict(zip(given, map(np.copy, others), strict=True))
            for name, region in regions.items():
                arrays[name][as_slices(region)] = given[name][as_slices(region)]
            if differ(self.run(arrays), result, box):
                return True
        return False


def differ(a: np.ndarray | None, b: np.ndarray, box: Box) -> bool:
    index = as_slices(box)
    return a is not None and not np.array_equal(a[index], b[index], equal_nan=a.dtype.kind == "f")


def faces(region: Box) -> Iterator[Box]:
    for axis, (first, last) in enumerate(region):
        for span in {(first, first + 1), (last - 1, last)}:
            yield (*region[:axis], span, *region[axis + 1 :])


def require_minimal(model: Model, arrays: Arrays) -> int:
    """Try boxes of all outputs; return how many faces of regions were changed."""
    count = 0
    for output in model.outputs:
        tiles = model.tiled(output=output)
        if not any(tiles.shape[axis] > 1 for axis in tiles.tileable_axes):
            continue  # every tile needs the whole input
        layer = Layer(model, arrays, output)
        for box in boxes_of(tiles.shape, tiles.tileable_axes):
            regions = tiles.tile(box).inputs
            assert not layer.sees_outside(box, regions), (output, box, regions)
            for name, region in regions.items():
                if not layer.sees(box, name, region):  # no element of the array is read
                    assert any(last - first < 2 for first, last in region) or not region, (
                        output, box, name, region)  # fmt: skip
                    continue
                for face in faces(region):
                    count += 1
                    assert layer.sees(box, name, face), (output, box, name, region, face)
    return count


LAYERS = {
    "Convolution-1": [
        "f32[1,2,13], f32[2,2,3] | strides=2 dilations=2 pads_begin=3 pads_end=1",
        "f32[1,1,9], f32[1,1,2] | strides=3 dilations=1 pads_begin=0 pads_end=0",
        "f32[1,1,6], f32[1,1,1] | strides=1 dilations=1 pads_begin=4 pads_end=3",
        "f32[1,1,9], f32[1,1,2] | strides=1 dilations=5 pads_begin=-1 pads_end=2",
        "f32[2,2,7,8], f32[3,2,3,2] | strides=2,1 dilations=1,3 pads_begin=1,2 pads_end=2,0",
        "f32[1,2,7,8], f32[1,2,3,4] | strides=2,3 dilations=1,2 auto_pad=same_upper",
        "f32[1,2,7,8], f32[1,2,3,4] | strides=2,3 dilations=1,2 auto_pad=same_lower",
        "f32[1,2,7,8], f32[1,2,3,4] | strides=2,1 dilations=1,2 auto_pad=valid",
        "f32[1,1,5,6,4], f32[2,1,2,3,3] | strides=1,2,1 dilations=2,1,1"
        " pads_begin=1,0,2 pads_end=0,2,1",
    ],
    "GroupConvolution-1": [
        "f32[1,4,9], f32[2,3,2,3] | strides=2 dilations=1 pads_begin=1 pads_end=0",
        "f32[1,4,6,7], f32[4,1,1,3,2] | strides=1,2 dilations=2,1 pads_begin=2,0 pads_end=1,1",
        "f32[1,2,4,5,3], f32[2,1,1,2,2,2] | strides=1,2,2 dilations=1,1,1"
        " pads_begin=0,1,1 pads_end=0,0,1",
    ],
    "ConvolutionBackpropData-1": [
        "f32[1,2,7], f32[2,2,3] | strides=2 dilations=2 pads_begin=3 pads_end=1",
        "f32[1,1,7], f32[1,1,2] | strides=3 dilations=1 pads_begin=0 pads_end=1",
        "f32[1,1,7], f32[1,1,3] | strides=3 dilations=3 pads_begin=1 pads_end=1",
        "f32[1,1,7], f32[1,1,4] | strides=4 dilations=6 pads_begin=2 pads_end=0",
        "f32[1,1,5], f32[1,1,3] | strides=3 dilations=1 pads_begin=1 pads_end=0 output_padding=2",
        "f32[1,1,5], f32[1,1,3], i64[1]{19} | strides=3 dilations=1",
        "f32[1,1,5], f32[1,1,3], i64[1]{8} | strides=3 dilations=2 auto_pad=same_lower",
        "f32[2,3,5,4], f32[3,2,3,2] | strides=2,3 dilations=1,2 pads_begin=1,0 pads_end=0,2"
        " output_padding=1,2",
        "f32[1,2,5,4], f32[2,1,3,4], i64[2]{12,9} | strides=2,3 dilations=1,1 auto_pad=same_upper",
        "f32[1,2,5,4], f32[2,1,3,4], i64[2]{9,10} | strides=2,2 dilations=2,1 auto_pad=same_lower",
        "f32[1,2,5,4], f32[2,1,3,4] | strides=2,3 dilations=2,1 auto_pad=valid",
        "f32[1,1,3,4,5], f32[1,2,3,2,2] | strides=2,1,3 dilations=1,3,1"
        " pads_begin=1,0,2 pads_end=0,2,1 output_padding=1,0,2",
    ],
    "GroupConvolutionBackpropData-1": [
        "f32[1,4,7], f32[2,2,3,3] | strides=2 dilations=1 pads_begin=1 pads_end=0",
        "f32[1,4,4,5], f32[4,1,1,4,3], i64[2]{9,13} | strides=2,3 dilations=1,1",
    ],
    "MaxPool-1": [
        "f32[2,2,11] | strides=3 kernel=4 pads_begin=2 pads_end=1 rounding_type=ceil",
        "f32[1,2,7,9] | strides=2,1 kernel=3,2 pads_begin=1,1 pads_end=0,1 auto_pad=same_upper",
    ],
    "MaxPool-8": [
        "f32[1,1,12] | strides=1 dilations=3 kernel=3 pads_begin=2 pads_end=2",
        "f32[1,2,7,9] | strides=2,3 dilations=2,1 kernel=2,3 pads_begin=1,0 pads_end=0,2",
    ],
    "MaxPool-14": [
        "f32[1,1,8] | strides=3 dilations=1 kernel=2 pads_begin=1 pads_end=1"
        " rounding_type=ceil_torch",
        "f32[1,1,5,6,7] | strides=2,1,3 dilations=1,2,1 kernel=2,2,3 pads_begin=0,1,1"
        " pads_end=1,0,2 rounding_type=ceil",
    ],
    "AvgPool-1": [
        "f32[1,1,11] | strides=3 kernel=4 pads_begin=2 pads_end=1 exclude-pad=false",
        "f32[1,2,7,9] | strides=2,3 kernel=3,2 pads_begin=0,0 pads_end=0,0 exclude-pad=true"
        " rounding_type=ceil",
        "f32[1,1,4,5,6] | strides=1,2,2 kernel=2,3,3 pads_begin=1,1,0 pads_end=0,1,2"
        " exclude-pad=true auto_pad=same_lower",
    ],
    "AvgPool-16": [
        "f32[1,1,13] | strides=2 dilations=2 kernel=3 pads_begin=3 pads_end=1 exclude-pad=true"
    ],
    "AdaptiveAvgPool-8": ["f32[1,2,11,5], i64[2]{4,7}", "f32[1,2,13], i64[1]{5}"],
    "AdaptiveMaxPool-8": ["f32[1,1,7,5,9], i64[3]{3,2,4}"],
    "Pad-1": [
        f"f32[1,7,5], i64[3]{{0,3,2}}, i64[3]{{1,2,4}}{value} | pad_mode={mode}"
        for mode, value in (("constant", ", f32[]{2}"), ("edge", ""))
    ]
    + [
        f"f32[3,7,5], i64[3]{{0,3,2}}, i64[3]{{1,2,4}} | pad_mode={mode}"
        for mode in ("reflect", "symmetric")
    ],
    "Pad-12": [
        f"f32[7,6,5], i64[3]{{-2,3,-1}}, i64[3]{{2,-3,4}} | pad_mode={mode}"
        for mode in ("constant", "edge", "reflect", "symmetric")
    ],
    "Interpolate-1": [
        "f32[1,1,4,5], i64[2]{8,9} | axes=2,3 mode=linear align_corners=true",
        "f32[1,2,3,4,5], i64[3]{5,3,9} | axes=2,3,4 mode=nearest align_corners=false",
    ],
    "Interpolate-4": [
        f"f32[1,1,{extent}], i64[1]{{{size}}}, f32[1]{{1}}, i64[1]{{2}} | {how}"
        " shape_calculation_mode=sizes"
        for extent, size in ((13, 29), (13, 5), (6, 12), (12, 4))
        for how in (
            "mode=linear",
            "mode=linear antialias=true",
            "mode=linear coordinate_transformation_mode=align_corners",
            "mode=linear_onnx coordinate_transformation_mode=asymmetric",
            "mode=cubic",
            "mode=cubic coordinate_transformation_mode=pytorch_half_pixel cube_coeff=-0.5",
            "mode=nearest",
            "mode=nearest nearest_mode=ceil coordinate_transformation_mode=asymmetric",
            "mode=nearest nearest_mode=floor coordinate_transformation_mode=tf_half_pixel_for_nn",
            "mode=nearest nearest_mode=simple coordinate_transformation_mode=align_corners",
            "mode=nearest nearest_mode=round_prefer_ceil",
        )
    ]
    + [
        "f32[2,6,5], i64[2]{9,7}, f32[2]{1.7,0.5}, i64[2]{1,2} | mode=linear_onnx"
        " shape_calculation_mode=scales",
        "f32[1,2,4,5,6], i64[3]{7,3,9}, f32[3]{1,1,1}, i64[3]{2,3,4} | mode=linear_onnx"
        " shape_calculation_mode=sizes",
        "f32[1,1,4,5,6], i64[3]{7,3,9}, f32[3]{1,1,1}, i64[3]{2,3,4} | mode=cubic"
        " shape_calculation_mode=sizes",
    ],
    "Interpolate-11": [
        f"f32[1,1,9,6], i64[2]{{{sizes}}}, i64[2]{{2,3}} | mode={mode} shape_calculation_mode=sizes"
        for sizes in ("4,13", "20,3")
        for mode in ("bilinear_pillow", "bicubic_pillow cube_coeff=-0.5")
    ],
    "Slice-8": [
        "f32[1,1,13], i64[1]{11}, i64[1]{1}, i64[1]{-2}, i64[1]{2}",
        "f32[4,9,7], i64[3]{1,8,-2}, i64[3]{4,-99,99}, i64[3]{2,-3,1}",
    ],
    "StridedSlice-1": [
        "f32[4,9,7], i64[3]{1,8,0}, i64[3]{9,0,0}, i64[3]{1,-3,2}"
        " | begin_mask=1,1,0 end_mask=1,1,0 shrink_axis_mask=0,0,1",
        "f32[4,9], i64[3]{0,1,0}, i64[3]{0,4,0}, i64[3]{1,2,1}"
        " | begin_mask=1,1,0 end_mask=1,1,0 new_axis_mask=0,0,1 ellipsis_mask=1,0,0",
    ],
    "Concat-1": [
        "f32[2,3,4], f32[2,1,4], f32[2,5,4] | axis=1",
        "f32[3,4], f32[3,2] | axis=-1",
    ],
    "Split-1": ["f32[3,8,2], i64[]{1} | num_splits=4"],
    "VariadicSplit-1": ["f32[3,9], i64[]{-1}, i64[3]{2,-1,3}"],
    "DepthToSpace-1": [
        f"f32[{shape}] | block_size={size} mode={mode}"
        for shape, size in (("1,6,4", 3), ("2,8,3,4", 2), ("1,18,2,3", 3), ("1,16,2,3,2", 2))
        for mode in ("blocks_first", "depth_first")
    ],
    "SpaceToDepth-1": [
        f"f32[{shape}] | block_size={size} mode={mode}"
        for shape, size in (("1,2,9", 3), ("2,2,6,4", 2), ("1,1,4,2,4", 2))
        for mode in ("blocks_first", "depth_first")
    ],
    "Transpose-1": ["f32[2,3,4,5], i64[4]{2,0,3,1}", "f32[3,4,5], i64[0]{}"],
    "Reshape-1": [
        "f32[2,6,4], i64[4]{2,3,2,4} | special_zero=false",
        "f32[2,3,4,5], i64[2]{6,20} | special_zero=false",
        "f32[4,3,5], i64[3]{2,6,5} | special_zero=false",
        "f32[3,5,4], i64[4]{5,3,1,4} | special_zero=false",
        "f32[8], i64[3]{2,2,2} | special_zero=false",
    ],
    "Squeeze-1": ["f32[1,3,1,2], i64[1]{0}"],
    "Unsqueeze-1": ["f32[3,2], i64[2]{0,2}"],
    "Add-1": [
        "f32[2,3,4,5], f32[4,1]",
        "f32[3,1,5], f32[2,1,4,1]",
        "f32[2,3,4,5], f32[3,4] | auto_broadcast=pdpd auto_broadcast.auto_broadcast_axis=1",
        "f32[4,1], f32[]",
    ],
    "PReLU-1": ["f32[2,3,4,5], f32[3]", "f32[2,3,4,5], f32[4,1]"],
    "Select-1": ["boolean[3,1], f32[2,3,4], f32[4]"],
    "FakeQuantize-1": [
        "f32[2,3,4,4], f32[1,3,1,1]{0,-1,-2}, f32[1,3,1,1]{9,9,9}, f32[]{0}, f32[]{1} | levels=256"
    ],
    "Gather-8": [
        "f32[3,9], i64[2,3]{5,-1,0,2,2,7}, i64[]{1}",
        "f32[9,4], i64[5]{0,2,4,6,8}, i64[]{0}",
        "f32[2,7,3], i64[]{-3}, i64[]{1}",
    ],
    "ShuffleChannels-1": ["f32[2,6,5,3] | axis=1 group=3"],
    "Reverse-1": ["f32[4,7,3], i64[2]{0,1} | mode=index"],
    "Roll-7": ["f32[5,7], i64[2]{2,-10}, i64[2]{0,1}"],
    "Tile-1": ["f32[2,3,5], i64[3]{2,1,3}"],
    "Broadcast-3": [
        "f32[3,1,4], i64[4]{2,3,6,4} | mode=numpy",
        "f32[3,1,4], i64[3]{1,5,1} | mode=bidirectional",
        "f32[3,4], i64[4]{2,3,5,4}, i64[2]{1,3} | mode=explicit",
    ],
    "BatchNormInference-5": ["f32[2,3,4,5], f32[3], f32[3], f32[3], f32[3] | epsilon=0.1"],
    "NormalizeL2-1": ["f32[2,3,4,5], i64[1]{1} | eps=1e-3 eps_mode=add"],
    "MVN-6": ["f32[2,3,4,5], i64[2]{2,-1} | eps=1e-3 normalize_variance=true eps_mode=inside_sqrt"],
    "SoftMax-8": ["f32[2,3,4] | axis=-2"],
    "ReduceSum-1": ["f32[2,3,4,5], i64[2]{1,-1} | keep_dims=false"],
    "ReduceMax-1": ["f32[2,3,4,5], i64[2]{2,3} | keep_dims=true"],
    "MatMul-1": [
        "f32[2,1,4,3], f32[5,3] | transpose_b=true",
        "f32[3,4], f32[2,3,5] | transpose_a=true",
    ],
}
"""Operation and version -> inputs and attributes."""


WORKED = [
    (kind, version, text)
    for kind, version, text in CASES
    if find_operation(kind, version).tile is not Operation.tile
]


def constant(example: OperationExample) -> OperationExample:
    """Return an example whose inputs are constants except the first; weights are positive."""
    return example._replace(
        inputs=(
            example.inputs[0],
            *(one._replace(elements=tuple(one.array(1).flat)) for one in example.inputs[1:]),
        )
    )


def layer_of(kind: str, version: str, text: str, semantics: str = "spec") -> tuple[Model, Arrays]:
    """Make a layer; its weights are constants."""
    recurrent = kind.endswith(("Cell", "Sequence"))
    if recurrent:
        text = text.replace("{5,3}", "{5,5}")  # sequences that are not tiled
    example = parse_example(text if "->" in text else "->|".join(text.partition("|")[::2]))
    if recurrent or "Conv" in kind:
        example = constant(example)
    known = [one.info() for one in example.inputs]
    made = example.operation(find_operation(kind, version)).infer(known, Context())
    example = example._replace(outputs=tuple(made))
    # Matrix products give the bits of the whole if their inputs are whole.
    accuracy = "fast" if kind == "MatMul" or recurrent else "direct"
    return one_layer(kind, version, example, semantics=semantics, accuracy=accuracy)


CONVOLUTIONS = [(kind, text) for kind, texts in LAYERS.items() if "Conv" in kind for text in texts]


@pytest.mark.parametrize("numbers", batches(len(WORKED), 20), ids=str)
def test_worked_examples(numbers: range) -> None:
    for number in numbers:
        require_minimal(*layer_of(*WORKED[number]))


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text) for kind, texts in LAYERS.items() for text in texts],
    ids=lambda value: str(value)[:60],
)
def test_layers(kind: str, text: str) -> None:
    name, _, version = kind.partition("-")
    model, arrays = layer_of(name, f"opset{version}", text)
    assert require_minimal(model, arrays)


@pytest.mark.parametrize(("kind", "text"), CONVOLUTIONS, ids=lambda value: str(value)[:60])
def test_layers_of_the_other_semantics(kind: str, text: str) -> None:
    model, arrays = layer_of(kind.partition("-")[0], "opset1", text, "openvino")
    assert require_minimal(model, arrays)


def test_every_operation_that_is_tiled_is_here() -> None:
    """Operations that only exist in oneDNN graphs share the regions of the others."""
    tiled = {o.type for o in all_operations() if o.versions and o.tile is not Operation.tile}
    assert tiled == {kind for kind, *_ in WORKED} | {kind.partition("-")[0] for kind in LAYERS}
