"""OpenVINO If-8: one of two graphs is run."""

from __future__ import annotations

from deconv_ir.errors import ShapeError
from deconv_ir.ir.body import Body
from deconv_ir.ir.operation import Arrays, Context, Infos, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import check_single, known_integers, only
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


@operation("If-8(cond, data...)")
class If(WithBodies):
    """One of two bodies, chosen by a boolean."""

    body_names = ("then_body", "else_body")

    then_body: Body = field(default=NO_BODY)
    else_body: Body = field(default=NO_BODY)

    def infer_parameters(
        self, inputs: Infos, context: Context
    ) -> tuple[dict[int, TensorInfo], ...]:
        return tuple(given_infos(body, inputs, context) for body in self.bodies)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        if not inputs:
            raise ShapeError("If takes a condition", expected=">= 1", actual=0, rule="input-count")
        check_single(inputs[0], "cond", "boolean")
        branches = [
            {j.port: result_info(inference, j.inner) for j in body.outputs}
            for body, inference in self.infer_bodies(inputs, context)
        ]
        known = known_integers(inputs[0])
        chosen = branches if not known else [branches[0 if known[0] else 1]]
        outputs = []
        for port in range(output_count(*self.bodies)):
            infos = [branch[port] for branch in branches if port in branch]
            types = {info.element_type for info in infos} - {None}
            if len(infos) < len(branches):
                raise ShapeError(f"output {port} comes from one branch only", rule="body")
            if len(types) > 1:
                raise ShapeError(
                    f"output {port} is {infos[0]} of the then_body, {infos[1]} of the else_body: "
                    "element types differ",
                    expected=infos[0].element_type,
                    actual=infos[1].element_type,
                    rule="element-type",
                )
            outputs.append(join_infos(chosen[0][port], chosen[-1][port]))
        return tuple(outputs)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        body = self.then_body if bool(only(inputs[0], "cond")) else self.else_body
        results = run_body(body, given_arrays(body, inputs), context)
        outputs = {joint.port: results[joint.inner] for joint in body.outputs}
        return [outputs[port] for port in range(output_count(body))]
