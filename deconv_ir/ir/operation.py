"""The interface of operations, and the inferred description of tensors."""

import abc
import enum
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from deconv_ir.errors import UnsupportedError
from deconv_ir.findings import Finding
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.ir.record import Record
from deconv_ir.ir.shapes import Shape, element_count, format_shape, is_static, static

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Boxes, LayerTile, Statistic
    from deconv_ir.ir.expression import Expression, SemanticsDifference
    from deconv_ir.ir.lazy_tensor import Constant, LazyTensor
    from deconv_ir.ir.quantization import LayerQuantization
    from deconv_ir.ir.scratchpad import AlgorithmChoice, ScratchpadBudget


Call = Callable[[Sequence[Any], Any], Sequence[Any]]
"""A layer whose shapes are fixed: input arrays and `out` in, output arrays out."""
Direct = Callable[[Any, Any], bool]
"""Computes a layer from its data into its output; returns False where `LayerPlan.run` has to."""


class LayerPlan:
    """A layer for inputs of certain shapes: prepared, then planned, then bound to arrays.

    Attributes
    ----------
    spatial : int
        The first spatial axis of the output.

    Examples
    --------
    >>> from deconv_ir.operations import LayerPlan
    >>> LayerPlan(lambda inputs, out: (inputs[0] + 1,)).run([1], None)
    (2,)
    """

    spatial: int = 2

    def __init__(self, call: Call, choice: "AlgorithmChoice | None" = None) -> None:
        self._choice = choice
        self._call = call

    @property
    def choice(self) -> "AlgorithmChoice | None":
        """The algorithms; None: there is one, and `Operation.scratch` returns its scratchpad."""
        return self._choice

    def run(self, inputs: Sequence[Any], out: Any) -> Sequence[Any]:
        """Compute the outputs, the first into `out` if it is given."""
        return self._call(inputs, out)

    def bind(self, inputs: Sequence[Any], out: Any) -> Callable[[], object] | None:
        """Return a call that computes `out` from arrays at fixed addresses; None: `run` does."""
        return None

    def direct(self) -> Direct | None:
        """Return a function for data of the planned shape and type; None: `run` does.

        The data may be elsewhere in each run, and are all that is not constant.  The output is
        contiguous, and apart from the data.
        """
        return None


class Kernel(abc.ABC):
    """A prepared layer: input arrays in, output arrays out.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Context, ConvolutionBackpropData, Kernel
    >>> up = ConvolutionBackpropData(
    ...     strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,)
    ... )
    >>> kernel = up.prepare([None, np.array([[[1.0, 10.0]]])], Context())  # packs the filter
    >>> isinstance(kernel, Kernel)
    True
    >>> kernel([np.array([[[1.0, 2.0]]]), None])
    (array([[[ 1., 10.,  2., 20.]]]),)
    """

    @property
    def packed_bytes(self) -> int | None:
        """Bytes of all packed forms of its constants; None: the size of the constants."""
        return None

    @property
    def precision(self) -> str | None:
        """The types in which it computes, ``f32 (u4 weights)``; None: that of its output."""
        return None

    @property
    def why_f32(self) -> str | None:
        """Why it computes in f32, where another precision was allowed; None: it was not."""
        return None

    @abc.abstractmethod
    def __call__(
        self,
        inputs: Sequence[Any],
        out: Array | None = None,
        budget: "ScratchpadBudget | None" = None,
    ) -> Sequence[Any]:
        """Compute the outputs, the first into `out` if the operation `accepts_out`."""

    def plan(self, inputs: "Infos", budget: "ScratchpadBudget") -> LayerPlan:
        """Plan runs with these shapes; see `Operation.bind`.  Cheap: no weights are packed."""
        return LayerPlan(functools.partial(self, budget=budget))

    def tiled(self, operation: "Operation") -> "Kernel":
        """Return a kernel with the same weights for the operation of a tile of the layer."""
        return self

    def release(self) -> None:  # noqa: B027 - most kernels have no memory to free
        """Free memory whose contents the next call can compute again."""


class Sharing(enum.Enum):
    """Whether an output may be a view of the first input.

    NONE: the output has memory of its own.  WHOLE: it may be a view of all elements in their
    order.  AXES: it always is such a view, with axes of extent 1 added or removed.  PART: it may be
    a view of some elements, of repeated elements, or in another order.

    Examples
    --------
    >>> from deconv_ir.operations import Sharing, find_operation
    >>> find_operation("Reshape").sharing is Sharing.WHOLE
    True
    >>> find_operation("Transpose").sharing is Sharing.PART
    True
    """

    NONE = "none"
    WHOLE = "whole"
    AXES = "axes"
    PART = "part"


