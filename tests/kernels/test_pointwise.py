"""Compiled elementwise programs against the NumPy forms that they replace."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernels import ulps
from operation_forms import make
from support import batches

from deconv_ir.ir.operation import Context, Operation
from deconv_ir.kernels import get_threads, set_threads
from deconv_ir.kernels.pointwise import PointwiseExpression, PointwiseProgram
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.ops.values import actual

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built here"
)

F32 = np.dtype(np.float32)
TINY, LARGEST = float(np.finfo(F32).smallest_subnormal), float(np.finfo(F32).max)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, TINY, -TINY, 1e-40, LARGEST, -LARGEST, 0.5, 1.5,
           2.5, -0.5, -2.5, 1.0, -1.0, 3.0, -3.0, 6.0, 88.8, -88.8, 104.0, -104.0, 2.0**23, 1e30,
           200000.5, -1e-30]  # fmt: skip

# Inputs, and the largest difference from the NumPy form in units in the last place of the result
# or, where the form itself cancels, of the arguments.
EXACT = {
    "Add": 2, "Subtract": 2, "Multiply": 2, "Divide": 2, "Maximum": 2, "Minimum": 2,
    "SquaredDifference": 2, "Equal": 2, "NotEqual": 2, "Greater": 2,
    "GreaterEqual": 2, "Less": 2, "LessEqual": 2, "Abs": 1, "Negative": 1, "Sign": 1,
    "Floor": 1, "Ceiling": 1, "Round-5": 1, "Sqrt": 1, "ReLU": 1, "HSwish-4": 1, "HSigmoid-5": 1,
    "SoftSign-9": 1, "IsNaN-10": 1, "IsFinite-10": 1, "PReLU": 2,
}  # fmt: skip
CLOSE = {
    "Exp": 3, "Log": 3, "Sin": 3, "Cos": 3, "Tanh": 4, "Erf": 8, "Sigmoid": 5, "SoftPlus-4": 5,
    "Mish-4": 8, "Swish-4": 6, "Gelu-2": 8, "Gelu-7": 8,
}  # fmt: skip
WITH_ATTRIBUTES: list[tuple[str, dict[str, str], int]] = [
    ("Clamp", {"min": "-1.5", "max": "2.25"}, 0),
    ("Elu", {"alpha": "0.75"}, 8),
    ("Gelu-7", {"approximation_mode": "tanh"}, 8),
]


def compile_operation(operation: Operation, arrays: Sequence[Any]) -> PointwiseProgram | None:
    """Compile one operation for arrays like these."""
    expression = PointwiseExpression()
    operands = [expression.input(a.dtype) for a in arrays]
    value = operation.compile(expression, operands, list(map(actual, arrays)))
    if value is None:
        return None
    (info,) = operation.infer(list(map(actual, arrays)), Context())
    assert info.element_type is not None
    return expression.program(value, info.element_type.numpy())


def both(operation: Operation, arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Return the results of the program and of NumPy."""
    program = compile_operation(operation, arrays)
    assert program is not None, operation
    with np.errstate(all="ignore"):
        (expected,) = operation.execute(arrays, Context())
    found = np.full(expected.shape, 77, expected.dtype)
    program.run(arrays, found)
    assert found.dtype == program.dtype
    return found, expected


