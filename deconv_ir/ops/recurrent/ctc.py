"""OpenVINO CTCGreedyDecoder-1 and CTCGreedyDecoderSeqLen-6: the best class of each step."""

from __future__ import annotations

from deconv_ir.ir.dtypes import I32, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import intersect
from deconv_ir.ops.base import attribute, boolean, operation, result_type
from deconv_ir.ops.checks import check_shape, check_single, check_type, misfit, only
from deconv_ir.ops.numeric import np, widen


def _check_classes(classes: int) -> None:
    if classes == 0:
        raise misfit("input-shape", "data", "have a class at least", classes, ">= 1")


def _collapse(classes: Array, blank: int, merge: bool) -> Array:
    """Return the classes without blanks, equal ones in a row once where `merge` says so."""
    keep = classes != blank
    if merge:
        keep[1:] &= classes[1:] != classes[:-1]
    kept: Array = classes[keep]
    return kept


@operation(
    "CTCGreedyDecoder-1(data, sequence_mask)",
    "f32[20,8,10], f32[20,8] -> f32[8,20,1,1] | ctc_merge_repeated=true",
)
class CTCGreedyDecoder(Operation):
    """The best class of each step, without blanks; -1 follows the last."""

    formula = "N and T of data {shape[data]}"

    ctc_merge_repeated: bool = attribute(boolean(), True)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        data = check_shape(inputs[0], "data", (UNKNOWN,) * 3) or (UNKNOWN,) * 3
        mask = check_shape(inputs[1], "sequence_mask", data[:2])
        steps, batch = intersect(mask, data[:2]) or data[:2]
        return (TensorInfo((batch, steps, 1, 1), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        steps, batch, classes = data.shape
        _check_classes(classes)
        best = data.argmax(axis=-1)
        mask = widen(inputs[1])
        output = np.full((batch, steps, 1, 1), -1, inputs[0].dtype)
        for row in range(batch):
            ends = np.flatnonzero(mask[:, row] == 0)
            length = int(ends[0]) if len(ends) else steps
            found = _collapse(best[:length, row], classes - 1, self.ctc_merge_repeated)
            output[row, : len(found), 0, 0] = found
        return (output,)


@operation(
    "CTCGreedyDecoderSeqLen-6(data, sequence_length, blank_index?)",
    "f32[8,20,10], i32[8] -> i32[8,20], i32[8]",
    "f32[2,5,4], i64[2], i64[1]{0} -> i64[2,5], i64[2]"
    " | classes_index_type=i64 sequence_length_type=i64",
)
class CTCGreedyDecoderSeqLen(Operation):
    """The best class of each step, without blanks, and their number; -1 follows the last."""

    formula = "N and T of data {shape[data]}"

    merge_repeated: bool = attribute(boolean(), True)
    classes_index_type: ElementType = attribute(result_type(), I32)
    sequence_length_type: ElementType = attribute(result_type(), I32)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        check_type(inputs[0], "data", "float")
        for info, name in zip(inputs[1:], self.inputs[1:], strict=False):
            check_type(info, name, "integer")
        data = check_shape(inputs[0], "data", (UNKNOWN,) * 3) or (UNKNOWN,) * 3
        lengths = check_shape(inputs[1], "sequence_length", data[:1])
        (batch,) = intersect(lengths, data[:1]) or data[:1]
        for info in inputs[2:]:
            check_single(info, "blank_index")
        return (
            TensorInfo((batch, data[1]), self.classes_index_type),
            TensorInfo((batch,), self.sequence_length_type),
        )

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        batch, steps, classes = data.shape
        _check_classes(classes)
        blank = int(only(inputs[2], "blank_index")) if len(inputs) > 2 else classes - 1
        best = data.argmax(axis=-1)
        output = np.full((batch, steps), -1, self.classes_index_type.numpy())
        counts = np.zeros(batch, self.sequence_length_type.numpy())
        for row, length in enumerate(inputs[1].tolist()):
            found = _collapse(best[row, : max(0, length)], blank, self.merge_repeated)
            output[row, : len(found)] = found
            counts[row] = len(found)
        return (output, counts)
