"""Filters of codes with Winograd: each job unpacks and transforms its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.test_filter_codes import stored_filter, sums_of

from deconv_ir.kernels import pack_filter
from deconv_ir.kernels.native import CompiledKernel
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

pytestmark = pytest.mark.skipif(compiled_module() is None, reason="runs unpack weights in C")
ISAS = compiled_module().isas() if compiled_module() else [""]
# forward, groups, channels in and out of a group, kernel, strides, data
PROBLEMS = [
    (True, 1, 6, 10, (3, 3), (1, 1), (9, 21)),
    (True, 1, 130, 70, (3, 3), (1, 1), (6, 5)),
    (True, 2, 9, 21, (5, 6), (1, 1), (11, 13)),
    (True, 1, 40, 33, (3,), (1,), (40,)),
    (True, 1, 6, 9, (2, 3, 3), (1, 1, 1), (5, 6, 7)),
    (True, 1, 20, 24, (1, 1), (1, 1), (7, 9)),
    (False, 1, 70, 40, (4, 4), (2, 2), (7, 9)),
    (False, 3, 10, 13, (3, 3), (2, 2), (8, 9)),
    (False, 1, 34, 9, (2, 2), (2, 2), (5, 6)),
    (False, 1, 12, 17, (5, 4), (2, 1), (7, 8)),
    (False, 1, 8, 12, (2, 4, 4), (1, 2, 2), (3, 4, 5)),
]


def arguments_of(problem: Any, rng: Any, algorithm: str) -> dict[str, Any]:
    forward, groups, _, outputs, kernel, strides, _ = problem
    bias = rng.standard_normal(groups * outputs).astype(np.float32)
    return {
        "forward": forward, "strides": strides, "dilations": (1,) * len(kernel), "groups": groups,
        "bias": bias, "algorithm": algorithm,
    }  # fmt: skip


def exact(weights: Any, problem: Any, bias: Any, x: Any, pads: Any, output: Any) -> Any:
    """Return sums by NumPy in f64, and the sums of their terms' magnitudes."""
    added = bias.astype(float).reshape(-1, *(1 for _ in output))
    sums = sums_of(x, weights, problem, pads, output) + added
    sizes = sums_of(np.abs(x), np.abs(weights), problem, pads, output) + np.abs(added)
    return sums, sizes


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["f16", "bf16", "u8-f32", "i8-f16", "u4-f16", "nf4-f16"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_results_are_those_of_the_weights(
    monkeypatch: pytest.MonkeyPatch, isa: str, kind: str, problem: Any
) -> None:
    """The same for any threads, and where windows are summed directly; codes stay stored."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    forward, groups, inputs, _, kernel, _, extents = problem
    rng = np.random.default_rng(48)
    lazy, weights = stored_filter(kind, problem, rng)
    arguments = arguments_of(problem, rng, "winograd")
    stored = pack_filter(lazy, **arguments)
    assert isinstance(stored, CompiledKernel)
    assert stored.precision == f"f32 ({kind.partition('-')[0]} weights)"
    x = rng.standard_normal((2, groups * inputs, *extents)).astype(np.float32)
    output = extents if forward else tuple(2 * n for n in extents)
    pads = tuple(k // 2 for k in kernel) if forward else (0,) * len(kernel)
    x[1, 1, ..., 2] *= 1e6  # with these, some windows are too uneven
    expected, sizes = exact(weights, problem, arguments["bias"], x, pads, output)
    # The sums that begin with the largest terms lose more.
    bound = 2.0**-24 * sizes
    bound[0] *= 32
    bound[1] *= 128
    packed = stored.packed_bytes
    found = []
    for threads in (2, 1):
        set_threads(threads)
        assert "winograd" in stored.plan(x.shape, pads, output).details
        found.append(stored.run(x, pads, output))
        assert stored.packed_bytes == packed
    set_threads(2)
    assert (np.abs(found[0] - expected) <= bound).all()
    np.testing.assert_array_equal(found[0], found[1])
    stored.release()
    np.testing.assert_array_equal(stored.run(x, pads, output), found[0])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38])
def test_windows_of_such_data_are_summed_directly(value: float) -> None:
    """Their results have the bits of direct sums, and no others are affected."""
    problem = PROBLEMS[1]
    rng = np.random.default_rng(48)
    lazy, weights = stored_filter("f16", problem, rng)
    arguments = arguments_of(problem, rng, "winograd")
    x = rng.standard_normal((1, 130, 20, 24)).astype(np.float32)
    x[0, 3, 7, 8] = value
    with np.errstate(all="ignore"):
        found = pack_filter(lazy, **arguments).run(x, (1, 1), (20, 24))
        direct = pack_filter(weights, **arguments | {"algorithm": "direct"})
        expected = direct.run(x, (1, 1), (20, 24))
    near = (slice(None), slice(None), slice(6, 9), slice(7, 10))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_allclose(found[near], expected[near], rtol=1e-4)
    far = np.ones(found.shape, bool)
    far[near] = False
    np.testing.assert_allclose(found[far], expected[far], atol=1e-3)


def test_uneven_filters_are_summed_directly() -> None:
    """As those in f32: a tap is far larger than the others."""
    problem = PROBLEMS[1]
    rng = np.random.default_rng(48)
    lazy, weights = stored_filter("f16", problem, rng)
    raw = weights.astype(np.float16)
    raw[..., 0, 0] *= 100
    flat = raw.reshape(-1).view(np.uint8)
    assert lazy.codes is not None
    lazy.codes = lazy.codes._replace(read=lambda i, j: flat[2 * i : 2 * j])
    arguments = arguments_of(problem, rng, "winograd")
    x = rng.standard_normal((1, 130, 6, 5)).astype(np.float32)
    stored = pack_filter(lazy, **arguments)
    assert "winograd" not in stored.plan(x.shape, (1, 1), (6, 5)).details
    expected = pack_filter(raw.astype(np.float32), **arguments).run(x, (1, 1), (6, 5))
    np.testing.assert_array_equal(stored.run(x, (1, 1), (6, 5)), expected)


@pytest.mark.parametrize(
    "problem",
    [(True, 1, 1024, 64, (3, 3), (1, 1), (6, 5)), (False, 1, 1024, 64, (4, 4), (2, 2), (5, 6))],
)
def test_the_scratchpad_does_not_hold_all_weights_of_many_channels(problem: Any) -> None:
    """A chunk has the rows whose weights fit into the second-level cache, not a fixed number."""
    forward, _, inputs, outputs, _, _, extents = problem
    rng = np.random.default_rng(48)
    lazy, weights = stored_filter("f16", problem, rng)
    arguments = arguments_of(problem, rng, "winograd")
    x = rng.standard_normal((1, inputs, *extents)).astype(np.float32)
    output = extents if forward else tuple(2 * n for n in extents)
    pads = (1, 1) if forward else (0, 0)
    stored = pack_filter(lazy, **arguments)
    details = stored.plan(x.shape, pads, output).details
    assert "winograd" in details
    transformed = inputs * outputs * (16 if forward else 4 * 9) * 4
    assert details["bytes"] < transformed
    expected, sizes = exact(weights, problem, arguments["bias"], x, pads, output)
    assert (np.abs(stored.run(x, pads, output) - expected) <= 2.0**-20 * sizes).all()


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("extent", [4, 6, 9])
def test_plans_do_not_depend_on_earlier_runs(threads: int, extent: int) -> None:
    """Chunks of weights are laid out for each run: no run keeps those of another."""
    problem = (True, 1, 256, 256, (3, 3), (1, 1), (extent, extent))
    rng = np.random.default_rng(48)
    arguments = arguments_of(problem, rng, "winograd")
    lazy, _ = stored_filter("f16", problem, rng)
    data = rng.standard_normal((16, 256, extent, extent)).astype(np.float32)
    set_threads(threads)
    try:
        used = pack_filter(lazy, **arguments)
        for batch in (16, 1, 3, 16):
            where = data[:batch].shape, (1, 1), (extent, extent)
            fresh = pack_filter(lazy, **arguments).plan(*where).details
            assert used.plan(*where).details | {"packed": 0} == fresh
            used.run(data[:batch], (1, 1), (extent, extent))
    finally:
        set_threads(None)
