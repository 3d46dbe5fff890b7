"""MatMul with weights of four bits, as OpenVINO's tools compress them, against their definition.

The weights are Convert, Subtract, Multiply, Reshape and Convert of a constant: each layer rounds to
its own type (Convert-1, Subtract-1 and Multiply-1).  The oracle computes them in NumPy, and the
product in f64.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from kernels.cases import ISAS
from support import IR

import deconv_ir
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.ops.constants.constant import NF4
from deconv_ir.ops.constants.packing import pack


class Weights(NamedTuple):
    """Compressed weights of [columns, terms]."""

    element_type: str = "u4"
    group: int | None = None
    """Terms of a group with its own scale; None: all."""
    zero: str = ""
    """'' for none, 'one' for all columns, 'each' for each group."""
    dtype: str = "f16"
    columns: int = 48
    terms: int = 192
    transposed: bool = True
    swapped: bool = False
    """Whether the scale is the first operand."""


CASES = {
    "u4": Weights(),
    "u4-zero": Weights(zero="each"),
    "u4-one-zero": Weights(zero="one", dtype="f32"),
    "u4-groups": Weights(group=64, zero="each"),
    "u4-small-groups": Weights(group=32, zero="each", dtype="f32", swapped=True),
    "i4": Weights("i4", dtype="f32"),
    "i4-groups": Weights("i4", group=96),
    "i4-zero": Weights("i4", group=64, zero="each"),
    "nf4": Weights("nf4"),
    "nf4-groups": Weights("nf4", group=64, dtype="f32"),
    # Forms whose codes are not looked up.
    "odd-groups": Weights(group=24, zero="each"),
    "odd-terms": Weights(terms=75, columns=33),
    "not-transposed": Weights(transposed=False, zero="one"),
    "i8": Weights("i8", zero="each"),
    "u2": Weights("u2", zero="one"),
}
RNG = np.random.default_rng(5)


def build(weights: Weights, rows: str, activation: str, folder: Path) -> tuple[Path, Any]:
    """Write x * W^T + bias; return the file, and W by NumPy's arithmetic."""
    kind, dtype = parse_element_type(weights.element_type), {"f16": "f2", "f32": "f4"}
    n, k, group = weights.columns, weights.terms, weights.group or weights.terms
    shape = (n, k // group, group) if weights.group else (n, k)
    if not weights.transposed:
        shape = (k, n)
    outer = (*shape[:-1], 1) if weights.transposed else (1, n)
    precision = weights.dtype.upper()
    ir, own = IR(), np.dtype(dtype[weights.dtype])
    x = ir.parameter("x", f"{rows},{k}")

    def codes(extents: tuple[int, ...]) -> Any:
        if weights.element_type == "nf4":
            return np.array(NF4, np.float32)[RNG.integers(0, 16, extents)]
        low = -(2 ** (kind.bits - 1)) if kind.kind == "int" else 0
        return RNG.integers(low, low + 2**kind.bits, extents).astype(kind.numpy())

    def constant(array: Any) -> Any:
        dims = ",".join(map(str, array.shape))
        raw = ir.raw_const(pack(array, kind), weights.element_type, array.shape)
        to = {"destination_type": weights.dtype}
        return ir.layer("Convert", [raw], to, outputs=(dims,), precision=precision)

    def named(extents: tuple[int, ...]) -> str:
        return ",".join(map(str, extents))

    q = codes(shape)
    at, w = constant(q), q.astype(own)
    if weights.zero:
        z = codes(outer if weights.zero == "each" else (1,) * len(outer))
        operands = [at, constant(z)]
        at = ir.layer(
            "Subtract", operands, outputs=(named(shape),), precision=weights.dtype.upper()
        )
        w = w - z.astype(own)
    s = (RNG.uniform(0.01, 0.5, outer) / 2 ** (kind.bits - 4)).astype(own)
    operands = [ir.const(s), at] if weights.swapped else [at, ir.const(s)]
    at = ir.layer("Multiply", operands, outputs=(named(shape),), precision=precision)
    w = w * s
    flat = (n, k) if weights.transposed else (k, n)
    if weights.group:
        target = ir.const(np.array(flat, np.int64))
        at = ir.layer(
            "Reshape", [at, target], {"special_zero": "false"}, outputs=(named(flat),),
            precision=precision,
        )  # fmt: skip
    if weights.dtype == "f16":
        at = ir.layer("Convert", [at], {"destination_type": "f32"}, outputs=(named(flat),))
    turned = {"transpose_a": "false", "transpose_b": str(weights.transposed).lower()}
    out = f"{rows},{n}"
    y = ir.layer("MatMul", [x, at], turned, outputs=(out,))
    bias = RNG.standard_normal((1,) * rows.count(",") + (1, n)).astype(np.float32)
    y = ir.layer("Add", [y, ir.const(bias)], outputs=(out,))
    if activation:
        y = ir.layer(activation, [y], outputs=(out,), version="opset4")
    ir.result(y)
    w = w.reshape(flat).astype(np.float64)
    return ir.save(folder), (w.T if weights.transposed else w, bias)


def activated(name: str, values: Any) -> Any:
    return {"": lambda v: v, "ReLU": lambda v: np.maximum(v, 0), "Mish": mish}[name](values)


def mish(values: Any) -> Any:
    return values * np.tanh(np.logaddexp(0, values))


@pytest.mark.parametrize("name", CASES)
def test_few_and_many_rows(name: str, tmp_path: Path) -> None:
    for rows, activation in (("1", ""), ("2,2", "ReLU"), ("3", "Mish"), ("9", "ReLU")):
        file, (w, bias) = build(CASES[name], rows, activation, tmp_path)
        model = deconv_ir.load(file, warn=False)
        x = RNG.standard_normal((*map(int, rows.split(",")), w.shape[0])).astype(np.float32)
        expected = activated(activation, x.astype(np.float64) @ w + bias)
        (found,) = model.run(x).values()
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-4)
        (again,) = model.run(x).values()
        np.testing.assert_array_equal(again, found)


