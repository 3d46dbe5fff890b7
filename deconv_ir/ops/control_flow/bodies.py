"""The bodies of If, Loop and TensorIterator: inference and execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deconv_ir.errors import DeconvError, ShapeError
from deconv_ir.findings import GraphLocation
from deconv_ir.ir.body import NONE, Body
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Dim, bounds, interval
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape

NO_BODY = Body(name="", graph=Graph(name="", layers=(), edges=()))
"""Placeholder of a body until it is read."""


class WithBodies(Operation):
    """An operation that runs bodies."""

    checks_values = False

    @property
    def is_repeatable(self) -> bool:
        return all(x.operation.is_repeatable for body in self.bodies for x in body.graph.layers)

    def infer_bodies(self, inputs: Infos, context: Context) -> Iterator[tuple[Body, Inference]]:
        """Infer each body that may run."""
        parameters = self.infer_parameters(inputs, context)
        for body, given in zip(self.bodies, parameters, strict=True):
            reason = body.error()
            if reason is not None:
                raise _in_body(ShapeError(reason, rule="body"), body)
            try:
                inference = infer(body.graph, context, given)
            except DeconvError as error:
                raise _in_body(error, body) from None
            if context.body_findings is not None:
                location = GraphLocation(child=body.name)
                found = (f._replace(location=location) for f in inference.findings)
                context.body_findings.extend(found)
            yield body, inference


def _in_body(error: DeconvError, body: Body) -> DeconvError:
    """Locate errors at the body: a location within it belongs to another graph."""
    error.location = GraphLocation(child=body.name)
    return error


def given_infos(body: Body, inputs: Infos, context: Context) -> dict[int, TensorInfo]:
    """Return the infos of the first iteration's Parameters, by index, without slices."""
    given = {}
    for joint in body.inputs:
        if joint.inner == NONE:
            continue
        info = inputs[joint.port] if 0 <= joint.port < len(inputs) else TensorInfo(None)
        parameter = body.graph.layers[joint.inner].operation
        if info.shape is None and parameter.implemented:
            (info,) = parameter.infer((), context)
        given[joint.inner] = info
    return given


def result_info(inference: Inference, index: int) -> TensorInfo:
    """Return the inferred info of a Result."""
    outputs = inference.outputs[index]
    return outputs[0] if outputs else TensorInfo(None)


def join_infos(a: TensorInfo, b: TensorInfo) -> TensorInfo:
    """Return the common info of two tensors, either of which may be the result."""
    if a == b:
        return a
    shape: Shape = None
    if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        shape = tuple(map(_either, a.shape, b.shape))
    return TensorInfo(
        shape,
        a.element_type if a.element_type is b.element_type else None,
        a.value if a.value == b.value else None,
        a.reals if a.reals == b.reals else None,
    )


def _either(a: Dim, b: Dim) -> Dim:
    (low, high), (least, most) = bounds(a), bounds(b)
    return interval(min(low, least), None if high is None or most is None else max(high, most))


def run_body(body: Body, given: Mapping[int, Array], context: Context) -> dict[int, Array]:
    """Run a body once: map arrays of its Parameters to those of its Results, by index."""
    assert context.run_body is not None, "an executor runs it"
    return dict(zip(body.results, context.run_body(body, given), strict=True))


def given_arrays(body: Body, inputs: Arrays) -> dict[int, Array]:
    """Return the arrays that are passed whole into a body, by the index of the Parameter."""
    return {
        joint.inner: inputs[joint.port]
        for joint in body.inputs
        if joint.port != NONE and joint.slices is None
    }


def output_count(*bodies: Body) -> int:
    """Return the number of outputs in the port maps."""
    return max((joint.port for body in bodies for joint in body.outputs), default=-1) + 1
