"""Compiled LSTM and GRU against NumPy's cells, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from deconv_ir.kernels import recurrent, set_threads
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context, find_operation
from deconv_ir.ops.recurrent.recurrence import Direction, Recurrent

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built here"
)
# Sequences, time, inputs, hidden units.
SIZES = [(1, 1, 1, 1), (1, 7, 3, 16), (3, 5, 4, 17), (2, 9, 20, 33), (5, 3, 1, 48), (1, 0, 2, 3),
         (0, 4, 2, 3), (4, 2, 31, 100)]  # fmt: skip
DIRECTIONS = list(Direction)


def operation(kind: str, hidden: int, direction: Direction) -> Any:
    settings = {"linear_before_reset": True} if kind == "GRU" else {}
    made = find_operation(f"{kind}Sequence")
    return made(hidden_size=hidden, direction=direction, **settings)


def arrays(kind: str, sizes: Sequence[int], directions: int, seed: int = 0) -> list[Any]:
    """Return X, the states, the lengths, then W, R and B."""
    n, t, i, h = sizes
    rng = np.random.default_rng(seed)
    gates, rows = (4, 4 * h) if kind == "LSTM" else (3, 4 * h)

    def draw(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.7).astype(np.float32)

    states = [draw(n, directions, h) for _ in range(2 if kind == "LSTM" else 1)]
    weights = [draw(directions, gates * h, i), draw(directions, gates * h, h)]
    return [draw(n, t, i), *states, np.full(n, t), *weights, draw(directions, rows)]


def both(layer: Any, given: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the results of the prepared kernel and of NumPy's cell."""
    constants = [None] * (len(given) - 3) + given[-3:]
    kernel = layer.prepare(constants, Context())
    assert isinstance(kernel.packed, recurrent.PackedCells)
    found = kernel([*given[:-3], None, None, None])
    with np.errstate(all="ignore"):
        expected = Recurrent.run_whole(layer, given[0], given[1:-4], given[-3:], 1 << 20)
    return list(found), expected


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_all_sequences(kind: str, sizes: Sequence[int], direction: Direction) -> None:
    layer = operation(kind, sizes[3], direction)
    found, expected = both(layer, arrays(kind, sizes, layer.directions))
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=5e-6)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_numbers_that_are_not_usual(kind: str) -> None:
    layer = operation(kind, 20, Direction.FORWARD)
    given = arrays(kind, (6, 4, 5, 20), 1)
    for n, odd in enumerate((np.nan, np.inf, -np.inf, 1e-42, -0.0)):
        given[0][n, 1, 2] = odd
        given[1][n, 0, 3] = odd
    found, expected = both(layer, given)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=5e-6)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_bits_depend_on_a_sequence_alone(kind: str) -> None:
    """Threads, other sequences and the number of steps per product do not change any bit."""
    given = arrays(kind, (5, 12, 40, 300), 2)
    packed = recurrent.pack(*given[-3:])
    assert packed is not None

    def run(some: slice, at_once: int) -> list[Any]:
        x, first = given[0][some], [state[some] for state in given[1:-4]]
        return recurrent.recur(x, first, packed, bool, at_once)

    try:
        set_threads(1)
        expected = run(slice(None), 12)
        for threads in (1, 2, 3):
            set_threads(threads)
            for some, at_once in ((slice(None), 5), (slice(1, 2), 12), (slice(1, 4), 1)):
                for mine, theirs in zip(run(some, at_once), expected, strict=True):
                    np.testing.assert_array_equal(mine, theirs[some])
    finally:
        set_threads(None)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_weights_come_back(kind: str) -> None:
    given = arrays(kind, (1, 1, 5, 23), 2)[-3:]
    packed = recurrent.pack(*given)
    assert packed is not None
    for mine, theirs in zip(recurrent.unpack(packed), given, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_c_refuses_what_does_not_fit() -> None:
    module = compiled_module()
    assert module is not None
    shapes = [(1, 3, 2), (1, 1, 2, 4, 16), (1, 1, 5, 4, 16), (1, 1, 4, 16), (1, 1, 16),
              (2, 1, 1, 16), (1, 1, 3, 5), (1, 3, 1, 64)]  # fmt: skip
    good = [np.zeros(shape, np.float32) for shape in shapes]
    how = {"isa": 0, "is_gru": False, "backwards": 0, "threads": 1, "multiply_adds": 2.0}
    fields = interface.recur_fields(**how)
    module.recur(*good, fields)
    for i, array in enumerate(good):
        for bad in (array[..., :-1].copy(), array.astype(np.float64), array[0]):
            with pytest.raises(ValueError, match="fit"):
                module.recur(*good[:i], bad, *good[i + 1 :], fields)
    with pytest.raises(ValueError, match="fit"):
        module.recur(*good, interface.recur_fields(**how | {"isa": 9}))