@pytest.mark.skipif(
    not compiled_module() or isa_number() == 0, reason="no vectors here look codes up"
)
def test_rows_are_multiplied_by_codes_as_they_are_in_the_file(tmp_path: Path) -> None:
    for case in list(CASES.values())[:10]:
        weights = case._replace(columns=1024, terms=768)
        file, _ = build(weights, "1", "", tmp_path)
        model = deconv_ir.load(file, warn=False)
        kept = model.bind([np.ones((1, 768), np.float32)]).plan.weight_bytes
        # A byte holds two codes; a scale and a zero point are 4 bytes each, as is the bias.
        groups = 768 // (weights.group or 768)
        assert kept <= 1024 * 768 // 2 + 1024 * groups * 8 + 1024 * 4 + 64


@pytest.mark.skipif(not compiled_module(), reason="the compiled kernel was not built here")
@pytest.mark.parametrize("isa", range(len(ISAS)))
def test_every_instruction_set(isa: int) -> None:
    module = compiled_module()
    for rows, columns, terms, group, halves in (
        (1, 3, 32, 32, 0), (2, 8, 96, 32, 1), (5, 33, 640, 320, 0), (16, 7, 1088, 64, 1),
        (17, 4, 544, 544, 1), (31, 21, 512, 256, 0),
    ):  # fmt: skip
        x = RNG.standard_normal((rows, terms)).astype(np.float32)
        q = RNG.integers(0, 16, (columns, terms)).astype(np.uint8)
        base = RNG.permutation(16).astype(np.float32)
        scales, zeros = RNG.integers(1, 99, (2, columns, terms // group)).astype(np.float32) / 64
        w = (base[q] - zeros.repeat(group, 1)) * scales.repeat(group, 1)
        w = w.astype(np.float16) if halves else w
        bias, out = RNG.standard_normal(columns).astype(np.float32), np.empty((rows, columns), "f4")
        codes = q[:, ::2] | q[:, 1::2] << 4
        expected = x.astype(np.float64) @ w.astype(np.float64).T
        for given in (None, bias):
            for threads in (1, 3):
                fields = interface.multiply_codes_fields(isa=isa, halves=halves, threads=threads)
                module.multiply_codes(x, codes, base, scales, zeros, out, given, fields)
                total = expected + (0 if given is None else given)
                np.testing.assert_allclose(out, total, rtol=1e-5, atol=2e-3)
        # A row has the same bits alone and among others.
        alone = np.empty((1, columns), np.float32)
        fields = interface.multiply_codes_fields(isa=isa, halves=halves, threads=1)
        module.multiply_codes(x[-1:], codes, base, scales, zeros, alone, bias, fields)
        np.testing.assert_array_equal(alone[0], out[-1])


@pytest.mark.skipif(not compiled_module(), reason="the compiled kernel was not built here")
def test_c_refuses_what_does_not_fit() -> None:
    module = compiled_module()
    f32 = np.float32
    good = {
        "x": np.zeros((2, 64), f32), "codes": np.zeros((3, 32), np.uint8),
        "base": np.zeros(16, f32), "scales": np.zeros((3, 2), f32), "zeros": np.zeros((3, 2), f32),
        "out": np.zeros((2, 3), f32), "bias": np.zeros(3, f32),
    }  # fmt: skip
    fields = {"isa": 0, "halves": 0, "threads": 1}
    module.multiply_codes(*good.values(), interface.multiply_codes_fields(**fields))
    for name, bad in (
        ("x", np.zeros((2, 63), f32)), ("x", np.zeros((0, 64), f32)), ("x", np.zeros(64, f32)),
        ("x", np.zeros((2, 64))), ("codes", np.zeros((3, 31), np.uint8)),
        ("codes", np.zeros((3, 16), np.uint16)), ("base", np.zeros(15, f32)),
        ("scales", np.zeros((3, 3), f32)), ("scales", np.zeros((3, 4), f32)),
        ("scales", np.zeros((2, 2), f32)), ("zeros", np.zeros((3, 1), f32)),
        ("out", np.zeros((2, 4), f32)), ("out", np.zeros((3, 2), f32)), ("bias", np.zeros(4, f32)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            module.multiply_codes(
                *(good | {name: bad}).values(), interface.multiply_codes_fields(**fields)
            )
    with pytest.raises(ValueError, match="do not fit"):
        module.multiply_codes(
            *good.values(), interface.multiply_codes_fields(**fields | {"isa": 9})
        )
