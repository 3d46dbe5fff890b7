"""OpenVINO Loop-5 and TensorIterator-1: a graph is run repeatedly."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from deconv_ir.errors import ShapeError
from deconv_ir.ir.body import NONE, Body, Joint
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim, Interval, bounds, interval
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.operation import Arrays, Context, Infos, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import Shape, element_count, format_shape, static
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import (
    check_single,
    known_integer,
    known_integers,
    normalize_axis,
    only,
    product,
)
from deconv_ir.ops.control_flow.bodies import (
    NO_BODY,
    WithBodies,
    given_arrays,
    given_infos,
    join_infos,
    output_count,
    result_info,
    run_body,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import actual


@operation("TensorIterator-1(data...)")
class TensorIterator(WithBodies):
    """A body run for each slice of its inputs."""

    body_names = ("body",)
    inference_rounds = 3

    body: Body = field(default=NO_BODY)

    # Inference

    def infer_parameters(
        self, inputs: Infos, context: Context
    ) -> tuple[dict[int, TensorInfo], ...]:
        body = self.body
        given = given_infos(body, inputs, context)
        for joint in body.inputs:
            if joint.slices is not None and joint.inner != NONE:
                given[joint.inner] = _part_info(given[joint.inner], joint)
            elif joint.purpose == "current_iteration" and joint.inner != NONE:
                given[joint.inner] = given[joint.inner]._replace(value=None)
        edges = [edge for edge in body.back_edges if NONE not in edge and edge[1] in given]
        # Dims, or whole shapes, that change from iteration to iteration are not known.
        for forget in (False, True):
            inference = infer(body.graph, context, given, collect=True)
            joined = {e: join_infos(given[e], result_info(inference, s)) for s, e in edges}
            if inference.errors or all(info == given[end] for end, info in joined.items()):
                break
            for end, info in joined.items():
                given[end] = _common(given[end], info._replace(shape=None) if forget else info)
        return (given,)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        self.check(inputs)
        ((body, inference),) = self.infer_bodies(inputs, context)
        given = given_infos(body, inputs, context)
        for start, end in body.back_edges:
            first, later = given[end].element_type, result_info(inference, start).element_type
            if first is not None and later is not None and first is not later:
                message = f"an iteration gives {later}, and the next one takes {first}"
                raise ShapeError(message, expected=first, actual=later, rule="element-type")
        count = self.infer_count(inputs, inference)
        outputs = [TensorInfo(None)] * output_count(body)
        for joint in body.outputs:
            if joint.port != NONE:
                info = result_info(inference, joint.inner)
                outputs[joint.port] = self._output(joint, info, count, given)
        return tuple(outputs)

    def _output(
        self, joint: Joint, info: TensorInfo, count: Dim, given: dict[int, TensorInfo]
    ) -> TensorInfo:
        if joint.slices is not None:
            if info.shape is None:
                return TensorInfo(None, info.element_type)
            axis = normalize_axis(joint.slices.axis, len(info.shape))
            whole = product(info.shape[axis], count)
            shape = (*info.shape[:axis], whole, *info.shape[axis + 1 :])
            return TensorInfo(shape, info.element_type)
        first = next((end for start, end in self.body.back_edges if start == joint.inner), NONE)
        if count == 1:
            return info
        info = info._replace(value=None, reals=None)
        # Without any iteration, the initial value remains.
        return info if bounds(count)[0] or first == NONE else join_infos(info, given[first])

    def check(self, inputs: Infos) -> None:
        """Check the inputs that the operation itself reads."""

    def infer_count(self, inputs: Infos, inference: Inference) -> Dim:
        """Return the number of iterations."""
        found: Dim = UNKNOWN
        name = ""
        sliced = [joint for joint in self.body.inputs if joint.slices is not None]
        for joint in sliced:
            count = _count(inputs[joint.port].shape, joint)
            if isinstance(found, Interval) or not isinstance(count, int):
                found = found if isinstance(found, int) else count
            elif count != found:
                message = f"{name} has {found} slices, input {joint.port} has {count}"
                raise ShapeError(message, expected=found, actual=count, rule="slices")
            name = name or f"input {joint.port}"
        return found if sliced else 1

    # Execution

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        body = self.body
        given = given_arrays(body, inputs)
        iteration = body.purpose("current_iteration")
        condition = body.purpose("execution_condition")
        kept: dict[int, list[Array]] = {j.inner: [] for j in body.outputs if j.slices is not None}
        results: dict[int, Array] = {}
        for number in self.iterations(inputs):
            for joint in body.inputs:
                if joint.slices is not None:
                    given[joint.inner] = _part(inputs[joint.port], joint, number)
            if iteration != NONE:
                given[iteration] = _filled(body, iteration, number, context)
            results = run_body(body, given, context)
            for index, parts in kept.items():
                parts.append(results[index])
            given |= {end: results[start] for start, end in body.back_edges}
            if condition != NONE and not bool(only(results[condition], "the execution condition")):
                break
        outputs: dict[int, Array] = {}
        for joint in body.outputs:
            if joint.port != NONE:
                outputs[joint.port] = self._result(joint, results, kept, inputs, context)
        return [outputs[port] for port in range(output_count(body))]

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Estimate the bytes of the parts that are concatenated at the end."""
        sliced = {joint.port for joint in self.body.outputs if joint.slices is not None}
        found = [outputs[port] for port in sliced if port < len(outputs)]
        return sum(
            info.element_type.size_of(element_count(static(info.shape)))
            for info in found
            if info.element_type is not None
        )

    def iterations(self, inputs: Arrays) -> Iterable[int]:
        """Return the numbers of the iterations, which a condition may end early."""
        for joint in self.body.inputs:
            if joint.slices is not None:
                count = _count(inputs[joint.port].shape, joint)
                assert isinstance(count, int), "of an array"
                return range(count)
        return range(1)

    def _result(
        self,
        joint: Joint,
        results: dict[int, Array],
        kept: dict[int, list[Array]],
        inputs: Arrays,
        context: Context,
    ) -> Array:
        if joint.slices is None:
            if results:
                return results[joint.inner]
            first = next((end for start, end in self.body.back_edges if start == joint.inner), NONE)
            given = given_arrays(self.body, inputs)
            if first not in given:
                raise ShapeError(
                    f"there was no iteration, and output {joint.port} has no first value",
                    rule="slices",
                )
            return given[first]
        parts = kept[joint.inner]
        if parts:
            axis = normalize_axis(joint.slices.axis, parts[0].ndim)
            for number, part in enumerate(parts):
                others = [(a.ndim, *a.shape[:axis], *a.shape[axis + 1 :]) for a in (parts[0], part)]
                if others[0] != others[1]:
                    raise ShapeError(
                        f"output {joint.port} joins parts along axis {axis}; iteration 0 gives "
                        f"{format_shape(parts[0].shape)}, iteration {number} "
                        f"{format_shape(part.shape)}",
                        expected=format_shape(parts[0].shape),
                        actual=format_shape(part.shape),
                        rule="slices",
                    )
            return np.concatenate(parts[::-1] if joint.slices.stride < 0 else parts, axis)
        info = self.infer([actual(array) for array in inputs], context)[joint.port]
        shape = tuple(bounds(dim)[0] for dim in info.shape or ())
        return np.empty(shape, None if info.element_type is None else info.element_type.numpy())