def assert_close(found: Any, expected: Any, units: float, scale: Any = 0.0) -> None:
    """Require equal NaN and infinities, and numbers within `units` in the last place."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    size = np.maximum(np.abs(expected), np.where(np.isfinite(scale), np.abs(scale), 0.0))[finite]
    unit = np.maximum(np.ldexp(1.0, np.frexp(size)[1] - 24), 2.0**-142)
    assert (np.abs(found[finite] - expected[finite]) <= units * unit).all()


def test_power_is_within_units_of_any_library() -> None:
    """The reference is NumPy's power on processors with AVX-512, and elsewhere the C library's."""
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)), F32)
    drawn = np.random.default_rng(1).standard_normal((5000, 2), np.float32) * 8
    found, expected = both(make("Power"), list(np.concatenate([pairs, drawn]).T.copy()))
    assert_close(found, expected, 3)


@pytest.mark.parametrize("kind", EXACT)
def test_operations_that_round_once_give_the_same_bits(kind: str) -> None:
    """Every pair of special values is tried, and normal ones; zeros have NumPy's signs."""
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)), F32)
    drawn = np.random.default_rng(1).standard_normal((5000, 2), np.float32) * 8
    table = np.concatenate([pairs, drawn])
    arrays = [np.ascontiguousarray(table[:, i]) for i in range(EXACT[kind])]
    found, expected = both(make(kind), arrays)
    np.testing.assert_array_equal(found, expected)
    # NumPy's vector and scalar code return different ones of two zeros.
    if kind not in ("Maximum", "Minimum", "ReLU", "HSwish-4", "HSigmoid-5") and found.dtype == F32:
        numbers = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def test_powers_are_those_of_float64_rounded() -> None:
    """NumPy's own f32 powers depend on the processor: with AVX-512 they are not the C library's."""
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)), F32)
    drawn = np.random.default_rng(1).standard_normal((5000, 2), np.float32) * 8
    table = np.concatenate([pairs, drawn, np.abs(drawn)])
    arrays = [np.ascontiguousarray(table[:, i]) for i in range(2)]
    found, _ = both(make("Power"), arrays)
    with np.errstate(all="ignore"):
        expected = np.power(*(a.astype(np.float64) for a in arrays)).astype(F32)
    assert_close(found, expected, 1)


