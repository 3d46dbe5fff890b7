"""The base of elementwise operations, and the one-line registration of a new one.

`register` makes an operation of a NumPy ufunc, given by its name, or of a function on
arrays; the tables are in `arithmetic.py` and `unary.py`.  The function takes arrays of f32, f64,
integers or booleans: `numeric.py` widens and rounds other types.  An input after its last use is
overwritten.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.ir.dtypes import BOOLEAN, Array
from deconv_ir.ir.lazy_tensor import Codes, LazyTensor
from deconv_ir.ir.operation import (
    Arrays,
    Call,
    Context,
    Infos,
    Operands,
    Operation,
    TensorInfo,
)
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.base import declare
from deconv_ir.ops.checks import check_type, merged_type
from deconv_ir.ops.elementwise.blocks import cut, element_bytes, in_blocks, is_small
from deconv_ir.ops.elementwise.broadcasting import WithBroadcast
from deconv_ir.ops.numeric import keeps_type, narrow, np, widen, working_dtype
from deconv_ir.ops.values import OnValues, combine, on_reals

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Boxes, LayerTile
    from deconv_ir.ir.expression import Expression
    from deconv_ir.ops.allowance import Bounds, Case

Function = Callable[..., Any]

# Elements for one of an array that is read whole, while others are read in parts.
_LEAST_RATIO = 8


def ufunc(name: str) -> Function:
    """Return a function on arrays, given the name of a NumPy ufunc."""
    return lambda *arrays: getattr(np, name)(*arrays)


def ufunc_into(name: str) -> Function:
    """Return a function on arrays that writes to the last one."""
    return lambda *arrays: getattr(np, name)(*arrays[:-1], out=arrays[-1])


class Elementwise(Operation):
    """Each element of the output depends on one element of each input, broadcast.

    Large arrays are computed in blocks, on several threads, each widened and
    rounded by itself; so an input can be overwritten, after its last use, in any element type.
    """

    checks_values = False

    __slots__ = ()

    compute: ClassVar[Function]
    ufunc_name: ClassVar[str] = ""
    """Name of the NumPy ufunc behind `compute` and `into`, if any."""
    compiled: ClassVar[str] = ""
    """Name of the compiled operation; default: that of the ufunc."""
    boolean_result: ClassVar[bool] = False
    into: ClassVar[Function | None] = None
    """Like `compute`, with an array to write to, which may be one of the inputs."""
    selects: ClassVar[bool] = False
    """Whether the result is an element of an input, or one of a few numbers: nothing is rounded."""
    arithmetic: ClassVar[bool] = False
    """Whether IEEE arithmetic defines the result."""
    absolute: ClassVar[float] = 0.0
    """Allowed error, in eps of the larger of 1 and the argument, where approximations have one."""
    temporaries: ClassVar[int] = 6
    """Maximum number of temporary arrays of `compute`."""
    into_temporaries: ClassVar[int] = 0
    """Number of temporary arrays of `into`."""

    @property
    def realigns(self) -> bool:
        """Whether `aligned` may change the inputs."""
        return type(self).aligned is not Elementwise.aligned

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        return expression.apply(self.compiled or self.ufunc_name, *operands)

    def apply(self, *arrays: Array) -> Array:
        result: Array = type(self).compute(*arrays)
        return result

    def aligned(self, inputs: Arrays) -> Arrays:
        """Reshape the inputs so that NumPy broadcasts them as the operation does."""
        return inputs

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write to an array of the inputs' type: a float, or a type in which a ufunc computes."""
        element_type = output.element_type
        if element_type is None or any(i.element_type is not element_type for i in inputs):
            return False
        return element_type.is_float or (type(self).into is not None and keeps_type(element_type))

    def overwritable(self, inputs: Infos, output: TensorInfo) -> tuple[int, ...]:
        return tuple(i for i, info in enumerate(inputs) if info.shape == output.shape)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        into = type(self).into
        direct = into is not None and working_dtype(out.dtype) == out.dtype

        def write(*arrays: Array) -> None:
            *parts, target = arrays
            if direct:
                assert into is not None, "`direct` says so"
                into(*arrays)
            else:
                np.copyto(target, narrow(self.apply(*map(widen, parts)), target.dtype))

        made = self._element_bytes(direct=direct, width=out.itemsize)
        in_blocks(write, self.aligned(inputs), out, cut(out.size, made, context.scratch_bytes))

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        (output,) = outputs
        kept = all(i.element_type and keeps_type(i.element_type) for i in inputs)
        written = self.accepts_out(inputs, output)
        small = is_small(element_count(static(output.shape)))
        if not small or not kept or not (written or self.boolean_result):
            return super().bind(inputs, outputs, context)
        assert output.element_type is not None, "a layer is bound where it is known"
        dtype = output.element_type.numpy()
        into, realigns = type(self).into, self.realigns
        name = type(self).ufunc_name
        function = getattr(np, name) if name else None

        def call(arrays: Arrays, out: Array | None) -> Arrays:
            if realigns:
                arrays = self.aligned(arrays)
            if function is not None:
                return (function(*arrays, out=out),)
            if into is not None and out is not None:
                into(*arrays, out)
                return (out,)
            found = narrow(self.apply(*arrays), dtype)
            if out is None:
                return (found,)
            out[...] = found
            return (out,)

        return call

    def _element_bytes(self, *, direct: bool, width: int) -> int:
        """Return the temporary bytes of an element of a block."""
        return element_bytes(self.into_temporaries if direct else self.temporaries, width)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the temporary arrays of all blocks, or of the whole array if it is not divided."""
        (output,) = outputs
        element_type = output.element_type
        if element_type is None or not is_static(output.shape):
            return 0
        count, width = element_count(static(output.shape)), element_type.numpy().itemsize
        if not self.accepts_out(inputs, output):
            # The whole array at once, in four bytes at least; operands of comparisons are widened.
            return count * max(width, 4) * len(inputs)
        direct = type(self).into is not None and keeps_type(element_type)
        made = self._element_bytes(direct=direct, width=width)
        blocks = cut(count, made, context.scratch_bytes)
        return made * min(count, blocks.elements * blocks.threads)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Compute the output, in the element type of the first input or boolean."""
        arrays = self.aligned(inputs)
        dtype = np.dtype(bool) if self.boolean_result else arrays[0].dtype
        with np.errstate(all="ignore"):
            return (narrow(self.apply(*map(widen, arrays)), dtype),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import ARITHMETIC_ULPS, elementwise

        if self.selects or self.boolean_result:
            return elementwise(case, arguments=0, ulps=0)
        if self.arithmetic:
            return elementwise(case, arguments=0, ulps=ARITHMETIC_ULPS)
        return elementwise(case, absolute=self.absolute)

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count one operation for each element."""
        return element_count(static(output.shape)) if is_static(output.shape) else None

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        from deconv_ir.ops.tile_rules import elementwise_tile

        shapes = tuple(static(info.shape) for info in inputs)
        return elementwise_tile(self, boxes, inputs, self.aligned_shapes(*shapes))

    def aligned_shapes(self, *shapes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the arrays that `aligned` returns."""
        return shapes


class Binary(WithBroadcast, Elementwise):
    """An operation on two arrays, which are broadcast."""

    formula = "broadcast of {shape[a]} and {shape[b]}"

    family: ClassVar[str] = "numeric"
    on_values: ClassVar[OnValues | None] = None
    on_reals: ClassVar[Any] = None

    def value_rule(self) -> OnValues | None:
        """Return the operation on known elements, as of shapes; None: not tracked."""
        return self.on_values

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        a, b = inputs
        element_type = merged_type(inputs, self.inputs, self.family)
        shape = self.broadcast(a.shape, b.shape)
        if self.boolean_result:
            element_type = BOOLEAN
        value = combine(self.value_rule(), a, b, shape, element_type)
        return (TensorInfo(shape, element_type, value, self._reals(a, b)),)

    def _reals(self, a: TensorInfo, b: TensorInfo) -> tuple[float, ...] | None:
        """Combine known scales with one number, or with one for each."""
        rule = type(self).on_reals
        if rule is None or a.reals is None or b.reals is None:
            return None
        count = max(len(a.reals), len(b.reals))
        x, y = (r * count if len(r) == 1 else r for r in (a.reals, b.reals))
        plain = len(a.shape or ()) <= 1 and len(b.shape or ()) <= 1
        if not plain or len(x) != len(y):
            return None
        return on_reals(rule, a.element_type, x, y)

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        (a, b), second = inputs, operands[1]
        if self.realigns:
            if a.shape is None or b.shape is None or self.auto_broadcast_axis == -1:
                return None
            trailing = len(a.shape) - self.auto_broadcast_axis - len(b.shape)
            spread = expression.append_axes(second, trailing) if trailing >= 0 else None
            if spread is None:
                return None
            second = spread
        return Elementwise.compile(self, expression, (operands[0], second), inputs)

    def as_lazy_tensor(self, inputs: Sequence[LazyTensor], context: Context) -> LazyTensor | None:
        """Compute with a much smaller array, as weights are scaled, when parts are read."""
        turned = inputs[0].size < inputs[1].size
        large, small = inputs[::-1] if turned else inputs
        shape, rank = large.shape, small.ndim
        fits = rank <= large.ndim and np.broadcast_shapes(shape, small.shape) == shape
        if self.realigns or not fits or not large.size or _LEAST_RATIO * small.size > large.size:
            return None
        row = math.prod(shape[1:])
        whole = functools.cache(small.whole)

        def apply(array: Array, other: Array) -> Array:
            arrays = [other, array] if turned else [array, other]
            (result,) = self.execute(arrays, context)
            return result

        def read(start: int, stop: int) -> Array:
            first, last = start // row, -(-stop // row)
            rows = large.read(first * row, last * row).reshape(-1, *shape[1:])
            other = whole()
            if rank == len(shape) and len(other) > 1:
                other = other[first:last]
            return apply(rows, other).reshape(-1)[start - first * row : stop - first * row]

        codes = None if large.codes is None else self._scaled(large, small, turned=turned)
        dtype = inputs[0].dtype if not self.boolean_result else np.dtype(bool)
        return LazyTensor(shape, dtype, read, codes=codes)

    def _scaled(self, large: LazyTensor, small: LazyTensor, *, turned: bool) -> Codes | None:
        """Return codes with a zero point or a scale, if this is what the operation applies."""
        codes, name, dtype = large.codes, self.type, large.dtype
        if codes is None or codes.axes != large.shape or codes.scale is not None:
            return None
        if dtype not in (np.float16, np.float32) or small.dtype != dtype:
            return None
        if name == "Multiply":
            return codes._replace(scale=small.whole())
        if name != "Subtract" or turned or codes.zero is not None:
            return None
        zero = small.whole()
        if dtype == np.float32:
            return codes._replace(zero=zero)
        # In f16, only differences of small integers are exact.
        exact = codes.element_type.is_integer and (zero == np.rint(zero)) & (abs(zero) < 1024)
        return codes._replace(zero=zero.astype(np.float32)) if np.all(exact) else None


class Unary(Elementwise):
    """An operation on one array that keeps its shape."""

    formula = "the shape of the input, {shape[data]}"

    family: ClassVar[str] = "numeric"
    through_reals: ClassVar[bool] = False
    """Integers are computed in f64, and the result rounded to the nearest."""
    on_reals: ClassVar[Any] = None
    keeps_integers: ClassVar[bool] = False
    """Integers are unchanged."""

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write to an array, except for integers that are computed in f64."""
        integers = output.element_type is not None and not output.element_type.is_float
        return not (self.through_reals and integers) and super().accepts_out(inputs, output)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count four arrays of f64 and two of booleans for integers that are rounded."""
        element_type = inputs[0].element_type
        if element_type is None or element_type.is_float or not self.through_reals:
            return super().scratch(inputs, outputs, context)
        return 34 * element_count(static(outputs[0].shape))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        element_type = check_type(data, self.inputs[0], self.family)
        rule = type(self).on_reals
        reals = None
        if rule is not None and data.reals is not None:
            reals = on_reals(rule, element_type, data.reals)
        value = data.value if self.keeps_integers else None
        to = BOOLEAN if self.boolean_result else element_type
        return (TensorInfo(data.shape, to, value, reals),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Compute the output, keeping the element type."""
        data = inputs[0]
        if not self.through_reals or data.dtype.kind not in "iub":
            return Elementwise.execute(self, inputs, context)
        with np.errstate(all="ignore"):
            return (to_integers(self.apply(data.astype(np.float64)), data.dtype),)


def to_integers(reals: Array, dtype: Any) -> Array:
    """Round to the nearest integer, ties away from zero; values out of range become 0."""
    rounded = np.copysign(np.floor(np.abs(reals) + 0.5), reals)
    fits = np.isfinite(rounded) & (np.abs(rounded) < 2.0**63)
    return narrow(np.where(fits, rounded, 0).astype(np.int64), dtype)


def register(
    base: type[Unary] | type[Binary],
    module: str,
    type_name: str,
    compute: Function | str,
    doc: str,
    *,
    version: str = "opset1",
    family: str = "numeric",
    boolean_result: bool = False,
    on_reals: Callable[..., float] | None = None,
    into: Function | None = None,
    **members: Any,
) -> type[Any]:
    """Register an elementwise operation on one or two arrays.

    Parameters
    ----------
    base : type
        `Unary` or `Binary`.
    module : str
        Name of the registering module, for the index of operations.
    type_name : str
        `type` of the layer.
    compute : str or callable
        Name of the NumPy ufunc; or a function of the arrays.
    doc : str
        The result, in one line.
    version : str
        First opset with the operation.
    family : str
        Allowed element types: float, integer, numeric, boolean, bits (integer or boolean) or any.
    boolean_result : bool
        The output is boolean for any input.
    on_reals : callable, optional
        The same on floats, if scales are computed with it.
    into : callable, optional
        Like `compute`, with an array to write to, which may be the input: saves a copy.  Not needed
        for a ufunc.
    **members
        Further class variables of `base`: `compiled`, `through_reals`, `on_values`, `selects`,
        `arithmetic` or `absolute`.
    """
    unknown = [name for name in members if not hasattr(base, name)]
    assert not unknown, f"{base.__name__} has no {unknown}"
    if isinstance(compute, str):
        members["ufunc_name"] = compute
        into, compute = ufunc_into(compute), ufunc(compute)
    functions = {"compute": compute, "into": into, "on_reals": on_reals}
    members |= {name: function and staticmethod(function) for name, function in functions.items()}
    members |= {"family": family, "boolean_result": boolean_result}
    element = {"boolean": "boolean", "integer": "i32", "bits": "i32"}.get(family, "f32")
    result = "boolean" if boolean_result else element
    inputs: tuple[str, ...] = ("data",)
    example = f"{element}[2,3] -> {result}[2,3]"
    if base is Binary:
        inputs = ("a", "b")
        example = f"{element}[2,3,4], {element}[3,1] -> {result}[2,3,4]"
    class_name = f"{type_name}{version.removeprefix('opset')}"
    made: type[Any] = type(class_name, (base,), {"__module__": module, "__doc__": doc, **members})
    return declare(type_name, version, inputs=inputs, examples=(example,))(made)
