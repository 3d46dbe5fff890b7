"""OpenVINO GatherTree-1: the complete beams of a beam search."""

from __future__ import annotations

from deconv_ir.errors import InputError
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import check_rank, check_shape, merged_type, only
from deconv_ir.ops.numeric import np, widen


@operation(
    "GatherTree-1(step_ids, parent_ids, max_seq_len, end_token)",
    "i32[3,2,2], i32[3,2,2], i32[2]{3,2}, i32[]{1} -> i32[3,2,2]",
    "f32[2,1,2], f32[2,1,2]{0,1,1,0}, f32[1]{2}, f32[]{9} -> f32[2,1,2]",
)
class GatherTree(Operation):
    """The tokens of each beam, followed from its last step through the parents to the first.

    Inputs: `step_ids` and `parent_ids` [steps, N, beams], `max_seq_len` [N] and `end_token` [].
    Steps after the length of a sequence, or after its first end token, are end tokens.
    """

    scratch_ratios = (2, 2)

    formula = "the shape of step_ids, {shape[step_ids]}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "numeric")
        shape: Shape = check_shape(inputs[0], "step_ids", (UNKNOWN,) * 3)
        shape = check_shape(inputs[1], "parent_ids", shape or (UNKNOWN,) * 3) or (UNKNOWN,) * 3
        lengths = check_shape(inputs[2], "max_seq_len", (shape[1],)) or (shape[1],)
        check_rank(inputs[3], "end_token", 0)
        return (TensorInfo((shape[0], lengths[0], shape[2]), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        steps, parents = inputs[0], widen(inputs[1]).astype(np.int64)
        end = only(inputs[3], "end_token")
        count, batch, beams = steps.shape
        lengths = np.minimum(widen(inputs[2]).astype(np.int64), count)
        output = np.full(steps.shape, end, steps.dtype)
        parent = np.broadcast_to(np.arange(beams), (batch, beams))
        for step in range(count - 1, -1, -1):
            active = (step < lengths)[:, None]
            wrong = active & ((parent < 0) | (parent >= beams))
            if wrong.any():
                raise InputError(
                    f"parent {int(parent[wrong][0])} of step {step + 1} is not a beam: "
                    f"expected 0 to {beams - 1}",
                    rule="index-range",
                )
            safe = np.where(active, parent, 0)
            found = np.take_along_axis(steps[step], safe, axis=1)
            output[step] = np.where(active, found, output[step])
            parent = np.where(active, np.take_along_axis(parents[step], safe, axis=1), parent)
        ended = np.logical_or.accumulate(output == end, axis=0)
        output[1:][ended[:-1]] = end
        return (output,)
