"""The worked examples of operations, parsed from their one-line form.

``f32[2,3], i64[1]{0} -> f32[3] | axis=0`` names the inputs, with the elements of those whose value
matters in braces, the outputs, and the attributes in the IR's form.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from deconv_ir.ir.dtypes import Array, ElementType, parse_element_type
from deconv_ir.ir.operation import Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, parse_shape, static
from deconv_ir.ops.base import parse_attributes
from deconv_ir.ops.numeric import np

_TENSOR = re.compile(r"(\w+)\[([^\]]*)\](?:\{([^}]*)\})?")


class ExampleTensor(NamedTuple):
    """An input or output of an example; its elements, if they matter."""

    element_type: ElementType
    shape: Shape
    elements: tuple[float, ...] | None = None

    def info(self) -> TensorInfo:
        """Return the inferred info of the tensor."""
        value = reals = None
        if self.elements is not None and self.element_type.is_float:
            reals = self.elements
        elif self.elements is not None:
            value = tuple(map(int, self.elements))
        return TensorInfo(self.shape, self.element_type, value, reals)

    def array(self, seed: int = 0) -> Array:
        """Return an array: the elements, or small numbers from a seed."""
        shape, dtype = static(self.shape), self.element_type.numpy()
        if dtype.hasobject:
            words = [f"{seed} é"[: i % 4] for i in range(element_count(shape))]
            return np.array(words, dtype).reshape(shape)
        if self.elements is not None:
            return np.array(self.elements).astype(dtype).reshape(shape)
        generator = np.random.default_rng(seed)
        if self.element_type.is_float:
            return generator.uniform(0.25, 1, shape).astype(dtype)
        return generator.integers(0, 2, shape).astype(dtype)


class OperationExample(NamedTuple):
    """A worked example of an operation."""

    text: str
    inputs: tuple[ExampleTensor, ...]
    outputs: tuple[ExampleTensor, ...]
    attributes: dict[str, str]

    def operation(self, cls: type[Operation]) -> Operation:
        """Make the operation with these attributes."""
        made, errors = parse_attributes(cls, self.attributes)
        if made is None:
            raise errors[0]
        return made


def parse_example(text: str) -> OperationExample:
    """Read an example."""
    signature, _, written = text.partition("|")
    left, arrow, right = signature.partition("->")
    if not arrow:
        raise ValueError(f"an example needs an arrow: {text!r}")
    attributes = dict(item.partition("=")[::2] for item in written.split())
    return OperationExample(text, _tensors(left), _tensors(right), attributes)


def _tensors(text: str) -> tuple[ExampleTensor, ...]:
    found: list[ExampleTensor] = []
    for match in _TENSOR.finditer(text):
        name, dims, elements = match.groups()
        shape = parse_shape(dims)
        values: tuple[float, ...] | None = None
        if elements is not None:
            values = tuple(map(float, elements.split(","))) if elements else ()
            if len(values) != element_count(static(shape)):
                raise ValueError(f"{match.group()} has {len(values)} elements")
        found.append(ExampleTensor(parse_element_type(name), shape, values))
    return tuple(found)
