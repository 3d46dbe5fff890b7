"""Measure the errors of the compiled elementwise functions against f64.

    python tests/kernels/ulps.py [FUNCTION ...]

measures them over all 2^32 arguments and compares them with BOUNDS, which
docs/numerics.md states and `test_pointwise.py` holds on a sample.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erf, expit, log1p

from deconv_ir.kernels.pointwise import PointwiseExpression

F32 = np.dtype(np.float32)
_PIECE = 1 << 22
_ALL = 1 << 32
_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST_UNIT = 2.0**-142


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + log1p(np.exp(-np.abs(x)))


def _gelu_tanh(x: Any) -> Any:
    return x * expit(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": expit,
    "softplus": _softplus,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "swish": lambda x: x * expit(x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": _gelu_tanh,
    "sqrt": np.sqrt,
    "hswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "softsign": lambda x: x / (1 + np.abs(x)),
}

BOUNDS = {
    "exp": 1.5,
    "log": 1.5,
    "sin": 2.0,
    "cos": 2.0,
    "tanh": 2.0,
    "erf": 6.0,
    "sigmoid": 3.0,
    "softplus": 2.0,
    "mish": 5.0,
    "swish": 4.0,
    "elu": 1.5,
    "gelu": 4.0,
    "gelu_tanh": 3.0,
    "sqrt": 0.5,
    "hswish": 1.5,
    "hsigmoid": 1.0,
    "softsign": 1.5,
}
"""Largest error in units in the last place of the result; of 2^-142 at least."""

OF_ARGUMENT = frozenset({"gelu", "gelu_tanh", "hswish", "hsigmoid"})
"""Functions whose errors are in units in the last place of the larger of argument and result."""


def function(name: str) -> Callable[[Any], Any]:
    """Return a compiled function that takes an array."""
    expression = PointwiseExpression()
    immediates = (1.0,) if name == "elu" else ()
    value = expression.apply(name, expression.input(F32), immediates=immediates)
    assert value is not None
    program = expression.program(value, F32)
    assert program is not None
    run = program.run

    def call(x: Any) -> Any:
        out = np.empty_like(x)
        run([x], out)
        return out

    return call


def errors(name: str, x: Any, found: Any) -> Any:
    """Return the errors in units in the last place; infinite where only one is not finite."""
    with np.errstate(all="ignore"):
        exact = EXACT[name](x.astype(np.float64))
        rounded = exact.astype(np.float32)
        scale = np.maximum(np.abs(rounded), np.abs(x)) if name in OF_ARGUMENT else rounded
        scale = np.minimum(np.abs(scale.astype(np.float64)), _LARGEST)
        # Subnormal exponentials have fewer bits.
        unit = np.maximum(np.ldexp(1.0, np.frexp(scale)[1] - 24), _SMALLEST_UNIT)
        off = np.abs(found.astype(np.float64) - exact) / unit
        # Beyond the largest number, that number and infinity are both accepted.
        off = np.where(found == rounded, np.fmin(off, 0.5), off)
    both = np.isnan(found) & np.isnan(exact)
    return np.where(both, 0, np.where(np.isnan(off), np.inf, off))


def arguments(first: int, count: int, step: int = 1) -> Any:
    """Return the numbers whose bit patterns are first, first + step, ..."""
    bits = first + step * np.arange(count, dtype=np.uint64)
    return bits[bits < _ALL].astype(np.uint32).view(np.float32)


def main() -> int:
    """Measure the errors over all arguments."""
    worst = 0
    for name in sys.argv[1:] or EXACT:
        call, most, at = function(name), 0.0, 0.0
        for first in range(0, _ALL, _PIECE):
            x = arguments(first, _PIECE)
            off = errors(name, x, call(x))
            if off.max() > most:
                most, at = float(off.max()), float(x[off.argmax()])
        print(f"{name:10} {most:8.3f} at {at!r} (bound {BOUNDS[name]})", flush=True)
        worst |= most > BOUNDS[name]
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
