"""Deconvolution blocks built and saved by OpenVINO: the IRs to compare."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .faults import meet
from .oracle import Window, is_pointwise, openvino_window, transposed
from .problems import Problem, array, openvino_problem
from .runtimes import ops, ov, run

__all__ = ["COMPUTED", "Block", "blocks"]

COMPUTED = ("shapeof", "sum", "gather", "slice", "strided", "concat")
"""Ways to compute output_shape from the shape of another input."""

_NUMPY = {"f32": "float32", "f16": "float16"}


@dataclass(frozen=True, slots=True)
class Block:
    """A problem, and the layers around it in a network."""

    problem: Problem
    grouped: bool
    bias: bool
    relu: bool
    compress: bool
    dynamic: str
    """static, unknown (every dim -1), some (a random choice of dims and ranges)"""
    shape_from: str
    """absent, constant, parameter, or computed from the shape of an input `like`"""
    element_type: str = "f32"

    def __str__(self) -> str:
        parts = [
            str(self.problem),
            self.dynamic,
            "" if self.shape_from == "absent" else self.shape_from,
            "fp16" if self.compress else "",
            self.element_type if self.element_type != "f32" else "",
            f"[{self.fault}]" if self.fault else "",
        ]
        return "-".join(p for p in parts if p)

    @property
    def fault(self) -> str | None:
        """The fault of OpenVINO that a run of this block would meet: a key of FAULTS."""
        p = self.problem
        if is_pointwise(p):
            return "pointwise"
        if self.grouped and p.groups == 1 and self._spatial == 1:
            return "group-of-one"
        window = openvino_window(p, "openvino")
        reach = [(k - 1) * d for k, d in zip(p.kernel, p.dilations, strict=True)]
        for natural, (begin, extent), last in zip(p.natural, window, reach, strict=True):
            end = natural - extent - begin
            if self.bias and (max(begin, end) > last or end < 0):
                return "bias-beyond-kernel"
        return None

    @property
    def _spatial(self) -> int:
        return len(self.problem.extents)

    def data_dims(self) -> list[Any]:
        """Declared dims of the `data` parameter."""
        rng = random.Random(self.problem.seed)
        shape = self.problem.data_shape
        if self.dynamic == "static":
            return list(shape)
        if self.dynamic == "unknown":
            return [-1] * len(shape)
        choices = [
            lambda d: d,
            lambda d: -1,
            lambda d: ov.Dimension(max(1, d - rng.randint(0, 3)), d + rng.randint(0, 4)),
            lambda d: ov.Dimension(max(1, d - rng.randint(0, 2)), -1),
            lambda d: ov.Dimension(0, d + rng.randint(0, 3)),
        ]
        return [rng.choice(choices)(d) for d in shape]

    def build(self) -> Any:
        """Return the OpenVINO model: inputs `data` (and `output_shape` or `like`), output `y`."""
        p = self.problem
        kind = getattr(ov.Type, self.element_type)
        data = ops.parameter(ov.PartialShape(self.data_dims()), kind, name="data")
        data.output(0).set_names({"data"})
        parameters = [data]
        shape = None
        if self.shape_from != "absent":
            assert p.output_shape is not None
            shape, extra = self._output_shape(list(p.output_shape))
            parameters += extra
        filters = array(p.seed + 1, p.filter_shape)
        if self.grouped:
            filters = filters.reshape(p.groups, p.filters, *p.filter_shape[1:])
        weights = self._constant(filters, "filter")
        create = (
            ops.group_convolution_backprop_data if self.grouped else ops.convolution_backprop_data
        )
        node = create(
            data,
            weights,
            list(p.strides),
            shape,
            list(p.pads_begin),
            list(p.pads_end),
            list(p.dilations),
            auto_pad=p.auto_pad,
            output_padding=list(p.output_padding),
            name="deconvolution",
        )
        if self.bias:
            bias = self._constant(array(p.seed + 2, self._bias_shape), "bias")
            node = ops.add(node, bias, name="add")
        if self.relu:
            node = ops.relu(node, name="relu")
        node.output(0).set_names({"y"})
        return ov.Model([ops.result(node, name="result")], parameters, "block")

    def _constant(self, value: np.ndarray, name: str) -> Any:
        return ops.constant(value.astype(_NUMPY[self.element_type]), name=name)

    def _output_shape(self, extents: list[int]) -> tuple[Any, list[Any]]:
        """Return the node that feeds `output_shape`, and the parameters it adds."""
        if self.shape_from == "constant":
            return ops.constant(np.array(extents, np.int64), name="output_shape"), []
        if self.shape_from == "parameter":
            node = ops.parameter([len(extents)], np.int32, name="output_shape")
            node.output(0).set_names({"output_shape"})
            return node, [node]
        sizes = self._like_shape()
        dims = [-1 if self.dynamic == "unknown" else ov.Dimension(1, e + 3) for e in sizes]
        like = ops.parameter(ov.PartialShape(dims), np.float32, name="like")
        like.output(0).set_names({"like"})
        return self._computed(ops.shape_of(like, output_type="i64"), extents), [like]

    def _computed(self, shape: Any, extents: list[int]) -> Any:
        """Compute the output's extents from the shape of `like`, in one of several common ways."""
        rank = len(extents) + 2

        def list_of(*values: int) -> Any:
            return ops.constant(np.array(values, np.int64))

        zero = ops.constant(np.array(0, np.int64))
        match self.shape_from:
            case "sum":  # 2 * (shape + 1) - the difference
                rest = [2 * (h + 1) - e for h, e in zip(self._like_shape(), extents, strict=True)]
                doubled = ops.multiply(ops.add(shape, list_of(1)), list_of(2))
                return ops.subtract(doubled, list_of(*rest))
            case "gather":
                return ops.gather(shape, list_of(*range(2, rank)), zero)
            case "slice":
                return ops.slice(shape, list_of(2), list_of(rank), list_of(1), list_of(0))
            case "strided":
                return ops.strided_slice(shape, list_of(2), list_of(0), list_of(1), [0], [1])
            case "concat":  # all axes but the last are gathered, the last is constant
                first = ops.gather(shape, list_of(*range(2, rank - 1)), zero)
                return ops.concat([first, list_of(extents[-1])], 0)
        return shape

    def _like_shape(self) -> list[int]:
        """Shape of the `like` input, from which the output's shape is computed."""
        shape = list(self.problem.output_shape or ())
        match self.shape_from:
            case "shapeof":
                return shape
            case "sum":
                return [(e + 1) // 2 for e in shape]
        return [1, 1, *shape]

    def inputs(self) -> Mapping[str, np.ndarray]:
        """Input arrays for a run, by tensor name."""
        p = self.problem
        arrays = {"data": array(p.seed, p.data_shape, _NUMPY[self.element_type])}
        if self.shape_from == "parameter":
            arrays["output_shape"] = np.array(p.output_shape, np.int32)
        elif self.shape_from not in ("absent", "constant"):
            arrays["like"] = np.zeros(self._like_shape(), np.float32)
        return arrays

    def reference(self, folder: Path) -> np.ndarray:
        """Return the expected output: OpenVINO's, unless it has a known fault."""
        folder = folder / "peer"  # a file that a model has mapped must not be overwritten
        folder.mkdir(exist_ok=True)
        if self.fault is not None:
            meet(self.fault, "avoided")
        if self.fault == "pointwise":
            return self.by_oracle(openvino_window(self.problem, "openvino"))
        if self.fault == "group-of-one":  # the same block without groups
            return run(replace(self, grouped=False).save(folder), self.inputs())[0]
        if self.fault == "bias-beyond-kernel":  # without its bias the result is correct
            alone = replace(self, bias=False, relu=False)
            return self._finish(run(alone.save(folder), self.inputs())[0])
        return run(self.save(folder), self.inputs())[0]

    def by_oracle(self, window: Window) -> np.ndarray:
        """Return the output by the documents' formulas; constants are not compressed here."""
        p = self.problem
        filters = array(p.seed + 1, p.filter_shape).astype(_NUMPY[self.element_type])
        return self._finish(transposed(p, self.inputs()["data"], filters, window))

    def _finish(self, output: np.ndarray) -> np.ndarray:
        """Add bias and apply ReLU, if the block has them."""
        assert not self.compress
        if self.bias:
            bias = array(self.problem.seed + 2, self._bias_shape)
            output = output + bias.astype(_NUMPY[self.element_type])
        return np.maximum(output, 0) if self.relu else output

    @property
    def _bias_shape(self) -> tuple[int, ...]:
        return (1, self.problem.channels) + (1,) * self._spatial

    def save(self, folder: Path) -> Path:
        """Save the IR with OpenVINO; return the path of the .xml."""
        path = folder / "block.xml"
        ov.save_model(self.build(), path, compress_to_fp16=self.compress)
        return path


def blocks(count: int, first: int = 0, element_type: str = "f32") -> list[Block]:
    """Return `count` blocks of random problems."""
    return [_block(first + i, element_type) for i in range(count)]


def _block(seed: int, element_type: str) -> Block:
    problem = openvino_problem(seed)
    rng = random.Random(seed)
    block = Block(
        problem=problem,
        grouped=problem.groups > 1 or rng.random() < 0.1,
        bias=rng.random() < 0.7,
        relu=rng.random() < 0.7,
        compress=element_type == "f32" and rng.random() < 0.4,
        dynamic=rng.choice(("static", "unknown", "some")),
        shape_from="absent",
        element_type=element_type,
    )
    if problem.output_shape is not None:
        if block.grouped:  # the builder drops their pads; bare layers test them
            zeros = (0,) * len(problem.extents)
            block = replace(block, problem=replace(problem, pads_begin=zeros, pads_end=zeros))
        kinds = ["constant", "constant", "parameter", *COMPUTED]
        block = replace(block, shape_from=rng.choice(kinds))
    if block.fault in ("bias-beyond-kernel", "pointwise"):  # the bias is added, uncompressed
        block = replace(block, compress=False)
    return block
