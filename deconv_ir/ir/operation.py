"""What a layer does: the interface of operations, and what is known of tensors."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.ir.record import Record
from deconv_ir.ir.shapes import Shape, format_shape

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.lazy_tensor import Constant, LazyTensor
    from deconv_ir.ir.scratchpad import ScratchpadBudget


Call = Callable[[Sequence[Any], Any], Sequence[Any]]
"""A layer whose shapes are fixed: input arrays and `out` in, output arrays out."""


class Kernel:
    """A prepared layer: input arrays in, output arrays out."""

    def __call__(
        self,
        inputs: Sequence[Any],
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
    ) -> Sequence[Any]:
        """Compute the outputs.

        Parameters
        ----------
        inputs : sequence of ndarray
        out : ndarray, optional
            Where the first output may go; only where the operation `accepts_out`.
        budget : ScratchpadBudget, optional
            What it may take for itself.
        """
        raise NotImplementedError

    def bind(self, inputs: Sequence[TensorInfo], budget: ScratchpadBudget) -> Call:
        """Do once what depends on shapes alone; see `Operation.bind`."""
        return functools.partial(self, budget=budget)


class Sharing(enum.Enum):
    """Whether an output may be a view of the first input.

    NONE: it is an array of its own.  WHOLE: it may show all elements in their
    order.  PART: it may show some of them, some more than once, or in another
    order.
    """

    NONE = "none"
    WHOLE = "whole"
    PART = "part"


class ConstantSource(Protocol):
    """Where the bytes of constants come from: a weights file."""

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset` on, without a copy where possible."""
        ...


class Context(NamedTuple):
    """What an operation may need beside its inputs.

    Attributes
    ----------
    semantics : Semantics
        Whose rule decides where documents and runtime differ.
    weights : ConstantSource or None
        Bytes of the constants.
    scratch_bytes : int
        Bound on a kernel's temporary memory.
    accuracy : Accuracy
        Which algorithms convolutions may choose from.
    """

    semantics: Semantics = Semantics.SPEC
    weights: ConstantSource | None = None
    scratch_bytes: int = 64 << 20
    accuracy: Accuracy = Accuracy.FAST


class TensorInfo(NamedTuple):
    """What is known of a tensor without computing it.

    Attributes
    ----------
    shape : Shape
    element_type : ElementType or None
        None: not determined.
    value : tuple of Dim, or None
        The elements, flattened, of a small integer tensor as far as they are
        known: shapes that are computed inside the graph travel here.  An
        element that is not known may be negative (see `ops.values`).
    reals : tuple of float, or None
        The elements, flattened, of a small floating-point tensor, where all
        are known: scales travel here.
    """

    shape: Shape
    element_type: ElementType | None = None
    value: tuple[Dim, ...] | None = None
    reals: tuple[float, ...] | None = None

    def __str__(self) -> str:
        return f"{self.element_type or '?'}{format_shape(self.shape)}"


class Epilogue(NamedTuple):
    """What follows a layer and may be computed with it.

    Attributes
    ----------
    addend : ndarray or None
        A constant that is added, broadcast by NumPy's rule.
    activation : Operation or None
        What is then applied to every element.
    parameters : sequence of ndarray
        The constants that `activation` takes beside its first input.
    """

    addend: Array | None
    activation: Operation | None = None
    parameters: Sequence[Array] = ()


class SemanticsDifference(NamedTuple):
    """Where the two semantics compute a layer differently.

    Attributes
    ----------
    message : str
        The difference and the semantics in use, in one sentence.
    spec, openvino : tuple of int or Interval
        The values that the specification and the OpenVINO runtime find.
    """

    message: str
    spec: tuple[Dim, ...]
    openvino: tuple[Dim, ...]


