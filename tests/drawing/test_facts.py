"""Facts on the page about every operation: formulas and counts, for known and unknown shapes."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import parse_example

CASES = [(operation, text) for operation in all_operations() for text in operation.examples]


def test_formulas_and_counts_of_known_and_unknown_shapes() -> None:
    for operation, text in CASES:
        example = parse_example(text)
        made = example.operation(operation)
        exact = [tensor.info() for tensor in example.inputs]
        dynamic = [
            TensorInfo(i.shape and tuple(Interval(1) for _ in i.shape), i.element_type)
            for i in exact
        ]
        unknown = [TensorInfo(None, info.element_type) for info in exact]
        for inputs in (exact, dynamic, unknown):
            try:
                outputs = made.infer(inputs, Context())
            except DeconvError:
                assert inputs is not exact
                continue
            for port, info in enumerate(outputs):
                for axis in range(len(info.shape or ())):
                    explained = made.explain(inputs, Context(), port, axis)
                    assert explained is None or explained.strip()
            count = made.work(inputs, outputs[0])
            assert count is None or count >= 0
