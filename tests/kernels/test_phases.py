"""The NumPy path: which method sums the phases of a layer, and that each of them can."""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue

import numpy as np
import pytest

from deconv_ir import kernels
from deconv_ir.kernels import Deconvolution, phases, writer
from deconv_ir.kernels.minimal import LARGEST
from deconv_ir.kernels.phases import Method, choose_plan
from deconv_ir.kernels.problem import Problem, phase_sets, spans
from deconv_ir.kernels.runtime import parallel

BOUND = 64 << 18


def plan(kernel, stride, channels_in, channels_out, data, pad=1, groups=1, images=1, **settings):
    axes = len(data)
    problem = Problem(
        groups, channels_in, channels_out, (kernel,) * axes, (stride,) * axes, (1,) * axes
    )
    output = tuple(stride * (x - 1) + kernel - 2 * pad for x in data)
    settings = {"threads": 1, "bound": BOUND} | settings
    extents = spans(problem, tuple(data), (pad,) * axes, output)
    return choose_plan(problem, images, extents, **settings)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        # one tap a phase: nothing to add, so that data need not be copied
        (
            {"kernel": 2, "stride": 2, "channels_in": 256, "channels_out": 128, "pad": 0},
            "columns in place",
        ),
        # two or three taps of many channels
        ({"kernel": 4, "stride": 2, "channels_in": 256, "channels_out": 128}, "minimal"),
        ({"kernel": 3, "stride": 1, "channels_in": 256, "channels_out": 128}, "minimal"),
        # few output channels: low products otherwise
        ({"kernel": 4, "stride": 2, "channels_in": 128, "channels_out": 3}, "columns in place"),
        # few input channels: copies cost little, and make runs that are added faster
        ({"kernel": 3, "stride": 2, "channels_in": 20, "channels_out": 10}, "columns"),
        # depthwise: products with one row, or a few, are no work for the BLAS
        ({"kernel": 3, "stride": 1, "channels_in": 1, "channels_out": 1, "groups": 64}, "taps"),
        # phases of one to four taps: one pass for all, unless rows are short
        ({"kernel": 3, "stride": 2, "channels_in": 1, "channels_out": 1, "groups": 64}, "columns"),
        # five taps an axis and few channels: each tap copied, or added, is too much
        ({"kernel": 5, "stride": 1, "channels_in": 19, "channels_out": 19, "pad": 2}, "rows"),
        # five taps an axis, few data: copies are cheaper than columns
        ({"kernel": 5, "stride": 1, "channels_in": 16, "channels_out": 96, "pad": 2}, "windows"),
        # five taps of many channels are three and two
        ({"kernel": 5, "stride": 1, "channels_in": 128, "channels_out": 192, "pad": 2}, "minimal"),
    ],
)
def test_choice_of_method(layer, expected):
    assert plan(data=(64, 64), **layer).method.value == expected


def test_tiles_have_all_groups_of_an_image_rather_than_all_images():
    layer = {"kernel": 3, "stride": 1, "channels_in": 1, "channels_out": 1, "groups": 64}
    found = plan(data=(31, 65), images=8, threads=2, **layer)
    assert {(tile.groups, tile.images) for tile in found.tiles} == {(64, 1)}


def test_tiny_planes_are_summed_apart():
    # On a 4 x 4 plane, 9 of the 25 positions of all phases together are seen by half of them.
    layer = {"kernel": 4, "stride": 2, "channels_in": 512, "channels_out": 512, "images": 8}
    assert plan(data=(4, 4), **layer).method.apart
    assert not plan(data=(64, 64), **layer).method.apart


def test_what_must_not_be_mixed_is_not():
    layer = {"kernel": 4, "stride": 2, "channels_in": 256, "channels_out": 128, "data": (64, 64)}
    assert plan(**layer).method.minimal
    assert not plan(**layer, moderate=False).method.minimal


def test_data_are_read_in_place_only_where_they_can_be():
    layer = {"kernel": 4, "stride": 2, "channels_in": 128, "channels_out": 3, "data": (64, 64)}
    assert plan(**layer).method is Method.COLUMNS_IN_PLACE
    assert plan(**layer, in_place=False).method is Method.COLUMNS
    # Half of the columns of the data are not seen: a view cannot leave them out.
    assert plan(**layer, pad=70).method is not Method.COLUMNS_IN_PLACE


@pytest.mark.parametrize("bound", [BOUND, 1 << 16, 1 << 12])
@pytest.mark.parametrize("method", Method, ids=lambda method: method.value)
def test_plans_keep_to_the_bound(method, bound, monkeypatch):
    estimate = phases.estimate
    monkeypatch.setattr(
        phases, "estimate", lambda p, m, b: estimate(p, m, b) if m is method else None
    )
    found = plan(4, 2, 16, 8, (20, 20), bound=bound)
    assert found.method is method
    assert found.elements <= bound
    covered = np.zeros((8, 21, 21), int)
    for tile in found.tiles:
        box = (slice(f, f + n) for f, n in zip(tile.first, tile.size, strict=True))
        covered[(slice(tile.out, tile.out + tile.outs), *box)] += 1
    assert np.all(covered == 1)


def test_no_plan_where_nothing_fits():
    assert plan(4, 2, 16, 8, (20, 20), bound=10) is None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", Method, ids=lambda method: method.value)