class Operation(Record):
    """What a layer does: its typed attributes, shape rule and execution.

    The fields of a subclass are the attributes, with the documents' names.
    """

    type: ClassVar[str] = ""
    versions: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ()
    """Names of the inputs, in order; those from `required_inputs` on may be absent."""
    required_inputs: ClassVar[int | None] = None
    """None: any number."""
    implemented: ClassVar[bool] = True
    sharing: ClassVar[Sharing] = Sharing.NONE
    takes_lazy: ClassVar[tuple[int, ...]] = ()
    """Inputs of which `prepare` and `prepare_fused` take `LazyTensor` as well as arrays."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Worked examples: ``f32[2,3], i64[1]{0} -> f32[3] | axis=0``, that is the inputs,
    with the elements of those whose value matters, the outputs and the attributes.
    """

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Compute what is known of the outputs.

        Raises
        ------
        ShapeError
            The inputs do not fit the operation, or each other.
        """
        raise NotImplementedError

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Tell by which formula a dim of an output is found, with the numbers put in."""
        return None

    def compare_semantics(
        self, inputs: Sequence[TensorInfo], context: Context
    ) -> SemanticsDifference | None:
        """Compare what the two semantics compute for these inputs; None: the same."""
        return None

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Compute the outputs."""
        raise NotImplementedError

    def as_lazy_tensor(self, inputs: Sequence[LazyTensor], context: Context) -> LazyTensor | None:
        """Return what `execute` returns as one that is read in parts; None where it can not be."""
        return None

    def prepare(self, constants: Sequence[Constant | None], context: Context) -> Kernel | None:
        """Do once what depends on constant inputs alone; None where there is nothing to do.

        Parameters
        ----------
        constants : sequence of array or None
            The inputs that are constant; None for the others.

        Returns
        -------
        callable or None
            Takes what `execute` takes; the entries of constant inputs may be
            None from now on.
        """
        return None

    # What an executor may ask in order to save memory and time; all of it has
    # an answer that is always right.

    def prepare_fused(
        self, constants: Sequence[Constant | None], epilogue: Epilogue, context: Context
    ) -> Kernel | None:
        """Prepare the layer with what follows it; the result is rounded once, at the end.

        Parameters
        ----------
        constants : sequence of array or None
            As of `prepare`.

        Returns
        -------
        callable or None
            None where they can not be one.
        """
        return None

    def prepare_first(self, context: Context) -> Kernel | None:
        """Prepare a layer of which nothing needs an output but the first.

        Returns
        -------
        callable or None
            As of `prepare`; its result has one element.  None where that saves nothing.
        """
        return None

    def accepts_out(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> bool:
        """Tell whether the prepared kernel, or else `execute_into`, can write to an array."""
        return False

    def overwritable(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> tuple[int, ...]:
        """Return the inputs whose own array `execute_into` may write to, the best first."""
        return ()

    def execute_into(self, inputs: Sequence[Array], context: Context, out: Array) -> None:
        """Compute the output into an array of its shape and type."""
        raise NotImplementedError

    def bind(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> Call:
        """Do once what depends on shapes alone, for runs with inputs of just these.

        What overrides it is for small tensors, on which calls take longer than
        the work; it leaves the others to this.

        Parameters
        ----------
        inputs, outputs : sequence of TensorInfo
            All shapes are static, and all element types known; a `value` is
            what the runs will find there.
        context : Context

        Returns
        -------
        callable
            Takes the inputs, and an array for the output or None; called
            without NumPy's warnings, from several threads at once.
        """

        def call(arrays: Sequence[Array], out: Array | None) -> Sequence[Array]:
            if out is None:
                return self.execute(arrays, context)
            self.execute_into(arrays, context, out)
            return (out,)

        return call

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Return about the bytes of the arrays that come and go while it is computed.

        Parameters
        ----------
        inputs, outputs : sequence of TensorInfo
            All shapes are static, but that of a constant that the layer has
            been prepared with: None.
        context : Context
            `scratch_bytes` is what they had better not exceed.
        """
        return 0

    def work(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> int | None:
        """Count the arithmetic operations, a multiply-add as two; None: not told."""
        return None