@operation("Loop-5(trip_count, execution_condition, data...)")
class Loop(TensorIterator):
    """A body run repeatedly while a condition holds, up to a trip count."""

    def check(self, inputs: Infos) -> None:
        if len(inputs) < 2:
            message = f"Loop takes trip_count and execution_condition, found {len(inputs)} inputs"
            raise ShapeError(message, expected=">= 2", actual=len(inputs), rule="input-count")
        for info, name, family in zip(
            inputs, ("trip_count", "execution_condition"), ("integer", "boolean"), strict=False
        ):
            check_single(info, name, family)

    def infer_count(self, inputs: Infos, inference: Inference) -> Dim:
        trips = known_integer(inputs[0], "trip_count")
        begins = known_integers(inputs[1])
        if begins == (0,) or trips == 0:
            return 0
        most = None if trips is None or trips < 0 else trips
        condition = self.body.purpose("execution_condition")
        goes_on = None if condition == NONE else result_info(inference, condition).value
        if goes_on == (0,) and begins == (1,) and trips is not None:
            return 1
        if most is not None and begins == (1,) and (condition == NONE or goes_on == (1,)):
            return most
        return interval(int(begins == (1,) and trips is not None), most)

    def iterations(self, inputs: Arrays) -> Iterable[int]:
        trips = int(only(inputs[0], "trip_count"))
        if not bool(only(inputs[1], "execution_condition")):
            return range(0)
        return itertools.count() if trips < 0 else range(trips)