def test_every_method(draw_case, hold_to, method, axes, seed, threads):
    element = np.dtype(("float32", "float32", "float64", "float16")[seed % 4])
    case = draw_case(seed, element, axes, channels=20 if axes < 3 else 4)
    kernels.set_threads(threads)
    try:
        with hold_to(method):
            actual = case.actual(path="phases", scratch_bytes=(64 << 20, 300_000)[seed % 2])
    finally:
        kernels.set_threads(None)
    # Windows fit every problem; where others do not, minimal filtering may have been chosen.
    windows = method in (Method.WINDOWS, Method.WINDOWS_APART)
    case.check(actual, "" if windows else "phases")


@pytest.mark.parametrize("element", ["float32", "float16"])
@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("seed", range(9))
def test_rows_of_phases_together(draw_case, monkeypatch, element, stride, kernel, seed):
    """As large results are written: wherever pads and ends let each phase begin."""
    monkeypatch.setattr(writer, "_TOGETHER", 0)
    axes = 1 + seed % 3
    fixed = {"kernel": (kernel,) * axes, "strides": (stride,) * axes}
    case = draw_case(seed, np.dtype(element), axes, **fixed)
    case.check(case.actual(path="phases"), "phases")
    # Into memory whose last axis is not the one with neighbours.
    kernel = Deconvolution(case.filter, path="phases", **case.static)
    out = np.empty(case.expected().shape[::-1], element).T
    case.check(kernel.run(case.data, case.pads_begin, case.output, out), "phases")


@pytest.mark.parametrize("element", ["float32", "float16"])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("pad", [-2, -1, 0, 1, 2, 4, 9])
@pytest.mark.parametrize("method", [Method.TAPS, Method.ROWS], ids=lambda method: method.value)
def test_whole_rows(draw_case, hold_to, method, element, axes, dilation, kernel, pad):
    """Where results have the extents of the data, copies are shifted as a whole."""
    fixed = {"kernel": (kernel,) * axes, "strides": (1,) * axes, "dilations": (dilation,) * axes}
    case = draw_case(kernel + pad, np.dtype(element), axes, pads_begin=(pad,) * axes, **fixed)
    case.output = case.data.shape[2:]
    for scratch_bytes in (64 << 20, 3_000):
        with hold_to(method):
            case.check(case.actual(path="phases", scratch_bytes=scratch_bytes), "phases")


@pytest.mark.parametrize("kernel", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_minimal_filtering(draw_case, hold_to, kernel, stride, dilation, axes):
    fixed = {
        "kernel": (kernel,) * axes,
        "strides": (stride,) * axes,
        "dilations": (dilation,) * axes,
    }
    case = draw_case(7, np.dtype(np.float32), axes, channels=8 if axes < 3 else 4, **fixed)
    problem = Problem.of_filter(case.filter.shape, case.strides, case.dilations, case.groups)
    taps = {axis.taps for phases in phase_sets(problem) for axis in phases.axes}
    with hold_to(Method.MINIMAL):
        axes = spans(problem, case.data.shape[2:], case.pads_begin, case.output)
        found = choose_plan(problem, len(case.data), axes, 1, BOUND)
        assert (found.method is Method.MINIMAL) == (max(taps) <= 5)
        case.check(case.actual(path="phases"), "phases")


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 2 * LARGEST, np.float32(3e38)])
@pytest.mark.parametrize("where", ["data", "filter"])
def test_values_that_minimal_filtering_cannot_take(hold_to, value, where):
    # F(2, 2) makes d0 - d1: infinite data would reach outputs that never see them.
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 8, 6, 6), dtype=np.float32)
    weights = rng.standard_normal((8, 8, 4, 4), dtype=np.float32)
    (data if where == "data" else weights)[0, 3, 2, 2] = value
    expected = kernels.naive(
        data,
        weights,
        strides=(2, 2),
        dilations=(1, 1),
        groups=1,
        pads_begin=(1, 1),
        output=(12, 12),
    )
    with hold_to(Method.MINIMAL):
        kernel = Deconvolution(weights, strides=(2, 2), dilations=(1, 1), path="phases")
        actual = kernel.run(data, (1, 1), (12, 12))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_phases_without_a_place_are_left_out(hold_to):
    # One output position sees one phase: fifteen of sixteen are not computed where they are apart.
    with hold_to(Method.WINDOWS_APART):
        weights = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
        kernel = Deconvolution(weights, strides=(4, 4), dilations=(1, 1), path="phases")
        actual = kernel.run(np.full((1, 1, 2, 2), 2, np.float32), (5, 6), (1, 1))
    assert actual.tolist() == [[[[2 * (4 + 2)]]]]


def test_a_late_worker_is_not_waited_for():
    def make():
        return done.append

    done: list[int] = []
    parallel.run_jobs(make, 2, 2)
    gate = threading.Event()
    worker = parallel._workers[0]
    worker.orders.put(parallel._Order(gate.wait, SimpleQueue()))
    try:
        done.clear()
        parallel.run_jobs(make, 5, 2)
        assert sorted(done) == [0, 1, 2, 3, 4]
    finally:
        gate.set()


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="there is one core, or the system does not say",
)
@pytest.mark.parametrize("fails", [False, True])
def test_threads_are_kept_apart_while_they_compute(fails):
    """Waiting for each other they would end on one core; the caller's cores are its own again."""
    before = os.sched_getaffinity(0)
    both = threading.Barrier(2, timeout=60)
    seen: list[set[int]] = []

    def do(_: int) -> None:
        both.wait()
        seen.append(os.sched_getaffinity(0))
        if fails:
            raise ValueError("a job that fails")

    if fails:
        with pytest.raises(ValueError, match="a job that fails"):
            parallel.run_jobs(lambda: do, 2, 2)
    else:
        parallel.run_jobs(lambda: do, 2, 2)
    one, other = seen
    assert one.isdisjoint(other)
    assert os.sched_getaffinity(0) == before
