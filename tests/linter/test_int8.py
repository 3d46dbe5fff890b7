"""Which layers OpenVINO's CPU plugin computes in integers.

The networks and the answers are those of tools/check_int8.py, which compares them with the graphs
that OpenVINO 2026.4 executes; each condition is one that its sources name (docs/int8.md).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from check_int8 import answer_of
from int8_networks import (
    ASYMMETRIC,
    CONVOLUTION,
    DECONVOLUTION,
    DEPTHWISE,
    GROUPED,
    GROUPED_DECONVOLUTION,
    PER_CHANNEL,
    SIGNED,
    Case,
    Fake,
    Scaled,
    write,
)
from support import IR

from deconv_ir.cpu_plugin.conditions import Int8Answer, Int8Condition
from deconv_ir.cpu_plugin.int8 import Int8Layers
from deconv_ir.formats import parse_bytes
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.linter.engine import check_file, open_context
from deconv_ir.linter.options import choose

ROOT = Path(__file__).parents[2]
RISING = tuple(1 + i / 31 for i in range(32))
ZEROS = (0.0,) * 32

INTEGERS = [
    CONVOLUTION,
    CONVOLUTION._replace(data=ASYMMETRIC),
    CONVOLUTION._replace(weights=PER_CHANNEL),
    CONVOLUTION._replace(weights=Scaled()),
    CONVOLUTION._replace(filter_path=("Parameter",)),
    CONVOLUTION._replace(before=("MaxPool",)),
    CONVOLUTION._replace(before=("Concat of others",)),
    CONVOLUTION._replace(rank=3, dynamic="all"),
    DECONVOLUTION._replace(data=SIGNED),
    DECONVOLUTION._replace(data=SIGNED, before=("ReLU",)),
    DECONVOLUTION._replace(kernel=(5, 3), stride=(4, 2)),
    DECONVOLUTION._replace(data=Scaled("i8", axis=None, quantized=True)),
    DECONVOLUTION._replace(output_shape="constant", after=("Add", "ReLU")),
    GROUPED._replace(filter_path=("Reshape",), weights=PER_CHANNEL),
    DEPTHWISE._replace(data=Fake(ZEROS, RISING)),
]
F32 = [
    (Int8Condition.OPERATION, GROUPED_DECONVOLUTION),
    (Int8Condition.NETWORK, CONVOLUTION._replace(data=Scaled("u8", axis=None), weights=Scaled())),
    (Int8Condition.DATA_QUANTIZED, CONVOLUTION._replace(data=None)),
    (Int8Condition.DATA_QUANTIZED, CONVOLUTION._replace(before=("Sigmoid",))),
    (Int8Condition.DATA_QUANTIZED, GROUPED._replace(before=("Concat of unquantised",))),
    (Int8Condition.DATA_LEVELS, CONVOLUTION._replace(data=Fake(levels=100))),
    (Int8Condition.DATA_RANGES, CONVOLUTION._replace(data=Fake(constant=False))),
    (Int8Condition.DATA_AXIS, DEPTHWISE._replace(data=Fake(ZEROS[:9], RISING[:9], axis=2))),
    (Int8Condition.DATA_SCALES, CONVOLUTION._replace(data=Fake(ZEROS, RISING))),
    (Int8Condition.DATA_SCALES, GROUPED._replace(data=Fake(ZEROS, RISING))),
    (Int8Condition.DATA_SCALES, CONVOLUTION._replace(before=("Concat of much larger",))),
    (Int8Condition.DATA_ZERO_POINT, DECONVOLUTION._replace(data=ASYMMETRIC)),
    (Int8Condition.DATA_ZERO_POINT, CONVOLUTION._replace(data=Fake(0.5, 2.0))),
    (Int8Condition.DATA_ZERO_POINT, CONVOLUTION._replace(data=SIGNED, before=("ReLU",))),
    (Int8Condition.DATA_ZERO_POINT, CONVOLUTION._replace(data=Scaled("i8", 3, axis=None))),
    (Int8Condition.DATA_ZERO_POINT, DECONVOLUTION._replace(data=SIGNED, others=("Convolution",))),
    (Int8Condition.DATA_ZERO_POINT, DEPTHWISE._replace(rank=5, data=ASYMMETRIC)),
    (Int8Condition.WEIGHTS_QUANTIZED, DECONVOLUTION._replace(weights=None)),
    (Int8Condition.WEIGHTS_CONSTANT, DECONVOLUTION._replace(filter_path=("Parameter",))),
    (Int8Condition.WEIGHTS_CONSTANT, CONVOLUTION._replace(weights=Scaled(constant=False))),
    (
        Int8Condition.WEIGHTS_CONSTANT,
        CONVOLUTION._replace(data=SIGNED, filter_path=("Parameter",)),
    ),
    (Int8Condition.WEIGHTS_LEVELS, CONVOLUTION._replace(weights=Fake(-0.8, 0.7, 16))),
    (Int8Condition.WEIGHTS_RANGES, GROUPED._replace(weights=Fake(-1.0, 1.0, 255, constant=False))),
    (Int8Condition.WEIGHTS_TYPE, DECONVOLUTION._replace(weights=Scaled("u8"))),
    (Int8Condition.WEIGHTS_AXIS, DECONVOLUTION._replace(weights=Scaled(axis=0))),
    (Int8Condition.WEIGHTS_AXIS, CONVOLUTION._replace(weights=Fake(-1.0, 1.0, 255, axis=(0, 1)))),
    (Int8Condition.WEIGHTS_ZERO_POINT, CONVOLUTION._replace(weights=Scaled(zero_point=2))),
    (Int8Condition.WEIGHTS_ZERO_POINT, DECONVOLUTION._replace(weights=Fake(-1.0, 2.0, 255))),
    (
        Int8Condition.OUTPUT_SHAPE,
        DECONVOLUTION._replace(output_shape="computed", dynamic="spatial"),
    ),
    (Int8Condition.LAST_STRIDE, DECONVOLUTION._replace(kernel=(4,), stride=(4,))),
    (Int8Condition.KERNEL, DECONVOLUTION._replace(kernel=(1, 3))),
]


def answer(case: Case, folder: Path) -> Int8Answer | None:
    return answer_of(write(case).save(folder))


@pytest.mark.parametrize("case", INTEGERS, ids=str)
def test_in_integers(case: Case, tmp_path: Path) -> None:
    found = answer(case, tmp_path)
    assert found is not None
    assert found.integers, found


@pytest.mark.parametrize(("condition", "case"), F32, ids=str)
def test_first_condition(condition: Int8Condition, case: Case, tmp_path: Path) -> None:
    found = answer(case, tmp_path)
    assert found is not None
    assert (found.integers, found.condition) == (False, condition)


def test_every_condition_has_a_case_and_a_row_in_the_documentation() -> None:
    # The plugin compiles no layer of another rank.
    assert {condition for condition, _ in F32} == set(Int8Condition) - {Int8Condition.RANK}
    page = (ROOT / "docs/int8.md").read_text("utf-8")
    for condition in Int8Condition:
        assert f"| {condition.text} | `{condition.source}` |" in page


def test_rank(tmp_path: Path) -> None:
    found = answer(CONVOLUTION._replace(rank=6), tmp_path)
    assert found is not None
    assert found.condition is Int8Condition.RANK


@pytest.mark.parametrize(
    "case",
    [
        CONVOLUTION._replace(data=None, weights=None),
        CONVOLUTION._replace(data=None, weights=None, filter_path=("f16",)),
    ],
    ids=str,
)
def test_layers_without_quantised_inputs_have_no_answer(case: Case, tmp_path: Path) -> None:
    assert answer(case, tmp_path) is None


@pytest.mark.parametrize(
    "case",
    [
        CONVOLUTION._replace(before=("Add",)),
        CONVOLUTION._replace(data=Fake(0.0, RISING)),
        DEPTHWISE._replace(data=Fake(ZEROS, RISING), before=("Transpose",)),
        CONVOLUTION._replace(data=ASYMMETRIC, before=("SpaceToBatch",)),
    ],
    ids=str,
)
def test_what_is_not_known_is_said(case: Case, tmp_path: Path) -> None:
    found = answer(case, tmp_path)
    assert found is not None
    assert found.integers is None
    assert str(found).startswith("not known")


class TestRule:
    def codes(self, ir: IR, folder: Path, *select: str) -> list[tuple[str, str]]:
        found = check_file(ir.save(folder), choose(select=select)).findings
        return [(f.code, f.message) for f in found]

    def test_the_layer_and_the_cause_are_named(self, tmp_path: Path) -> None:
        ir = write(DECONVOLUTION._replace(data=SIGNED, others=("Convolution",)))
        path = ir.save(tmp_path)
        (found,) = check_file(path, choose(select=("IR608",))).findings
        assert found.layer is not None
        assert "'the_layer'" in found.layer
        assert "zero point 128 of FakeQuantize 'layer5'" in found.message
        assert "Convolution 'other" in found.message

    def test_layers_in_integers_have_no_finding(self, tmp_path: Path) -> None:
        assert self.codes(write(DECONVOLUTION), tmp_path, "IR608", "IR609") == []

    def test_it_is_information(self, tmp_path: Path) -> None:
        path = write(GROUPED_DECONVOLUTION).save(tmp_path)
        assert "IR608" not in {f.code for f in check_file(path, choose()).findings}

    @pytest.mark.parametrize(
        ("case", "count"),
        [
            (CONVOLUTION._replace(data=Fake(0.0, RISING)), 1),
            (DEPTHWISE._replace(data=Fake(ZEROS, 1.0)), 1),
            (DEPTHWISE._replace(data=Fake(ZEROS, RISING)), 0),
            (CONVOLUTION._replace(data=Fake(0.0, RISING, output=(0.0, 2.55))), 0),
            # Nothing computes in integers what it quantises.
            (CONVOLUTION._replace(data=Fake(0.0, RISING), weights=None), 0),
            (GROUPED_DECONVOLUTION._replace(data=Fake(0.0, RISING)), 0),
        ],
        ids=str,
    )
    def test_misread_ranges(self, case: Case, count: int, tmp_path: Path) -> None:
        assert len(self.codes(write(case), tmp_path, "IR609")) == count


class TestHostile:
    """Networks that no tool writes: answers are given, or are not known, without an error."""

    def layers(self, ir: IR, folder: Path) -> list[Int8Answer | None]:
        path = ir.save(folder)
        parsed = parse_bytes(path.read_bytes(), "m.xml", DEFAULT_LIMITS)
        context = open_context(parsed, choose(), path.with_suffix(".bin"))
        outputs = [context.outputs(i) for i in range(len(context.graph.layers))]
        found = Int8Layers(context.graph, outputs, context.inference_context)
        return [found.answer(index) for index in range(len(outputs))]

    @pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38, 0.0])
    def test_odd_ranges(self, number: float, tmp_path: Path) -> None:
        for case in (
            CONVOLUTION._replace(data=Fake(0.0, number)),
            CONVOLUTION._replace(weights=Fake(-number, number, 255)),
            DECONVOLUTION._replace(data=Fake(number, number)),
        ):
            found = answer(case, tmp_path)
            assert found is not None

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text.replace('levels="256"', 'levels="lots"'),
            lambda text: text.replace('levels="256"', ""),
            lambda text: text.replace('strides="2,2"', 'strides="2"'),
            lambda text: text.replace('strides="2,2"', 'strides="two"'),
            lambda text: text.replace('to-port="4"', 'to-port="9"'),
            lambda text: text.replace('from-layer="0"', 'from-layer="5"'),
            lambda text: text.replace('offset="0"', 'offset="999999999"'),
            lambda text: text.replace('axis="2"', 'axis="many"'),
        ],
    )
    def test_broken_files(self, change: Callable[[str], str], tmp_path: Path) -> None:
        ir: Any = write(DECONVOLUTION._replace(before=("Concat of others",)))
        text = ir.xml()
        changed = change(text)
        assert changed != text
        ir.xml = lambda: changed
        self.layers(ir, tmp_path)

    def test_many_concats_take_no_quadratic_time(self, tmp_path: Path) -> None:
        """A chain of 3000 Concats of different ranges, and a layer behind each."""
        ir = IR()
        x = ir.parameter("x", "1,2,9,9")
        ends = [[ir.const(np.float32(e)) for e in (-h, h, -h, h)] for h in (1, 2)]
        fakes = [ir.layer("FakeQuantize", [x, *e], {"levels": "256"}) for e in ends]
        at = fakes[0]
        for _ in range(3000):
            at = ir.layer("Concat", [at, fakes[1]], {"axis": "2"})
        ir.result(at)
        assert self.layers(ir, tmp_path) == [None] * len(ir.layers)
