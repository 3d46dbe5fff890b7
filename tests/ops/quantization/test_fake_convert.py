"""FakeConvert-13 against the list of all numbers of the 8-bit types (OCP 8-bit specification)."""

from __future__ import annotations

import bisect

import numpy as np
import pytest

from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.operations import Context
from deconv_ir.ops.quantization.fake_convert import FakeConvert


def every_number(exponent: int, fraction: int, bias: int, largest: float) -> list[float]:
    """Return all finite numbers that are not negative, in order: their index is their code."""
    found = []
    for code in range(1 << (exponent + fraction)):
        power, rest = code >> fraction, code & ((1 << fraction) - 1)
        unit = 2.0 ** (max(power, 1) - bias - fraction)
        found.append(unit * (rest + ((1 << fraction) if power else 0)))
    return [value for value in found if value <= largest]


NUMBERS = {
    "f8e4m3": every_number(4, 3, 7, 448.0),
    "f8e5m2": every_number(5, 2, 15, 57344.0),
}


def nearest(value: float, numbers: list[float]) -> float:
    """Return the nearest number, on ties the one with an even code, at most the largest."""
    size = abs(value)
    at = bisect.bisect_left(numbers, size)
    if at == len(numbers):
        return float(np.copysign(numbers[-1], value))
    below = max(at - 1, 0)
    gaps = size - numbers[below], numbers[at] - size
    even = below if below % 2 == 0 else at
    chosen = even if gaps[0] == gaps[1] else below if gaps[0] < gaps[1] else at
    return float(np.copysign(numbers[chosen], value))


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(kind: str) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, 60)) * 10.0 ** rng.integers(-4, 4, (2, 60))
    data = data.astype(np.float16).astype(np.float32)  # so that all sums below are exact
    data[0, :5] = [17, 19, 464, 0, 1e6]  # halfway between two numbers, and the ends
    scale = np.array([[1.0], [2.0]], np.float32)
    operation = FakeConvert(destination_type=parse_element_type(kind))
    (found,) = operation.execute([data, scale], Context())
    expected = [
        [nearest(float(v) * s, NUMBERS[kind]) / s for v in row]
        for row, s in zip(data, (1.0, 2.0), strict=True)
    ]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    shift = np.array([[0.5], [-1.0]], np.float32)
    (moved,) = operation.execute([data, scale, shift], Context())
    again = [
        [(nearest(float(v) * s - z, NUMBERS[kind]) + z) / s for v in row]
        for row, s, z in zip(data, (1.0, 2.0), (0.5, -1.0), strict=True)
    ]
    np.testing.assert_allclose(moved, np.array(again, np.float32), rtol=1e-6)
