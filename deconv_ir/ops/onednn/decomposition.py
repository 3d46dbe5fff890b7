"""Operations of oneDNN Graph as decompositions into OpenVINO's operations.

A decomposition is built for the inputs' shapes.  Shape rule, execution and the layers of
an OpenVINO IR (`formats/onednn_json/to_openvino.py`) all follow from it.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import BF16, F16, F32, I64, ElementType
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import element_count, format_shape, is_static, static
from deconv_ir.ops import find_operation

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

Ref = int
"""A tensor of a decomposition: its inputs come first, then the first output of each step."""


class Literal(NamedTuple):
    """A constant of a decomposition."""

    values: tuple[float, ...]
    element_type: ElementType
    shape: tuple[int, ...]

    def info(self) -> TensorInfo:
        """Return the inferred info of the constant."""
        if self.element_type.is_float:
            return TensorInfo(self.shape, self.element_type, None, self.values)
        return TensorInfo(self.shape, self.element_type, tuple(map(int, self.values)))

    def array(self) -> Array:
        """Return the constant as an array."""
        import numpy as np

        return np.array(self.values).astype(self.element_type.numpy()).reshape(self.shape)


class SubOperation(NamedTuple):
    """One operation of a decomposition, or a constant."""

    operation: Operation | None
    inputs: tuple[Ref, ...] = ()
    constant: Literal | None = None


class Decomposition:
    """A sequence of operations, each with its inferred output.

    Parameters
    ----------
    inputs : sequence of TensorInfo
    context : Context
    follows_library : bool
        Whether the operation follows oneDNN's library where it differs from the specification.

    Attributes
    ----------
    infos : list of TensorInfo
        The infos of all tensors.
    steps : list of SubOperation
    """

    def __init__(self, inputs: Infos, context: Context, follows_library: bool = False) -> None:
        self.infos = list(inputs)
        self.count = len(self.infos)
        self.context = context._replace(semantics=Semantics.SPEC)
        self.follows_library = follows_library
        self.steps: list[SubOperation] = []

    def apply(self, operation: Operation, *inputs: Ref) -> Ref:
        """Add an operation."""
        infos = operation.infer([self.infos[i] for i in inputs], self.context)
        self.steps.append(SubOperation(operation, inputs))
        self.infos.append(infos[0])
        return len(self.infos) - 1

    def add(
        self, type_name: str, *inputs: Ref, version: str | None = None, **attributes: Any
    ) -> Ref:
        """Add an operation of an opset, by default of its newest version."""
        found = find_operation(type_name, version)
        assert found is not None, f"{type_name} is implemented"
        return self.apply(found(**attributes), *inputs)

    def constant(
        self,
        values: Sequence[float],
        element_type: ElementType = I64,
        shape: Sequence[int] | None = None,
    ) -> Ref:
        """Add a constant; by default a list."""
        dims = (len(values),) if shape is None else tuple(shape)
        found = Literal(tuple(values), element_type, dims)
        self.steps.append(SubOperation(None, (), found))
        self.infos.append(found.info())
        return len(self.infos) - 1

    def shape(self, ref: Ref) -> tuple[int, ...]:
        """Return a static shape.

        Raises
        ------
        ShapeError
            The shape is not static.
        """
        found = self.infos[ref].shape
        if not is_static(found):
            raise ShapeError(f"a static shape is needed, found {format_shape(found)}", rule="rank")
        return static(found)

    def rank(self, ref: Ref) -> int:
        """Return the rank of a tensor, which must be known."""
        found = self.infos[ref].shape
        if found is None:
            raise ShapeError("a tensor of known rank is needed", rule="rank")
        return len(found)

    def wide(self, ref: Ref) -> Ref:
        """Convert f16 and bf16 to f32, so that the result is rounded once."""
        return self.cast(ref, F32) if self.infos[ref].element_type in (F16, BF16) else ref

    def cast(self, ref: Ref, element_type: ElementType | None) -> Ref:
        """Convert to an element type, if it is known and differs."""
        if element_type is None or self.infos[ref].element_type is element_type:
            return ref
        return self.add("Convert", ref, destination_type=element_type)

    def transpose(self, ref: Ref, order: Sequence[int]) -> Ref:
        """Permute the axes."""
        if list(order) == list(range(len(order))):
            return ref
        return self.add("Transpose", ref, self.constant(order))

    def reshape(self, ref: Ref, shape: Sequence[int]) -> Ref:
        """Change the shape of a tensor."""
        return self.add("Reshape", ref, self.constant(shape), special_zero=False)

    def to_ncx(self, ref: Ref) -> Ref:
        """Move the channels from the end to axis 1."""
        rank = self.rank(ref)
        return self.transpose(ref, (0, rank - 1, *range(1, rank - 1)))

    def to_nxc(self, ref: Ref) -> Ref:
        """Move the channels from axis 1 to the end."""
        return self.transpose(ref, (0, *range(2, self.rank(ref)), 1))

    def run(self, arrays: Arrays) -> list[Array]:
        """Compute every tensor."""
        values = list(arrays)
        for step in self.steps:
            if step.operation is None:
                assert step.constant is not None, "a step without an operation is a constant"
                values.append(step.constant.array())
            else:
                values.append(self._compute(step, [values[i] for i in step.inputs], len(values)))
        return values

    def _compute(self, step: SubOperation, given: list[Array], ref: Ref) -> Array:
        """Compute a tensor, in blocks where its operation has them only for a given output."""
        from deconv_ir.kernels import empty

        assert step.operation is not None, "constants are not computed"
        info = self.infos[ref]
        if (
            info.element_type is None
            or not is_static(info.shape)
            or not step.operation.accepts_out([self.infos[i] for i in step.inputs], info)
        ):
            return step.operation.execute(given, self.context)[0]
        out = empty(static(info.shape), info.element_type.numpy())
        step.operation.execute_into(given, self.context, out)
        return out


class Composite(Operation, abc.ABC):
    """An operation that is a decomposition of other operations."""

    checks_values = False

    @abc.abstractmethod
    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Add the steps, and return the outputs."""

    def build(self, inputs: Infos, context: Context) -> tuple[Decomposition, Sequence[Ref]]:
        """Return the decomposition for some inputs, and its outputs."""
        steps = Decomposition(inputs, context, self.follows_runtime(context))
        return steps, self.decompose(steps)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Infer the decomposition's outputs."""
        steps, outputs = self.build(inputs, context)
        return tuple(
            TensorInfo(steps.infos[ref].shape, steps.infos[ref].element_type) for ref in outputs
        )

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        from deconv_ir.ops.values import actual

        steps, outputs = self.build(list(map(actual, inputs)), context)
        values = steps.run(inputs)
        return [values[ref] for ref in outputs]

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Build the decomposition once."""
        steps, refs = self.build(inputs, context)

        def call(arrays: Arrays, out: Array | None) -> Arrays:
            values = steps.run(arrays)
            return [values[ref] for ref in refs]

        return call

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count all tensors of the decomposition except its inputs and outputs."""
        steps, refs = self.build(inputs, context)
        total = 0
        for ref in range(steps.count, len(steps.infos)):
            if ref not in refs:
                total += _bytes(steps.infos[ref])
        most = 0
        for position, step in enumerate(steps.steps):
            if step.operation is not None:
                infos = [steps.infos[i] for i in step.inputs]
                result = steps.infos[steps.count + position]
                most = max(most, step.operation.scratch(infos, [result], context))
        return total + most

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Sum the work of the steps that report theirs."""
        steps, _ = self.build(inputs, Context())
        counts = [
            step.operation.work([steps.infos[i] for i in step.inputs], steps.infos[at])
            for at, step in enumerate(steps.steps, steps.count)
            if step.operation is not None
        ]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None


def _bytes(info: TensorInfo) -> int:
    if info.element_type is None or not is_static(info.shape):
        return 0
    return element_count(static(info.shape)) * info.element_type.numpy().itemsize


KINDS: dict[str, type[Operation]] = {}
"""Kind -> class, of the modules imported so far."""

_Class = TypeVar("_Class", bound=type[Operation])


def kind(
    name: str, inputs: tuple[str, ...], required: int | None = None
) -> Callable[[_Class], _Class]:
    """Register a class for a kind of oneDNN Graph; see `formats/onednn_json/kinds.py`."""

    def register(cls: _Class) -> _Class:
        cls.type = name
        cls.runtime = Semantics.ONEDNN
        cls.inputs = inputs
        cls.required_inputs = len(inputs) if required is None else required
        KINDS[name] = cls
        return cls

    return register