def test_squares_are_products_wherever_they_stand() -> None:
    """Squares occur among other exponents, and as the only exponent of a whole array."""
    x = np.array(SPECIAL * 3, F32)
    squared = np.arange(len(x)) % 3 > 0
    mixed, _ = both(make("Power"), [x, np.where(squared, 2, 3).astype(F32)])
    alone, _ = both(make("Power"), [x, np.array([2], F32)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(alone, x * x)
        np.testing.assert_array_equal(mixed[squared], (x * x)[squared])
        assert_close(mixed[~squared], (x[~squared].astype(np.float64) ** 3).astype(F32), 1)


@pytest.mark.parametrize("kind", CLOSE)
def test_transcendental_functions_are_close(kind: str) -> None:
    drawn = np.random.default_rng(2).standard_normal(20000, np.float32) * 30
    x = np.concatenate([np.array(SPECIAL, F32), drawn, drawn / 100])
    found, expected = both(make(kind), [x])
    # The NumPy forms of these operations overflow or cancel in between.
    cancels = kind.partition("-")[0] in ("Gelu", "Swish", "Mish", "Sigmoid", "SoftPlus")
    assert_close(found, expected, CLOSE[kind], x if cancels else 0.0)


@pytest.mark.parametrize(("kind", "attributes", "units"), WITH_ATTRIBUTES)
def test_operations_with_attributes(kind: str, attributes: dict[str, str], units: int) -> None:
    drawn = np.random.default_rng(3).standard_normal(20000, np.float32) * 4
    x = np.concatenate([np.array(SPECIAL, F32), drawn])
    found, expected = both(make(kind, **attributes), [x])
    assert_close(found, expected, units, x)


@pytest.mark.parametrize("kind", ["Selu", "HardSigmoid", "Swish-4"])
def test_operations_with_scalar_inputs(kind: str) -> None:
    x = np.concatenate([np.array(SPECIAL, F32), np.linspace(-5, 5, 999, dtype=F32)])
    scalars = [np.array([1.25], F32), np.array(0.75, F32)]
    found, expected = both(make(kind), [x, *scalars[: 1 if kind == "Swish-4" else 2]])
    assert_close(found, expected, 8, x)


def test_select_picks_whatever_it_is_offered() -> None:
    condition = np.array([[True], [False], [True]])
    then, other = np.array(SPECIAL, F32), np.array(7, F32)
    found, expected = both(make("Select"), [condition, then, other])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["And", "Or", "Xor"])
def test_logical_operations(kind: str) -> None:
    a, b = np.array([[True], [False]]), np.array([False, True] * 9)
    found, expected = both(make(f"Logical{kind}"), [a, b])
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == bool


@pytest.mark.parametrize("to", ["f32", "f16", "bf16", "boolean"])
@pytest.mark.parametrize(
    "dtype", [F32, np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str
)
def test_conversions_round_to_nearest_even(to: str, dtype: np.dtype[Any]) -> None:
    bits = np.random.default_rng(4).integers(0, 1 << 8 * dtype.itemsize, 20000)
    x = bits.astype(f"u{dtype.itemsize}").view(dtype)
    found, expected = both(make("Convert", destination_type=to), [x])
    with np.errstate(invalid="ignore"):  # signalling NaNs, for which some processors raise a flag
        np.testing.assert_array_equal(found.astype(F32), expected.astype(F32))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize("kind", ["Add", "Multiply", "HSwish-4", "Sqrt", "Less"])
def test_narrow_floats_are_rounded_once(kind: str, dtype: np.dtype[Any]) -> None:
    draw = np.random.default_rng(5)
    arrays = [(draw.standard_normal((3, 700)) * 4).astype(dtype) for _ in range(EXACT[kind])]
    found, expected = both(make(kind), arrays)
    np.testing.assert_array_equal(found.astype(F32), expected.astype(F32))


def test_fake_quantize() -> None:
    draw = np.random.default_rng(6)
    x = np.concatenate([np.array(SPECIAL, F32), draw.standard_normal(5000, np.float32) * 3])
    x = np.stack([x, -x])[:, :, None]
    bounds = [
        np.array([-2, -1.5], F32),
        np.array([2, 1], F32),
        np.array([-1], F32),
        np.array(3, F32),
    ]
    arrays = [x, *(b.reshape(-1, 1, 1) if b.size == 2 else b for b in bounds)]
    found, expected = both(make("FakeQuantize", levels=16), arrays)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("levels", [2, 255, 65536])
@pytest.mark.parametrize("shape", [(1, 6, 1), (40,), (2, 1, 1)], ids=str)
def test_several_ranges_are_evaluated_in_real_numbers(shape: Any, levels: int) -> None:
    """The formula of FakeQuantize-1 in f64, rounded once; some ranges are reversed."""
    draw = np.random.default_rng(48)
    x = draw.standard_normal((2, 6, 40), np.float32)
    low = draw.uniform(-2, 0, shape).astype(F32)
    high = (low + draw.uniform(0.5, 3, shape)).astype(F32)
    low[..., :1], high[..., :1] = high[..., :1].copy(), low[..., :1].copy()
    ends = [low, high, low * np.float32(0.7), high * np.float32(1.3)]
    a, b, c, d = (end.astype(float) for end in ends)
    share = (x - a) / (b - a)
    # Numbers of f32 decide at the middle of two levels.
    middles = (np.floor(share * (levels - 1)) + 0.5) / (levels - 1) * (b - a) + a
    x[:, ::2] = middles.astype(F32)[:, ::2]
    place = (x - a) / (b - a) * (levels - 1)
    wide = np.rint(place) / (levels - 1) * (d - c) + c
    wide = np.where(x <= np.minimum(a, b), c, np.where(x > np.maximum(a, b), d, wide))
    certain = np.abs(place - np.floor(place) - 0.5) > 1e-9
    for found in both(make("FakeQuantize", levels=levels), [x, *ends]):
        np.testing.assert_array_max_ulp(found[certain], wide.astype(F32)[certain], 1)
        assert (found == wide.astype(F32))[certain].mean() > 0.99


def test_a_slope_of_each_channel() -> None:
    draw = np.random.default_rng(7)
    data = draw.standard_normal((2, 5, 3, 9), np.float32)
    found, expected = both(make("PReLU"), [data, draw.standard_normal(5, np.float32)])
    np.testing.assert_array_equal(found, expected)


def drawn_view(draw: np.random.Generator, shape: Sequence[int]) -> Any:
    """Return an array that broadcasts to a shape: any order of axes, steps and directions."""
    kept = tuple(d if draw.random() < 0.7 else 1 for d in shape)
    kept = kept[int(draw.integers(0, len(kept) + 1)) if draw.random() < 0.2 else 0 :]
    order = draw.permutation(len(kept))
    steps = draw.choice([1, 2, -1], len(kept))
    made = draw.standard_normal([kept[i] * abs(steps[i]) + 1 for i in order], np.float32)
    view = made.transpose(np.argsort(order))
    parts = [slice(0, k * s, s) if s > 0 else slice(k - 1, None, s) if k else slice(0, 0)
             for k, s in zip(kept, steps, strict=True)]  # fmt: skip
    return view[tuple(parts)]


@pytest.mark.parametrize("seeds", batches(150, 50), ids=str)
def test_shapes_strides_and_broadcasts(seeds: range) -> None:
    """A tree of three inputs, with an output whose axes are in any order in memory."""
    for seed in seeds:
        draw = np.random.default_rng(seed)
        extents = (
            [0, 1, 2, 3, 7, 8, 9, 16, 33, 70, 600] if seed % 10 == 0 else [1, 2, 3, 5, 8, 17, 70]
        )
        shape = tuple(int(d) for d in draw.choice(extents, draw.integers(0, 5)))
        while np.prod(shape, dtype=np.int64) > 300_000:
            shape = shape[1:]
        a, b, c = (drawn_view(draw, shape) for _ in range(3))
        expression = PointwiseExpression()
        x, y, z = (expression.input(F32) for _ in range(3))
        product = expression.apply("multiply", x, y)
        value = expression.apply("subtract", expression.apply("add", product, z), product)
        assert value is not None
        program = expression.program(value, F32)
        assert program is not None
        order = draw.permutation(len(shape))
        out = np.full([shape[i] for i in order], np.nan, F32).transpose(np.argsort(order))
        if draw.random() < 0.2 and out.ndim:
            out = np.full((*shape[:-1], shape[-1] * 2), np.nan, F32)[..., ::2]
        program.run([a, b, c], out)
        np.testing.assert_array_equal(out, np.broadcast_to(a * b + c - a * b, shape))


def test_a_transposed_input_is_turned_first() -> None:
    data = np.random.default_rng(0).standard_normal((2, 70, 300)).astype(F32)
    expression = PointwiseExpression()
    x, y = expression.input(data.dtype), expression.input(data.dtype)
    program = expression.program(expression.apply("add", x, y), data.dtype)  # type: ignore[arg-type]
    assert program is not None
    out, turned = np.empty((2, 300, 70), F32), data.swapaxes(1, 2)
    program.run([turned, turned[:, :, :1]], out)
    np.testing.assert_array_equal(out, turned + turned[:, :, :1])


def test_elements_that_are_not_aligned() -> None:
    x = np.zeros(4 * 100 + 1, np.uint8)[1:].view(np.float32)
    x[:] = np.arange(100)
    found, expected = both(make("Add"), [x, x])
    np.testing.assert_array_equal(found, expected)


def test_results_do_not_depend_on_threads_addresses_and_neighbours() -> None:
    """Equal arguments give equal bits at any address, on any number of threads."""
    x = np.random.default_rng(8).standard_normal(300_001, np.float32) * 20
    expression = PointwiseExpression()
    value: int | None = expression.input(F32)
    for name in ("tanh", "exp", "mish", "sin", "softplus", "gelu"):
        value = expression.apply(name, value)
    assert value is not None
    program = expression.program(value, F32)
    assert program is not None
    before = get_threads()
    whole = np.empty_like(x)
    try:
        set_threads(1)
        program.run([x], whole)
        set_threads(2)
        again = np.empty_like(x)
        program.run([x], again)
    finally:
        set_threads(before)
    np.testing.assert_array_equal(again.view(np.int32), whole.view(np.int32))
    part = np.empty_like(x[1003:5008])
    program.run([x[1003:5008]], part)
    np.testing.assert_array_equal(part.view(np.int32), whole[1003:5008].view(np.int32))


def test_an_input_is_overwritten() -> None:
    x = np.random.default_rng(9).standard_normal((7, 1001), np.float32)
    y = np.float32(3) * np.ones((7, 1), np.float32)
    expression = PointwiseExpression()
    a, b = expression.input(F32), expression.input(F32)
    value = expression.apply("multiply", expression.apply("add", a, b), a)
    assert value is not None
    program = expression.program(value, F32)
    assert program is not None
    expected = (x + y) * x
    program.run([x, y], x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("name", ulps.EXACT)
def test_errors_stay_within_the_documented_bounds(name: str) -> None:
    """On a sample of all arguments; ``python tests/kernels/ulps.py`` measures over all of them."""
    call = ulps.function(name)
    for x in (ulps.arguments(12345, 1 << 18, 16384), np.array(SPECIAL, F32)):
        assert ulps.errors(name, x, call(x)).max() <= ulps.BOUNDS[name]


def test_an_expression_that_is_too_large_is_not_compiled() -> None:
    expression = PointwiseExpression()
    values = [expression.input(F32) for _ in range(9)]
    total = values[0]
    for value in values[1:]:
        total = expression.apply("add", total, value) or 0
    assert expression.program(total, F32) is None


def test_c_refuses_what_python_would_never_pass() -> None:
    module = compiled_module()
    assert module is not None
    how = {"isa": 0, "output": 0}
    one = interface.input_fields(element=0, trailing=0)
    code = {"operation": 0, "out": 1, "operand": 0, "second": 0, "third": 0}
    code |= {"immediate": 0.0, "second_immediate": 0.0}
    copy = interface.instruction_fields(**code)

    def make(inputs: bytes = one, constants: int = 0, code: bytes = copy, **change: int) -> Any:
        numbers = np.ones(constants).tobytes()
        return module.Program(inputs, numbers, code, interface.program_fields(**how | change))

    for change in ({"operation": 999}, {"out": 0}, {"operand": 2}, {"third": 1 << 32},
                   {"out": 99}):  # fmt: skip
        with pytest.raises(ValueError, match="invalid instruction"):
            make(code=interface.instruction_fields(**code | change))
    for change in ({"element": 9}, {"element": -1}, {"trailing": -1}, {"trailing": 9}):
        with pytest.raises(ValueError, match="invalid input"):
            make(interface.input_fields(**{"element": 0, "trailing": 0} | change))
    for change in ({"isa": 99}, {"isa": -1}, {"output": 99}, {"output": -1}):
        with pytest.raises(ValueError, match="invalid program"):
            make(**change)
    for arguments in ({"inputs": one * 9}, {"constants": 17}, {"code": copy * 65}):
        with pytest.raises(ValueError, match="too many"):
            make(**arguments)
    with pytest.raises(ValueError, match="no instructions"):
        make(code=b"")
    for arguments in ({"inputs": one[:-1]}, {"code": copy + b"."}):
        with pytest.raises(ValueError, match="bytes of fields where"):
            make(**arguments)
    program = make()
    x = np.zeros((2, 3), np.float32)
    wide, deep = x.astype(np.float64), np.zeros((1,) * 9, np.float32)
    for inputs, out in (([], x), ([x, x], x), ([x[:, :2]], x), ([wide], x), ([x], wide),
                        ([x[None]], x), ([deep], deep)):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            program.run(inputs, out, 1)
    with pytest.raises((ValueError, BufferError)):
        program.run([x], np.broadcast_to(np.float32(0), (2, 3)), 1)
