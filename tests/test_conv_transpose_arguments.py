"""conv_transpose: every kind of wrong value for each argument gives an error that names it."""

from __future__ import annotations

import datetime
import itertools
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest

import deconv_ir
from deconv_ir import DeconvError, InputError, ResourceError, conv_transpose

X, W = np.ones((1, 2, 5)), np.ones((2, 3, 3))


def good(**changes: Any) -> Any:
    return conv_transpose(**({"x": X, "filter": W} | changes))


class Hostile:
    """Raises an error in every protocol that NumPy may try."""

    def __index__(self) -> int:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise KeyError("no")

    def __array__(self, *arguments: Any, **more: Any) -> Any:
        raise OSError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


def deep(levels: int) -> Any:
    value: Any = 1.0
    for _ in range(levels):
        value = [value]
    return value


def endless() -> Any:
    return itertools.count(1)


OF_NO_KIND: list[Any] = [
    "2", "", b"2", 1.5, float("nan"), 2j, object(), Hostile, {"a": 1}, {1, 2}, lambda: None,
    datetime.date(2020, 1, 1), Exception("x"),
]  # fmt: skip
NUMBERS: list[Any] = [
    *OF_NO_KIND, None, (1.5,), ("1",), (None,), ([1],), ("a", "b"), np.array([1.5]), np.array("a"),
    np.ones((2, 2), int), np.array(1.5), -1, (-1,), 1 << 63, (1 << 63,), 10**40, -(10**40),
    (1, 1), (1, 1, 1), [1] * 70, np.ones(3, int), endless, np.datetime64("2020"),
]  # fmt: skip
ARRAYS: list[Any] = [
    *OF_NO_KIND, 3, None, [], [[1, 2], [3]], [[[1.0, None]]], deep(65), deep(200), [["a"]],
    np.array("abc"), np.array(["a"] * 5), np.ones((1, 2, 5), object), np.ones(5, "M8[s]"),
    np.ones((1, 2, 5), "c16"), np.ones((1, 2, 5), "f4,i4"), np.ones((1, 2, 5), bool),
    np.ones((1, 2)), np.ones(()), np.ones((1,) * 64), np.ones((2, 3) + (1,) * 62),
    np.broadcast_to(np.float64(1), (1 << 20, 1 << 20)), np.broadcast_to(np.int64(1), 1 << 40),
    np.broadcast_to(np.float64(1), (1 << 30, 2, 1 << 10)),
    np.broadcast_to(np.float64(1), (1, 2, 1 << 40)),
    np.broadcast_to(np.float64(1), (2, 1 << 20, 1 << 20)),
    np.broadcast_to(np.float64(1), (2, 3, 1 << 40)), np.ma.masked_array([1.0], [True]),
    memoryview(b"abc"), range(3), np.ones((1, 2, 5), "V3"),
]  # fmt: skip
WRONG: dict[str, list[Any]] = {
    "x": ARRAYS,
    "filter": ARRAYS,
    "bias": [a for a in ARRAYS if a is not None],
    "strides": [*NUMBERS, 0],
    "dilations": [*NUMBERS, 0],
    "pads_begin": NUMBERS,
    "pads_end": NUMBERS,
    "output_padding": NUMBERS,
    "groups": [*OF_NO_KIND, None, (1,), [1], 0, -1, 3, 1 << 70, np.ones(2, int), np.array(1.5)],
    "auto_pad": [*OF_NO_KIND, None, 1, ("same_upper",), "SAME", "explicit,", np.array("valid")],
    "output_shape": [*(n for n in NUMBERS if n is not None), 7, (7.0,), ()],
    "semantics": [*OF_NO_KIND, None, 1, ("spec",), "both", [], np.array("spec")],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_an_error_that_names_it(name: str) -> None:
    for value in WRONG[name]:
        require_an_error(name, value)


def require_an_error(name: str, value: Any) -> None:
    if value is Hostile:
        value = Hostile()
    elif value is endless:
        value = endless()
    tracemalloc.start()
    try:
        with pytest.raises(DeconvError) as caught:
            good(**{name: value})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    error = caught.value
    assert peak < 64 << 20
    assert str(error)
    assert "\n" not in str(error)
    assert isinstance(error, InputError | ResourceError | deconv_ir.ShapeError)
    if not isinstance(error, ResourceError):
        assert re.search(rf"\b{name}\b", str(error))


@pytest.mark.parametrize("name", ["strides", "dilations", "output_padding"])
@pytest.mark.parametrize("value", [10**9, 10**12, 1 << 40, (1 << 63) - 1])
def test_outputs_that_are_huge(name: str, value: int) -> None:
    """The error precedes any allocation of that size, and names needed and available bytes."""
    data, weights = np.ones((1, 2, 50, 50)), np.ones((2, 3, 3, 3))
    with pytest.raises(ResourceError) as caught:
        conv_transpose(data, weights, **{name: value})
    error = caught.value
    if error.actual is not None:
        assert error.actual > error.expected > 0
        assert "conv_transpose needs" in str(error)
        assert "is available" in str(error)
    else:
        assert "2^63 - 1" in str(error)


def test_the_example_of_the_report() -> None:
    with pytest.raises(ResourceError, match=r"conv_transpose needs [\d.]+ TiB of memory, "):
        conv_transpose(np.ones((1, 2, 5, 5)), np.ones((2, 3, 3, 3)), strides=10**6)
    with pytest.raises(ResourceError, match="is available"):
        conv_transpose(X, W, output_shape=(1 << 50,))
    with pytest.raises(InputError, match="output_shape must be >= 0, and < 2"):
        conv_transpose(X, W, output_shape=(1 << 64,))


def test_memory_that_is_not_there_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from deconv_ir.ops.convolution.deconvolution import Deconvolution

    def fail(*arguments: Any, **more: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(Deconvolution, "kernel", fail)
    with pytest.raises(ResourceError, match=r"needs 312 B of memory, and an allocation failed; "):
        good()


def test_integers_and_sequences_of_any_kind_are_accepted() -> None:
    expected = good(strides=2)
    two: Any
    array = np.array
    for two in (2, np.int64(2), array(2), array([2]), [2], (np.int8(2),), iter([2]), range(2, 3)):
        assert np.array_equal(good(strides=two), expected)
    assert np.array_equal(good(x=X.tolist(), filter=W.tolist(), strides=2), expected)
    assert np.array_equal(good(x=X.astype(">f8"), filter=W, strides=2), expected)
    assert np.array_equal(good(groups=np.uint8(1), strides=2), expected)
    assert np.array_equal(good(groups=True, strides=2), expected)
    assert good(auto_pad="SAME_UPPER", output_shape=np.array([7])).shape == (1, 3, 7)
    assert good(x=np.broadcast_to(1.0, (1, 2, 5)), strides=2).tolist() == expected.tolist()


EXTREMES = {
    "x": [X, np.ones((0, 2, 5)), np.ones((1, 2, 0)), np.ones((1, 0, 5)), X.astype("f2"),
          np.ones((1, 2, 5, 4)), np.ones((1, 4, 5), "i1"), np.ones((1, 2, 5), "u8"), ARRAYS[-10]],
    "filter": [W, np.ones((2, 0, 3)), np.ones((2, 3, 0)), np.ones((0, 3, 3)), W.astype("f2"),
               np.ones((2, 3, 3, 2)), np.ones((4, 3, 1), "i1"), np.ones((2, 3, 2), "u8")],
    "bias": [None, np.ones(3), np.ones(0)],
    "strides": [1, 3, 10**9, 1 << 62, (1 << 63) - 1],
    "dilations": [1, 2, 10**9, 1 << 62, (1 << 63) - 1],
    "pads_begin": [0, 1, 1 << 31, 1 << 62, (1 << 63) - 1],
    "pads_end": [0, 2, 1 << 31, 1 << 62, (1 << 63) - 1],
    "output_padding": [0, 1, 1 << 31, (1 << 63) - 1],
    "groups": [1, 2],
    "auto_pad": ["explicit", "same_upper", "same_lower", "valid"],
    "output_shape": [None, (0,), (1,), (9,), (4, 4), (1 << 40,), ((1 << 63) - 1,)],
    "semantics": ["spec", "openvino"],
}  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_only_our_errors_escape(seed: int) -> None:
    """Valid arguments are mixed with invalid ones."""
    rng = np.random.default_rng(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(150):
        arguments: dict[str, Any] = {}
        for name, values in EXTREMES.items():
            number = int(rng.integers(len(values))) if rng.random() < 0.35 else 0
            arguments[name] = values[number]
        if rng.random() < 0.2:
            name = str(rng.choice(list(WRONG)))
            wrong = [v for v in WRONG[name] if v is not endless]
            arguments[name] = wrong[int(rng.integers(len(wrong)))]
        try:
            result = conv_transpose(**arguments)
        except DeconvError as error:
            assert str(error)  # noqa: PT017 - which error is the other tests' business
            outcomes[False] += 1
        else:
            assert result.ndim == np.ndim(arguments["x"])
            outcomes[True] += 1
    assert min(outcomes.values()) > 10
