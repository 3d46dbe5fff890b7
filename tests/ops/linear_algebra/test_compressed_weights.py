"""MatMul and Gather with weights as OpenVINO's tools compress them, against their definition.

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
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Codes, Context, LazyTensor, TensorInfo, find_operation
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
    # Forms whose codes are not looked up: they are unpacked block by block.
    "odd-groups": Weights(group=24, zero="each"),
    "odd-terms": Weights(terms=75, columns=33),
    "not-transposed": Weights(transposed=False, zero="one"),
    "i8": Weights("i8", zero="each"),
    "i8-plain": Weights("i8", dtype="f32"),
    "u8-groups": Weights("u8", group=64, zero="each", dtype="f32"),
    "u2": Weights("u2", zero="one"),
    "f8e4m3": Weights("f8e4m3", dtype="f32", columns=50),
    "f8e5m2": Weights("f8e5m2", group=64),
    "f4e2m1": Weights("f4e2m1", group=32, dtype="f32"),
    "f16": Weights("f16", dtype="f32"),
    "f16-not-transposed": Weights("f16", dtype="f32", transposed=False, columns=70),
    "bf16": Weights("bf16", dtype="f32", terms=77),
}
RNG = np.random.default_rng(5)
NOTHING = Activation().fields()


def build(
    weights: Weights, rows: str, activation: str, folder: Path, picks: str = ""
) -> tuple[Path, Any]:
    """Write x * W^T + bias, or rows of W; return the file, and W by NumPy's arithmetic."""
    kind, dtype = parse_element_type(weights.element_type), {"f16": "f2", "f32": "f4"}
    n, k, group = weights.columns, weights.terms, weights.group or weights.terms
    shape = (n, k // group, group) if weights.group else (n, k)
    if not weights.transposed:
        shape = (k, n)
    outer = (*shape[:-1], 1) if weights.transposed else (1, n)
    precision = weights.dtype.upper()
    ir, own = IR(), np.dtype(dtype[weights.dtype])
    x = ir.parameter("x", picks or f"{rows},{k}", "i64" if picks else "f32")

    def codes(extents: tuple[int, ...]) -> Any:
        if weights.element_type == "nf4":
            return np.array(NF4, np.float32)[RNG.integers(0, 16, extents)]
        if kind.is_float:
            return RNG.standard_normal(extents).astype(kind.numpy())
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
    s = (RNG.uniform(0.01, 0.5, outer) / 2 ** (min(kind.bits, 8) - 4)).astype(own)
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
    if picks:
        axis = ir.const(np.array(0, np.int64))
        y = ir.layer(
            "Gather",
            [at, x, axis],
            {"batch_dims": "0"},
            outputs=(f"{picks},{k}",),
            version="opset8",
        )
        ir.result(y)
        return ir.save(folder), (w.reshape(flat).astype(np.float64).T, None)
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


@pytest.mark.skipif(not compiled_module(), reason="the compiled kernel was not built here")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", [1, 64])
def test_weights_stay_compressed(name: str, rows: int, tmp_path: Path) -> None:
    columns, terms = 1024, 768
    weights = CASES[name]._replace(columns=columns, terms=terms)
    file, _ = build(weights, str(rows), "", tmp_path)
    x = np.ones((rows, terms), np.float32)
    model = deconv_ir.load(file, warn=False)
    plan = model.bind([x]).plan
    # The file also has some integers of Reshape; two bits take four.
    stored = file.with_suffix(".bin").stat().st_size * (2 if name == "u2" else 1)
    assert plan.weight_bytes <= 1.2 * stored
    panels = 4 * 384 * (rows + 64 + 48) * deconv_ir.get_threads()
    assert plan.peak_bytes <= 1.2 * stored + plan.tensor_bytes + max(panels, 4 * terms * 8)
    profile = deconv_ir.Profile()
    model.run(x, profile=profile)
    assert model.bind([x]).plan.weight_bytes == plan.weight_bytes
    (row,) = (row for row in profile.layers if row.type.startswith("MatMul"))
    assert row.precision == f"f32 ({weights.element_type} weights)"


@pytest.mark.skipif(not compiled_module(), reason="the compiled kernel was not built here")
@pytest.mark.parametrize("isa", range(len(ISAS)))
def test_codes_of_every_instruction_set(isa: int) -> None:
    module = compiled_module()
    for rows, columns, terms, group, halves in (
        (1, 3, 32, 32, 0), (2, 8, 96, 32, 1), (5, 33, 640, 320, 0), (16, 7, 1088, 64, 1),
        (17, 4, 544, 544, 1), (31, 21, 512, 256, 0),
    ):  # fmt: skip
        x = RNG.standard_normal((rows, terms)).astype(np.float32)
        q = RNG.integers(0, 16, (columns, terms)).astype(np.uint8)
        base = RNG.permutation(16).astype(np.float32)
        scales, zeros = RNG.integers(1, 99, (2, columns, terms // group)).astype(np.float32) / 64
        zeros = zeros.astype(np.float16)
        w = (base[q] - zeros.astype(np.float32).repeat(group, 1)) * scales.repeat(group, 1)
        w = w.astype(np.float16) if halves else w
        bias, out = RNG.standard_normal(columns).astype(np.float32), np.empty((rows, columns), "f4")
        codes = q[:, ::2] | q[:, 1::2] << 4
        expected = x.astype(np.float64) @ w.astype(np.float64).T
        options = {"isa": isa, "halves": halves} | NOTHING
        for given in (None, bias):
            for threads in (1, 3):
                for looks_up in (0, 1):
                    fields = interface.multiply_codes_fields(
                        **options, looks_up=looks_up, threads=threads
                    )
                    out[...] = np.nan
                    module.multiply_codes(x, codes, base, scales, zeros, given, out, fields)
                    total = expected + (0 if given is None else given)
                    np.testing.assert_allclose(out, total, rtol=1e-5, atol=2e-3)
        # A row has the same bits alone and among others.
        alone = np.empty((1, columns), np.float32)
        fields = interface.multiply_codes_fields(**options, looks_up=1, threads=1)
        module.multiply_codes(x[-1:], codes, base, scales, zeros, bias, alone, fields)
        np.testing.assert_array_equal(alone[0], out[-1])


def numbers_of(form: str, raw: Any, table: Any) -> Any:
    if form == "4":
        return table[np.stack([raw & 15, raw >> 4], 2).reshape(len(raw), -1, 16)]
    if form == "TABLE":
        return table[raw]
    if form == "BF16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return (raw.view(np.int8) if form == "I8" else raw).astype(np.float32)


@pytest.mark.skipif(not compiled_module(), reason="the compiled kernel was not built here")
@pytest.mark.parametrize("isa", range(len(ISAS)))
@pytest.mark.parametrize("form", ["4", "U8", "I8", "TABLE", "F16", "BF16"])
def test_compressed_forms_of_every_instruction_set(isa: int, form: str) -> None:
    """Sums have the bits of those of unpacked weights, in the definition's order of roundings."""
    module, number = compiled_module(), getattr(interface, f"COMPRESSED_{form}")
    table = RNG.standard_normal(256).astype(np.float32)
    for rows, columns, terms, group, halves, scale_type in (
        (1, 16, 30, 30, 0, None), (2, 33, 300, 20, 1, "f2"), (17, 7, 513, 513, 0, "f4"),
        (40, 50, 64, 2, 0, "f2"),
    ):  # fmt: skip
        strips, bits = -(-columns // 16), 16 if form in ("F16", "BF16") else 8
        raw = RNG.integers(0, 256, (strips, -(-terms // 2) if form == "4" else terms, 16), np.uint8)
        if bits == 16:
            floats = RNG.standard_normal((strips, terms, 16)).astype(np.float32)
            raw = (
                floats.view(np.uint16)[..., 1::2].copy() if form == "BF16" else floats.astype("f2")
            )
        numbers = numbers_of(form, raw, table)[:, :terms]
        scales = zeros = None
        if scale_type is not None:
            scales = RNG.uniform(0.5, 1.5, (strips, terms // group, 16)).astype(scale_type)
            zeros = RNG.integers(0, 9, scales.shape).astype(np.float16)
            spread = [a.astype(np.float32).repeat(group, 1) for a in (zeros, scales)]
            numbers = (numbers - spread[0]) * spread[1]
            numbers = numbers.astype(np.float16).astype(np.float32) if halves else numbers
        w = numbers.swapaxes(0, 1).reshape(terms, -1)[:, :columns]
        x = RNG.standard_normal((rows, terms)).astype(np.float32)
        bias = RNG.standard_normal(columns).astype(np.float32)
        found, packed = np.empty((2, rows, columns), np.float32)
        fields = {"isa": isa, "form": number, "group": group, "halves": halves} | NOTHING
        module.multiply_compressed(
            x, raw, table, scales, zeros, bias, found,
            interface.multiply_compressed_fields(**fields, threads=2),
        )  # fmt: skip
        exact = x.astype(np.float64) @ w.astype(np.float64) + bias
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())
        plain = {"isa": isa, "is_packed": False, "pairs": False, "threads": 1} | NOTHING
        module.multiply(x, w, bias, packed, interface.multiply_fields(**plain))
        np.testing.assert_array_equal(found, packed)


EMBEDDINGS = {
    name: CASES[name] for name in ("u4", "u4-groups", "i4", "nf4-groups", "i8", "f16", "bf16", "u2")
}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_rows_of_embeddings(name: str, tmp_path: Path) -> None:
    file, (w, _) = build(CASES[name], "1", "", tmp_path, picks="2,3")
    model = deconv_ir.load(file, warn=False)
    picked = np.array([[0, -1, 5], [47, 5, 99]])  # Gather-8: from the end, and zeros
    rows = np.where(picked[..., None] < 48, w.T[picked.clip(max=47)], 0)
    (found,) = model.run(picked).values()
    np.testing.assert_array_equal(found, rows.astype(np.float32))
    stored = file.with_suffix(".bin").stat().st_size
    assert model.bind([picked]).plan.weight_bytes <= 1.2 * stored


@pytest.mark.parametrize("known", [False, True])
def test_a_tile_picks_parts_of_rows(known: bool) -> None:
    stored = RNG.integers(0, 256, (6, 8), np.uint8)
    codes = Codes(
        parse_element_type("u8"),
        lambda start, stop: stored.reshape(-1)[start:stop],
        lambda: np.arange(256, dtype=np.float32),
        (6, 8),
        scale=np.full((6, 1), 0.5, np.float32),
    )
    data = LazyTensor((6, 8), np.dtype(np.float32), lambda i, j: codes.read(i, j) / 2, codes=codes)
    gather, axis, picked = find_operation("Gather")(), np.array(0), np.array([3, 1, 5, 4])
    kernel = gather.prepare([data, None, axis], Context())
    assert kernel is not None
    (whole,) = kernel([None, picked, None])
    np.testing.assert_array_equal(whole, stored[picked] / 2)
    value = tuple(picked.tolist()) if known else None
    inputs = [TensorInfo((6, 8)), TensorInfo((4,), value=value), TensorInfo((), value=(0,))]
    tile = gather.tile([((1, 3), (2, 7))], inputs, [TensorInfo((4, 8))], Context())
    (part,) = kernel.tiled(tile.operation)([None, picked[1:3], None])
    np.testing.assert_array_equal(part, whole[1:3, 2:7])


@pytest.mark.skipif(not compiled_module(), reason="the compiled kernel was not built here")
def test_c_refuses_what_does_not_fit() -> None:
    module = compiled_module()
    f32 = np.float32
    good = {
        "x": np.zeros((2, 64), f32), "codes": np.zeros((3, 32), np.uint8),
        "base": np.zeros(16, f32), "scales": np.zeros((3, 2), f32), "zeros": np.zeros((3, 2), f32),
        "bias": np.zeros(3, f32), "out": np.zeros((2, 3), f32),
    }  # fmt: skip
    fields = {"isa": 0, "halves": 0, "looks_up": 1, "threads": 1} | NOTHING
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


@pytest.mark.skipif(not compiled_module(), reason="the compiled kernel was not built here")
def test_c_refuses_compressed_matrices_that_do_not_fit() -> None:
    module, f32 = compiled_module(), np.float32
    good = {
        "x": np.zeros((2, 64), f32), "codes": np.zeros((2, 64, 16), np.uint8), "table": None,
        "scales": np.zeros((2, 4, 16), f32), "zeros": np.zeros((2, 4, 16), np.float16),
        "bias": np.zeros(20, f32), "out": np.zeros((2, 20), f32),
    }  # fmt: skip
    fields = {"isa": 0, "form": interface.COMPRESSED_U8, "group": 16, "halves": 0, "threads": 1}
    pack_fields = interface.multiply_compressed_fields
    module.multiply_compressed(*good.values(), pack_fields(**fields | NOTHING))
    for name, bad in (
        ("x", np.zeros((2, 63), f32)), ("x", np.zeros(64, f32)), ("x", np.zeros((2, 64))),
        ("codes", np.zeros((2, 63, 16), np.uint8)), ("table", np.zeros(257, f32)),
        ("scales", np.zeros((2, 3, 16), f32)), ("zeros", np.zeros((2, 4, 16), np.uint8)),
        ("bias", np.zeros(19, f32)), ("out", np.zeros((3, 20), f32)),
        ("out", np.zeros((2, 40), f32)),
    ):  # fmt: skip
        given = (good | {name: bad}).values()
        with pytest.raises(ValueError, match="do not fit"):
            module.multiply_compressed(*given, pack_fields(**fields | NOTHING))
    for bad in ({"isa": 9}, {"form": 9}, {"form": -1}, {"group": 0}, {"group": 5}):
        with pytest.raises(ValueError, match="do not fit"):
            module.multiply_compressed(*good.values(), pack_fields(**fields | NOTHING | bad))
    # A table of too few numbers would be read beyond its end.
    for form, codes in (("TABLE", 64), ("4", 32)):
        given = (good | {"codes": np.zeros((2, codes, 16), np.uint8)}).values()
        number = getattr(interface, f"COMPRESSED_{form}")
        with pytest.raises(ValueError, match="do not fit"):
            module.multiply_compressed(*given, pack_fields(**fields | NOTHING | {"form": number}))
