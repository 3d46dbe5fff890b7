"""Values that operations return: compiled expressions, and differences between the semantics."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.options import Semantics

_RUNTIMES = {Semantics.OPENVINO: "the OpenVINO runtime", Semantics.ONEDNN: "the oneDNN library"}


class SemanticsDifference(NamedTuple):
    """A layer that its runtime computes differently from the specification.

    Attributes
    ----------
    by_spec, by_runtime : str
        The predicates of the message: ``gives pads_begin 1`` and ``pads_begin 0``.
    spec, runtime : tuple of int, Interval or str
        The values by the specification and by the runtime.
    is_fault : bool
        Whether the runtime contradicts what the specification says; otherwise that
        leaves the case open, or other documents state it differently.

    Examples
    --------
    >>> from deconv_ir.operations import ConvolutionBackpropData, Context, SemanticsDifference
    >>> from deconv_ir.operations import TensorInfo
    >>> up = ConvolutionBackpropData(
    ...     strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,)
    ... )
    >>> requested = TensorInfo((1,), value=(9,))  # output_shape; total padding 2*4 + 3 - 9 = 2
    >>> inputs = [TensorInfo((1, 4, 5)), TensorInfo((4, 3, 3)), requested]
    >>> found = up.compare_semantics(inputs, Context())
    >>> isinstance(found, SemanticsDifference), found.spec, found.runtime  # pads_begin
    (True, (1,), (0,))
    """

    by_spec: str
    by_runtime: str
    spec: tuple[Dim | str, ...]
    runtime: tuple[Dim | str, ...]
    is_fault: bool = False

    def message(self, runtime: Semantics, used: Semantics) -> str:
        """Describe the difference to a runtime, and the semantics in use, in one sentence."""
        follows = used if used is runtime else Semantics.SPEC
        return (
            f"the specification {self.by_spec}, {_RUNTIMES[runtime]} {self.by_runtime}; "
            f"this run uses {follows.value}"
        )


class Expression(Protocol):
    """A tree of elementwise operations in f32, as `deconv_ir.kernels.pointwise` compiles it.

    Its values are numbered; None stands for a value that cannot be computed.

    Examples
    --------
    >>> from deconv_ir.operations import Expression, find_operation
    >>> class Recorder:  # it has the methods of Expression
    ...     def constant(self, number): ...
    ...     def append_axes(self, value, count): ...
    ...     def apply(self, name, *operands, immediates=()):
    ...         return f"{name}{operands}"
    >>> expression: Expression = Recorder()
    >>> find_operation("HSwish")().compile(expression, [0], [])
    'hswish(0,)'
    """

    def constant(self, number: float) -> int:
        """Return a constant value."""
        ...

    def apply(
        self, name: str, *operands: int | None, immediates: Sequence[float] = ()
    ) -> int | None:
        """Return the result of a compiled operation on values; None if it is not compiled."""
        ...

    def append_axes(self, value: int, count: int) -> int | None:
        """Return an input with axes of extent 1 appended to its shape; None for other values."""
        ...