class ConstantSource(Protocol):
    r"""The source of the bytes of constants: a weights file, or an object like this.

    Examples
    --------
    >>> from deconv_ir.operations import ConstantSource, Context
    >>> class Zeros:  # it has the method of ConstantSource
    ...     def read(self, offset, size):
    ...         return memoryview(bytes(size))
    >>> weights: ConstantSource = Zeros()
    >>> bytes(Context(weights=weights).weights.read(8, 2))
    b'\x00\x00'
    """

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset` on, without a copy where possible.

        Raises
        ------
        WeightsError
            The source has fewer bytes.
        """
        ...


class Context(NamedTuple):
    """Settings and constants that an operation may need in addition to its inputs.

    Attributes
    ----------
    semantics : Semantics
        The rule that decides where documents and runtime differ.
    weights : ConstantSource or None
        Bytes of the constants.
    scratch_bytes : int
        Bound on a kernel's temporary memory, in bytes.
    accuracy : Accuracy
        The algorithms from which convolutions may choose.
    run_body : callable or None
        Runs one of the `bodies` of an operation: maps arrays of its Parameters, by index, to those
        of its `results`.
    body_findings : list of Finding or None
        Collects the findings of the `bodies` of an operation.
    packer : object or None
        Packs filters while other work goes on.

    Examples
    --------
    >>> from deconv_ir import Semantics
    >>> from deconv_ir.operations import Context
    >>> Context(Semantics.OPENVINO).semantics
    <Semantics.OPENVINO: 'openvino'>
    """

    semantics: Semantics = Semantics.SPEC
    weights: ConstantSource | None = None
    scratch_bytes: int = 64 << 20
    accuracy: Accuracy = Accuracy.FAST
    run_body: "Callable[[Any, Mapping[int, Array]], Arrays] | None" = None
    body_findings: list[Finding] | None = None
    packer: Any = None


class TensorInfo(NamedTuple):
    """The inferred description of a tensor.

    Attributes
    ----------
    shape : tuple of int or Interval, or None
        None: a dynamic rank.
    element_type : ElementType or None
        None: not determined.
    value : tuple of int or Interval, or None
        The elements, flattened, of a small integer tensor as far as they are known, such as a shape
        that the graph computes.  An element that is not known may be negative.
    reals : tuple of float, or None
        The elements, flattened, of a small floating-point tensor whose elements are all known, such
        as scales.

    Examples
    --------
    >>> from deconv_ir import Interval
    >>> from deconv_ir.operations import TensorInfo
    >>> print(TensorInfo((1, Interval(2, 4))))
    ?[1,2..4]
    """

    shape: Shape
    element_type: ElementType | None = None
    value: tuple[Dim, ...] | None = None
    reals: tuple[float, ...] | None = None

    @property
    def is_known(self) -> bool:
        """Whether `value` has all elements of an integer tensor, as it has for shapes."""
        if self.value is None or self.element_type is None or not is_static(self.shape):
            return False
        return self.element_type.kind in ("int", "uint") and is_static(self.value)

    def __str__(self) -> str:
        return f"{self.element_type or '?'}{format_shape(self.shape)}"


Infos = Sequence[TensorInfo]
Arrays = Sequence[Array]
Operands = Sequence[int]
"""Values of an `Expression`."""
ElementOf = Callable[[float], int | None]
"""Returns the element that holds a number four times, as u32; None: no element does."""


class Epilogue(NamedTuple):
    """The operations that follow a layer and may be fused with it.

    Attributes
    ----------
    addend : ndarray or None
        A constant that is added, broadcast by NumPy's rule.
    activation : Operation or None
        Applied to every element after that.
    parameters : sequence of ndarray
        The constants that `activation` takes after its first input.
    adds : bool
        Whether the kernel takes one more input, which is added before `activation`: of the
        output's type, broadcast by NumPy's rule.
    scale, offset : ndarray or None
        A number by which every element is multiplied after `activation`, and one that is added.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Context, ConvolutionBackpropData, Epilogue
    >>> up = ConvolutionBackpropData(
    ...     strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,)
    ... )
    >>> bias = Epilogue(np.array([[[0.5]]]))
    >>> kernel = up.prepare_fused([None, np.array([[[1.0, 10.0]]])], bias, Context())
    >>> kernel([np.array([[[1.0, 2.0]]]), None])
    (array([[[ 1.5, 10.5,  2.5, 20.5]]]),)
    """

    addend: Array | None
    activation: "Operation | None" = None
    parameters: Arrays = ()
    adds: bool = False
    scale: Array | None = None
    offset: Array | None = None


class Operation(Record):
    """The operation of a layer: its typed attributes, shape rule and execution.

    The fields of a subclass are the attributes, with the documents' names.
    `infer` and `execute` are enough; the other methods save memory or time.

    Examples
    --------
    >>> from deconv_ir.operations import Context, Operation, TensorInfo, attribute, integer
    >>> class Repeat(Operation):
    ...     times: int = attribute(integer(1), 1)
    ...     def infer(self, inputs, context):
    ...         (length,) = inputs[0].shape
    ...         return (TensorInfo((self.times * length,), inputs[0].element_type),)
    >>> Repeat(times=3)
    Repeat(times=3)
    >>> Repeat(times=3).infer([TensorInfo((5,))], Context())[0].shape
    (15,)
    """

    type: ClassVar[str] = ""
    versions: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ()
    """Names of the inputs, in order; those after the first `required_inputs` are optional."""
    required_inputs: ClassVar[int | None] = None
    """None: any number."""
    implemented: ClassVar[bool] = True
    sharing: ClassVar[Sharing] = Sharing.NONE
    checks_values: ClassVar[bool] = True
    """Whether the values of its inputs may be invalid, as those of axes and sizes."""
    takes_lazy: ClassVar[tuple[int, ...]] = ()
    """Inputs that `prepare` and `prepare_fused` also take as `LazyTensor`."""
    keeps_codes: ClassVar[bool] = False
    """Whether its kernels keep these as they are stored, if that takes fewer bytes."""
    may_keep_codes: ClassVar[bool] = False
    """Whether they can, if memory is short: unpacked ones are faster."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Worked examples, such as ``f32[2,3], i64[1]{0} -> f32[3] | axis=0``: the inputs
    (with their elements where these matter), the outputs and the attributes.
    """
    body_names: ClassVar[tuple[str, ...]] = ()
    """Elements of the graphs that the layer runs, such as ``then_body``; fields hold them."""
    scratch_ratios: ClassVar[tuple[float, float]] = (0, 0)
    """Multiples of the bytes of inputs and outputs, of at least 4 an element, that `execute` needs
    for temporary arrays: for types that are computed as they are, and for narrower floats.
    """
    inference_rounds: ClassVar[int] = 1
    """Maximum number of times that `infer_parameters` and `infer` infer the `bodies`."""
    runtime: ClassVar[Semantics] = Semantics.OPENVINO
    """The semantics of the runtime that executes the operation elsewhere."""
    formula: ClassVar[str] = ""
    """The template of `explain`, such as ``data {shape[data]}, k {element[k]}, axis {self.axis}``:
    the shape of an input, its elements (`value`) or its first one, an attribute; ``{lists}``: the
    elements of all inputs but the first.
    """

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Infer the outputs.

        Parameters
        ----------
        inputs : sequence of TensorInfo
            One for each input that is connected.
        context : Context
            Semantics and constants.

        Returns
        -------
        tuple of TensorInfo
            One for each output.

        Raises
        ------
        ShapeError
            The inputs do not fit the operation, or each other.
        UnsupportedError
            There is no shape rule: the type of the layer is unknown.
        """
        raise UnsupportedError(f"{type(self).__name__} has no shape rule")

    @property
    def is_repeatable(self) -> bool:
        """Whether equal inputs give equal outputs, in every run."""
        return True

    @property
    def moves(self) -> tuple[int, ...]:
        """Inputs whose elements the outputs consist of, unchanged and without any others."""
        return ()

    @property
    def is_sum(self) -> bool:
        """Whether the operation adds two tensors, broadcast by NumPy's rule."""
        return False

    @property
    def is_product(self) -> bool:
        """Whether the operation multiplies two tensors elementwise, broadcast by NumPy's rule."""
        return False

    @property
    def read_variable(self) -> str | None:
        """Name of the variable whose value the output is."""
        return None

    @property
    def assigned_variable(self) -> str | None:
        """Name of the variable to which the input is assigned."""
        return None

    @property
    def variable_info(self) -> TensorInfo:
        """The declared shape and element type of the `read_variable`."""
        return TensorInfo(None)

    @property
    def bodies(self) -> tuple[Any, ...]:
        """The `Body` of each graph that the layer runs, as If and Loop have them."""
        return tuple(getattr(self, name) for name in self.body_names)

    def infer_parameters(
        self, inputs: Infos, context: Context
    ) -> tuple[dict[int, TensorInfo], ...]:
        """Infer the Parameters of each of the `bodies`, by index, for all iterations."""
        return ()

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        """Return the formula of a dim of an output, with its numbers; None if it has no formula.

        `output` and `axis` are the indices of the output and of its dim.
        """
        if not self.formula:
            return None
        named = dict(zip(self.inputs, inputs, strict=False))
        value = {n: "?" if i.value is None else format_shape(i.value) for n, i in named.items()}
        return self.formula.format(
            self=self,
            output=output,
            shape={name: format_shape(info.shape) for name, info in named.items()},
            value=value,
            lists=", ".join(f"{n} {v}" for n, v in value.items() if n != self.inputs[0]),
            element={name: info.value[0] if info.value else "?" for name, info in named.items()},
        )

    def compare_semantics(self, inputs: Infos, context: Context) -> "SemanticsDifference | None":
        """Compare the specification with the `runtime` for these inputs; None: they agree."""
        return None

    def follows_runtime(self, context: Context) -> bool:
        """Whether results are those of the `runtime` where it differs from the specification."""
        return context.semantics is self.runtime

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Compute an array for each output, from arrays that `infer` accepts.

        Later layers may write to the memory of the inputs: keep copies only.

        Raises
        ------
        UnsupportedError
            The layer cannot be computed: it is a Parameter, or its type is unknown.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot be executed")

    def as_lazy_tensor(
        self, inputs: "Sequence[LazyTensor]", context: Context
    ) -> "LazyTensor | None":
        """Return the result of `execute` as a lazy tensor; None if that is not possible."""
        return None

    @property
    def packing_copies(self) -> int:
        """Copies of a lazy tensor that `prepare` needs beside the packed one."""
        return 0

    def prepare(self, constants: "Sequence[Constant | None]", context: Context) -> Kernel | None:
        """Prepare a kernel from constant inputs (None for the others), once for all runs.

        The kernel takes the inputs of `execute`, with None allowed for constant ones.  Returns None
        if nothing can be prepared.
        """
        return None

    # The methods below let an executor save memory and time; their defaults are always valid.

    @property
    def can_be_fused(self) -> bool:
        """Whether `prepare_fused` may return a kernel."""
        return type(self).prepare_fused is not Operation.prepare_fused

    @property
    def computes_in_place(self) -> bool:
        """Whether `execute_into` computes directly in the array, without a temporary array."""
        return type(self).execute_into is not Operation.execute_into

    def prepare_fused(
        self, constants: "Sequence[Constant | None]", epilogue: Epilogue, context: Context
    ) -> Kernel | None:
        """Prepare the layer with the ones that follow; the result is rounded once, at the end.

        Returns None if the layers cannot be fused.
        """
        return None

    @property
    def can_be_quantized(self) -> bool:
        """Whether `prepare_quantized` may return a kernel."""
        return type(self).prepare_quantized is not Operation.prepare_quantized

    def code_bytes(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return the bytes of a filter of 8-bit codes, and those that packing it needs as well."""
        return math.prod(shape), 0

    def prepare_quantized(
        self,
        constants: "Sequence[Constant | None]",
        quantization: "LayerQuantization",
        epilogue: Epilogue,
        context: Context,
    ) -> Kernel | str | None:
        """Prepare the layer as in `prepare_fused`, to compute it in integers.

        The kernel quantises its data.  If that is not possible, returns the reason, or None if the
        layers cannot be fused.
        """
        return None

    def on_fours(self, inputs: Infos, outputs: Infos, element: "ElementOf") -> "Operation | None":
        """Return the operation for elements that hold four channels (axis 1) each.

        It moves them, and takes the same inputs.  Returns None if elements are more than moved, or
        their channels would be parted.

        Parameters
        ----------
        inputs, outputs : sequence of TensorInfo
            Tensors of single channels.  Known shapes and values are the same in every run.
        element : ElementOf
            For numbers that the operation adds.
        """
        return None

    def prepare_first(self, context: Context) -> Kernel | None:
        """Prepare a kernel that computes the first output only; None if that saves nothing."""
        return None

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Whether the prepared kernel, or else `execute_into`, can write to an array."""
        return False

    @property
    def in_order(self) -> bool:
        """Whether its results are in C order; plans count copies of others that runs return."""
        return True

    def overwritable(self, inputs: Infos, output: TensorInfo) -> tuple[int, ...]:
        """Return the inputs whose arrays `execute_into` may overwrite, the best first."""
        return ()

    def distances(self, inputs: Infos, output: TensorInfo) -> tuple[int, ...]:
        """Return where the inputs lie in the output, in bytes; empty: they are not its parts."""
        return ()

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        """Compute the output into `out`, an array of its shape and element type.

        The inputs may already lie at their `distances` in `out`.
        """
        out[...] = self.execute(inputs, context)[0]

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Prepare a call for fixed shapes; a `value` is the value in every run.

        An override handles small tensors, where call overhead dominates, and leaves other tensors
        to this method.  The call takes the inputs, and an array for the output or None; it is made
        with NumPy's warnings off, from several threads at once.
        """
        return self.bind_any(context)

    def plan(self, inputs: Infos, outputs: Infos, context: Context) -> LayerPlan:
        """Plan runs with fixed shapes; an override gives `LayerPlan.bind`."""
        return LayerPlan(self.bind(inputs, outputs, context))

    def bind_any(self, context: Context) -> Call:
        """Return a call as `bind` does, for inputs of any shapes."""

        def call(arrays: Arrays, out: Array | None) -> Arrays:
            if out is None:
                return self.execute(arrays, context)
            self.execute_into(arrays, context, out)
            return (out,)

        return call

    def compile(self, expression: "Expression", operands: Operands, inputs: Infos) -> int | None:
        """Add an elementwise operation to an expression.

        Parameters
        ----------
        expression : Expression
        operands : sequence of int
            The values of the expression that are the inputs.
        inputs : sequence of TensorInfo
            The inferred inputs.

        Returns
        -------
        int or None
            The value of the output; None if the operation is not compiled.
        """
        return None

    def allowance(self, case: Any) -> Sequence[Any] | None:
        """Bound the deviation of each output from the exact result; None: no bound is known.

        `case` is a `deconv_ir.ops.allowance.Case`: the inputs, the exact outputs, the precision.  A
        verdict needs this method.
        """
        return None

    def valid(self, case: Any, output: int, array: Array) -> Array | None:
        """Return which elements of an output are valid, as where ties are broken; None: no ties."""
        return None

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Estimate the bytes of temporary arrays; `context.scratch_bytes` should be kept.

        All shapes are static, except None for a constant that the layer was prepared with.
        """
        usual, narrow = self.scratch_ratios
        if not (usual or narrow):
            return 0
        sizes, is_narrow = 0, False
        for info in (*inputs, *outputs):
            if info.element_type is not None and is_static(info.shape):
                width = int(info.element_type.numpy().itemsize)
                is_narrow |= info.element_type.is_float and width < 4
                sizes += max(4, width) * element_count(static(info.shape))
        return int((narrow if is_narrow else usual) * sizes)

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count the arithmetic operations, a multiply-add as two; None: not counted."""
        return None

    def computes_in(self, inputs: Infos) -> str | None:
        """Return the types in which it computes, ``i8``, if they are not that of its output."""
        return None

    def tile(self, boxes: "Boxes", inputs: Infos, outputs: Infos, context: Context) -> "LayerTile":
        """Return how boxes of the outputs are computed, from integers alone.

        An operation that does not override this method depends on the whole of every axis.

        Parameters
        ----------
        boxes : sequence of Box or None
            The box of each output that is computed; None: not needed.
        inputs, outputs : sequence of TensorInfo
            The whole tensors; all shapes are static.
        """
        from deconv_ir.ir.boxes import LayerTile, partial_axes, whole_box

        blocked: set[int] = set()
        for box, info in zip(boxes, outputs, strict=True):
            if box is not None and partial_axes(box, static(info.shape)):
                blocked.update(axis for axis, extent in enumerate(static(info.shape)) if extent > 1)
        return LayerTile(
            tuple(whole_box(static(info.shape)) for info in inputs), self, tuple(sorted(blocked))
        )

    def statistic(self, inputs: Infos, outputs: Infos) -> "Statistic | None":
        """Return a statistic over whole axes, accumulated tile by tile; None: not supported."""
        return None