def _common(first: TensorInfo, joined: TensorInfo) -> TensorInfo:
    """Return the joined info with changing dims unknown."""
    if first.shape is None or joined.shape is None:
        return joined._replace(shape=None, value=None, reals=None)
    dims = zip(first.shape, joined.shape, strict=True)
    return joined._replace(shape=tuple(a if a == b else UNKNOWN for a, b in dims))


def _filled(body: Body, index: int, number: int, context: Context) -> Array:
    """Return a number in the shape and type of a Parameter of a body."""
    (info,) = body.graph.layers[index].operation.infer((), context)
    dtype = np.dtype(np.int64) if info.element_type is None else info.element_type.numpy()
    return np.full((1,) * len(info.shape or ()), number, dtype)


def _part_info(info: TensorInfo, joint: Joint) -> TensorInfo:
    """Describe a slice of a tensor."""
    slices = joint.slices
    assert slices is not None, "the input is cut"
    if info.shape is None:
        return TensorInfo(None, info.element_type)
    rank = len(info.shape)
    if not -rank <= slices.axis < rank:
        return TensorInfo(None, info.element_type)  # `_count` reports it
    axis = slices.axis % rank
    shape = (*info.shape[:axis], slices.part_size, *info.shape[axis + 1 :])
    return TensorInfo(shape, info.element_type)


def _count(shape: Shape, joint: Joint) -> Dim:
    """Return the number of slices of an input."""
    slices = joint.slices
    assert slices is not None, "the input is cut"
    if shape is None:
        return UNKNOWN
    axis = normalize_axis(slices.axis, len(shape))
    extent = shape[axis]
    if isinstance(extent, Interval):
        return UNKNOWN
    count = slices.parts(extent)
    if count is None or slices.part_size > abs(slices.stride):
        raise ShapeError(
            f"input {joint.port} {format_shape(shape)} cannot be cut along axis {axis} from "
            f"{slices.start} to {slices.end} by {slices.stride} into parts of {slices.part_size}",
            actual=format_shape(shape),
            rule="slices",
        )
    return count


def _part(array: Array, joint: Joint, iteration: int) -> Array:
    """Return the slice of an input for an iteration."""
    slices = joint.slices
    assert slices is not None, "the input is cut"
    axis = normalize_axis(slices.axis, array.ndim)
    extent = static(array.shape)[axis]
    part = slices.part(extent, iteration)
    if part.start < 0 or part.stop > extent:
        raise ShapeError(
            f"iteration {iteration} takes {part.start}:{part.stop} of axis {axis} of input "
            f"{joint.port} {format_shape(array.shape)}",
            actual=format_shape(array.shape),
            rule="slices",
        )
    return array[(slice(None),) * axis + (part,)]
