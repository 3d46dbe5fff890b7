"""OpenVINO CTCGreedyDecoder-1, CTCGreedyDecoderSeqLen-6 and CTCLoss-4: labels of a sequence."""

from __future__ import annotations

import itertools

from deconv_ir.ir.dtypes import I32, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import intersect
from deconv_ir.ops.base import attribute, boolean, operation, result_type
from deconv_ir.ops.checks import check_shape, check_single, check_type, misfit, only
from deconv_ir.ops.numeric import narrow, np, widen


def _check_classes(classes: int) -> None:
    if classes == 0:
        raise misfit("input-shape", "data", "have at least one class", classes, ">= 1")


def _collapse(classes: Array, blank: int, merge: bool) -> Array:
    """Return the classes without blanks; with `merge`, repeated ones only once."""
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
    """Most probable class of each step, without blanks, padded with -1."""

    scratch_ratios = (0.25, 1.25)

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
    """Most probable class of each step, without blanks, padded with -1, and the lengths."""

    scratch_ratios = (0.5, 1.25)

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


@operation(
    "CTCLoss-4(logits, logit_length, labels, label_length, blank_index?)",
    "f32[2,4,5], i32[2]{4,3}, i32[2,4]{0,0,1,2,3,1,1,0}, i32[2]{2,3}, i32[]{4} -> f32[2]",
    "f32[1,3,4], i64[1]{3}, i64[1,3]{2,2,1}, i64[1]{3} -> f32[1] | unique=true",
)
class CTCLoss(Operation):
    """Negative log-likelihood of the labels, over all their alignments."""

    scratch_ratios = (4.5, 5.5)

    formula = "N of logits {shape[logits]}"

    preprocess_collapse_repeated: bool = attribute(boolean(), False)
    ctc_merge_repeated: bool = attribute(boolean(), True)
    unique: bool = attribute(boolean(), False)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "logits", "float")
        for info, name in zip(inputs[1:], self.inputs[1:], strict=False):
            check_type(info, name, "integer")
        logits = check_shape(inputs[0], "logits", (UNKNOWN,) * 3) or (UNKNOWN,) * 3
        batch = logits[:1]
        for info, name in zip(inputs[1:4], self.inputs[1:4], strict=True):
            wanted = (*batch, logits[1]) if name == "labels" else batch
            shared = intersect(check_shape(info, name, wanted), wanted) or wanted
            batch = shared[:1]
        for info in inputs[4:]:
            check_single(info, "blank_index")
        return (TensorInfo(batch, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        logits = widen(inputs[0])
        _check_classes(logits.shape[2])
        last = logits.shape[2] - 1
        blank = int(only(inputs[4], "blank_index")) if len(inputs) > 4 else last
        losses = np.zeros(len(logits), logits.dtype)
        rows = zip(logits, inputs[1].tolist(), inputs[2], inputs[3].tolist(), strict=True)
        for row, (scores, steps, labels, count) in enumerate(rows):
            if not 0 <= count <= steps <= len(scores):
                must = f"be 0..{steps}, and logit_length 0..{len(scores)}"
                raise misfit("index", "label_length", must, count, f"0..{steps}")
            target = self._target(labels[:count])
            if not all(0 <= label <= last for label in (blank, *target)):
                must = f"be from 0 to {last}"
                raise misfit(
                    "index", "labels and blank_index", must, (*target, blank), f"0..{last}"
                )
            losses[row] = self._loss(scores[:steps], target, blank)
        return (narrow(losses, inputs[0].dtype),)

    def _target(self, labels: Array) -> list[int]:
        found: list[int] = labels.tolist()
        if self.preprocess_collapse_repeated:
            found = [label for label, _ in itertools.groupby(found)]
        return list(dict.fromkeys(found)) if self.unique else found

    def _loss(self, scores: Array, target: list[int], blank: int) -> float:
        """Sum over alignments: labels with a blank before, between and after them."""
        wide = scores.astype(np.float64)
        wide -= wide.max(axis=1, keepdims=True)
        wide -= np.log(np.exp(wide).sum(axis=1, keepdims=True))
        states = np.full(2 * len(target) + 1, blank)
        states[1::2] = target
        label = np.arange(len(states)) % 2 == 1
        # A label may repeat, or follow another label, but not an equal one that would be merged.
        may_stay = ~label | self.ctc_merge_repeated
        may_skip = label.copy()
        may_skip[:2] = False
        if self.ctc_merge_repeated:
            may_skip[2:] &= states[2:] != states[:-2]
        sums = np.full(len(states) + 2, -np.inf)  # two unreachable states, then the others
        sums[1] = 0.0  # before the first step
        for step, logarithms in enumerate(wide):
            stays = np.where(may_stay, sums[2:], -np.inf)
            skips = np.where(may_skip, sums[:-2], -np.inf)
            if not step:
                skips[1:2] = 0.0  # the first label without a blank before it
            total = np.logaddexp(np.logaddexp(stays, sums[1:-1]), skips)
            sums = np.concatenate([[-np.inf, -np.inf], total + logarithms[states]])
        if not len(wide):
            return 0.0 if not target else np.inf
        return -float(np.logaddexp.reduce(sums[2:][-2:]))
