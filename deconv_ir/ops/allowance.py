"""How far the results of an operation may be from the exact ones in a given precision.

A bound follows from the operation (`Operation.allowance`), from the arrays that it got, and from
the precision in which it was computed.  `eps` is the distance from 1 to the next number.  The
constants are stated in docs/verdicts.md; Higham, Accuracy and Stability of Numerical Algorithms,
sections 3.1 and 4.2, has the analysis of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from deconv_ir.ir.dtypes import BF16, F16, F32, F64, Array, ElementType
from deconv_ir.ir.operation import Arrays, Context, Operation
from deconv_ir.ops.numeric import np

ULPS: Final = 2
"""Every result that is rounded may differ by this many eps of its own."""
FUNCTION_ULPS: Final = 16
"""The same for functions other than arithmetic."""
ARGUMENT_ULPS: Final = 2
"""Functions may be computed for an argument that differs by this many eps."""
ARITHMETIC_ULPS: Final = 2
"""The same for arithmetic: a quotient may be a product with the reciprocal."""
SUM_ULPS: Final = 64
"""A sum may differ by this many eps of its sum of magnitudes, and one more for each sqrt(terms)."""
_PROBES: Final = 4
_FAMILIES: Final = ("constants", "shape", "gather_scatter")
"""Packages of operations that move elements, unless one states otherwise."""
_UNITS: Final = {F64: 2.0**-52, F32: 2.0**-23, F16: 2.0**-10, BF16: 2.0**-7}
_LARGEST: Final = {F64: 1.7976931348623157e308, F32: 3.4e38, F16: 65504.0, BF16: 3.38e38}
_SMALLEST: Final = {F64: 2.0**-1022, F32: 2.0**-126, F16: 2.0**-14, BF16: 2.0**-126}

Bounds = Sequence["Array | float"]


class Precision(NamedTuple):
    """The precision in which a layer was computed.

    Attributes
    ----------
    declared : ElementType
        The type of the output in the model.
    executed : ElementType
        The type in which the runtime says that it computed: for models of f32 it may be narrower.
    windows : bool
        Whether convolutions may be computed by Winograd, whose errors are those of a window.
    levels : bool
        Whether the operands were quantised to 8 bits.
    """

    declared: ElementType
    executed: ElementType
    windows: bool = False
    levels: bool = False

    @property
    def result(self) -> float:
        """Eps of the rounded result."""
        return max(_UNITS.get(self.declared, 0.0), _UNITS.get(self.executed, 0.0))

    @property
    def operand(self) -> float:
        """Eps of the rounding of operands to a narrower type than the declared one; 0: none."""
        own = _UNITS.get(self.executed, 0.0)
        return own if own > _UNITS.get(self.declared, 0.0) else 0.0

    @property
    def sums(self) -> float:
        """Eps of the type in which sums are made: f32 at least."""
        return _UNITS[F64] if F64 is self.declared else _UNITS[F32]

    @property
    def largest(self) -> float:
        """Results beyond it may be infinite."""
        found = (_LARGEST.get(t, math.inf) for t in (self.declared, self.executed))
        return min(found)

    @property
    def smallest(self) -> float:
        """Results below it may be flushed to zero."""
        return max(_SMALLEST.get(t, 0.0) for t in (self.declared, self.executed))


class Case(NamedTuple):
    """A layer, the arrays that it got, and the exact result.

    Attributes
    ----------
    operation : Operation
        The operation in f64.
    inputs : sequence of ndarray
        Floats are f64.
    errors : sequence of ndarray or None
        Bounds of the errors of the inputs; None: they are exact.
    outputs : sequence of ndarray
        The exact results.
    precision : Precision
        That of the first output.
    context : Context
    narrow : Operation
        The operation in its own types.
    """

    operation: Operation
    inputs: Arrays
    errors: Sequence[Array | None]
    outputs: Arrays
    precision: Precision
    context: Context
    narrow: Operation

    def run(self, inputs: Arrays) -> Arrays:
        """Compute the layer in f64 for other inputs."""
        with np.errstate(all="ignore"):
            return self.operation.execute(list(inputs), self.context)

    def perturbation(self, index: int, ulps: float) -> Array | None:
        """Return by how much an input may be off: its error, and its rounding; None: it is exact.

        `ulps` is the number of eps of the argument that the operation allows.
        """
        data, error = self.inputs[index], self.errors[index]
        relative = ulps * self.precision.sums + self.precision.operand
        if data.dtype.kind != "f" or (not relative and error is None):
            return None
        found: Array = np.where(np.isfinite(data), np.abs(data) * relative, 0.0)
        return found if error is None else found + error


def bounds(case: Case) -> Bounds | None:
    """Return the allowed deviation of each output; None: not known for the operation."""
    found = case.operation.allowance(case)
    if found is not None:
        return found
    if moves_only(case.operation):
        return moved(case)
    if all(output.dtype.kind != "f" for output in (*case.outputs, *case.inputs)):
        return [0.0] * len(case.outputs)
    return None


def moves_only(operation: Operation) -> bool:
    """Whether the outputs consist of elements of the inputs."""
    if type(operation).allowance is not Operation.allowance:
        return False
    family = type(operation).__module__.removeprefix("deconv_ir.ops.").partition(".")[0]
    return bool(operation.moves) or family in _FAMILIES


def moved(case: Case) -> Bounds:
    """Allow nothing but the errors of the elements that are moved."""
    if all(error is None for error in case.errors) and not case.precision.operand:
        return [0.0] * len(case.outputs)
    rows = [
        np.zeros(data.shape) if (found := case.perturbation(i, 0)) is None else found
        for i, data in enumerate(case.inputs)
        if data.dtype.kind == "f"
    ]
    parts = iter(rows)
    inputs = [next(parts) if data.dtype.kind == "f" else data for data in case.inputs]
    return [np.abs(a) if a.dtype.kind == "f" else 0.0 for a in case.run(inputs)]


def elementwise(
    case: Case,
    *,
    arguments: float = ARGUMENT_ULPS,
    ulps: float = FUNCTION_ULPS,
    absolute: float = 0,
) -> Bounds:
    """Allow a result that is near one for a near argument.

    The result may be off by `ulps` eps, and be that of arguments which are off by `arguments` eps.
    `absolute` is added in eps of the larger of 1 and the argument.
    """
    exact = case.outputs[0]
    allowed = hull(case, arguments)
    if exact.dtype.kind != "f":
        return [allowed]
    allowed = allowed + np.abs(exact) * (ulps * case.precision.sums + ULPS * case.precision.result)
    if absolute:
        scale = np.maximum(np.abs(case.inputs[0]), 1)
        allowed = allowed + absolute * max(case.precision.result, case.precision.sums) * scale
    return [allowed]


def monotone(case: Case) -> Bounds:
    """Allow what lies between the results for the smallest and the largest inputs.

    The operation returns elements of its inputs, and does not fall as one of these grows.
    """
    return [hull(case, 0), *[0.0] * (len(case.outputs) - 1)]


def hull(case: Case, ulps: float) -> Array:
    """Return how far the first output moves as each input moves within its error."""
    exact = case.outputs[0].astype(np.float64)
    allowed = np.zeros(exact.shape)
    for index in range(len(case.inputs)):
        delta = case.perturbation(index, ulps)
        if delta is None:
            continue
        for sign in (-1, 1):
            inputs = list(case.inputs)
            inputs[index] = inputs[index] + sign * delta
            with np.errstate(all="ignore"):
                found = np.abs(case.run(inputs)[0].astype(np.float64) - exact)
            found = np.where(np.isnan(found), 0.0, found)
            np.maximum(allowed, found, out=allowed)
    return allowed


def sums(
    case: Case,
    terms: float,
    values: Collection[int] | None = None,
    spread: Callable[[Array], Array] | None = None,
) -> Bounds:
    """Allow ``(64 + sqrt(terms)) eps`` of the sum of magnitudes, and the rounding of operands.

    Where terms have one sign, as in means after ReLU, rounding errors may have one sign, too:
    ``terms / 4`` eps of the result are added.

    The operation is a sum of products of elements, whose magnitudes are its result for magnitudes.

    Parameters
    ----------
    case : Case
    terms : float
        Number of summands of an element.
    values : collection of int, optional
        The inputs that are summed or multiplied; default: all floats.
    spread : callable, optional
        Returns the largest sum of magnitudes of the window of each element, for Winograd.
    """
    if case.outputs[0].dtype.kind != "f":
        return [0.0] * len(case.outputs)
    floats = [i for i, a in enumerate(case.inputs) if a.dtype.kind == "f"]
    summed = floats if values is None else [i for i in floats if i in values]
    total = magnitudes(case, summed)
    precision = case.precision
    share = (SUM_ULPS + math.sqrt(terms)) * precision.sums
    widened = spread(total) if spread is not None and precision.windows else total
    allowed = np.multiply(widened, share, dtype=np.float64)
    own = np.abs(case.outputs[0])
    own *= terms / 4 * precision.sums + ULPS * precision.result
    allowed += own
    if precision.operand:
        allowed += len(summed) * precision.operand * total
    for index in summed:
        error = case.errors[index]
        if error is not None:
            more = np.abs(case.inputs[index]) + error
            allowed += _excess(magnitudes(case, summed, {index: more}), total)
        if precision.levels and np.size(case.inputs[index]):
            data = case.inputs[index]
            more = np.abs(data) + np.abs(data).max() / 127
            allowed += _excess(magnitudes(case, summed, {index: more}), total)
    # Where the magnitudes exceed the range, a sum on the way may be infinite.
    if float(total.max(initial=0)) > precision.largest:
        allowed[np.isfinite(total) & (total > precision.largest)] = np.inf
    return [allowed]


def _excess(larger: Array, total: Array) -> Array:
    found: Array = np.maximum(larger - total, 0)
    return found


def magnitudes(
    case: Case, summed: Collection[int], instead: dict[int, Array] | None = None
) -> Array:
    """Compute the layer for magnitudes, in f32 where that has the range: three digits suffice."""
    largest = 0.0
    inputs = []
    for index, data in enumerate(case.inputs):
        if index in summed:
            data = (instead or {}).get(index, data)
            data = np.abs(data)
            largest = max(largest, float(data.max(initial=0)))
        inputs.append(data)
    operation = case.operation
    small = case.precision.declared is not F64 and largest < 1e15
    if small:
        operation = case.narrow
        inputs = [a.astype(np.float32) if a.dtype == np.float64 else a for a in inputs]
    with np.errstate(all="ignore"):
        found: Array
        (found,) = operation.execute(inputs, case.context)
    if found.dtype != np.float32:
        found = found.astype(np.float64, copy=False)
    return np.abs(found)


def resampled(case: Case) -> Bounds:
    """Allow errors of the weights, and of positions by two eps of the extent."""
    precision, data = case.precision, case.inputs[0]
    if data.dtype.kind != "f":
        return [0.0]
    size = np.abs(data[np.isfinite(data)])
    extent = max((*data.shape, *case.outputs[0].shape), default=1)
    largest = float(size.max(initial=0))
    share = precision.sums * (SUM_ULPS + 4 * ULPS * extent) + 2 * precision.operand
    delta = case.perturbation(0, 0)
    moved_by = 0.0 if delta is None else 2 * float(delta.max(initial=0))
    return [np.full(case.outputs[0].shape, share * largest + moved_by)]


def points_at(case: Case, index: Array, axis: int) -> Array:
    """Return which indices, into the data flattened from `axis` on, lead to the first output."""
    data, exact = case.inputs[0], case.outputs[0]
    rows = data.reshape(*data.shape[:axis], -1)
    places = index.reshape(*index.shape[:axis], -1).astype(np.int64)
    inside = (places >= 0) & (places < rows.shape[-1])
    found = np.take_along_axis(rows, np.where(inside, places, 0), -1).reshape(exact.shape)
    same = (found == exact) | ((found != found) & (exact != exact))
    valid: Array = same & inside.reshape(exact.shape)
    return valid


def relative(case: Case, ulps: float = SUM_ULPS) -> Bounds:
    """Allow `ulps` eps of the result, and the effect of the errors of the inputs."""
    return composed(case, ulps, arguments=0)


def composed(case: Case, ulps: float = SUM_ULPS, *, arguments: float = ARGUMENT_ULPS) -> Bounds:
    """Allow what small changes of the inputs do to a layer of several sums and functions.

    The inputs are changed by their errors and by `arguments` eps, with four patterns of signs; the
    allowance is four times the largest change of an element, and of the tensor in the mean, and
    `ulps` eps of the element and of the tensor in the mean.
    """
    deltas = [case.perturbation(i, arguments) for i in range(len(case.inputs))]
    probed = any(delta is not None and delta.any() for delta in deltas)
    found: list[Array | float] = []
    changes = [np.zeros(output.shape) for output in case.outputs]
    if probed:
        random = np.random.default_rng(0)
        for probe in range(_PROBES):
            inputs = [
                data if delta is None else data + delta * _signs(random, probe, data.shape)
                for data, delta in zip(case.inputs, deltas, strict=True)
            ]
            for change, exact, other in zip(changes, case.outputs, case.run(inputs), strict=True):
                if exact.shape == other.shape and exact.dtype.kind == "f":
                    with np.errstate(all="ignore"):
                        moved_by = np.abs(other - exact)
                    moved_by = np.where(np.isfinite(moved_by), moved_by, 0.0)
                    np.maximum(change, moved_by, out=change)
    rounding = ulps * case.precision.sums + 2 * ULPS * case.precision.result
    for change, exact in zip(changes, case.outputs, strict=True):
        if exact.dtype.kind != "f":
            found.append(0.0)
            continue
        size = np.where(np.isfinite(exact), np.abs(exact), 0.0)
        mean = float(change.mean()) if change.size else 0.0
        scale = float(size.mean()) if size.size else 0.0
        found.append(_PROBES * (change + mean) + rounding * (size + (scale if probed else 0)))
    return found


def _signs(random: np.random.Generator, probe: int, shape: tuple[int, ...]) -> Array | float:
    if probe < 2:
        return 1.0 - 2.0 * probe
    return random.choice((-1.0, 1.0), size=shape)
