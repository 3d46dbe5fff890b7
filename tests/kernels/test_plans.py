"""Plans of the compiled kernel: valid under every machine, and proportional to the work."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.kernels import pack_convolution, pack_deconvolution
from deconv_ir.kernels.runtime.cpu import MACHINES
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
SCRATCH = 64 << 20


@pytest.fixture(params=MACHINES)
def machine(request, monkeypatch):
    """Run the test for each machine in the tables."""
    monkeypatch.setenv("DECONV_IR_MACHINE", request.param)
    return request.param


def describe(kernel, data, pads, output):
    return kernel.plan(data, pads, output).details


# Layer, and extents of n positions in total.
LONG = {
    "1-D": ((64, 32, 4), (2,), lambda n: (n,)),
    "1-D, few channels": ((4, 2, 4), (2,), lambda n: (n,)),
    "1-D, folded": ((16, 1, 4), (2,), lambda n: (n,)),
    "1-D, many channels": ((1024, 256, 16), (8,), lambda n: (n,)),
    "square": ((4, 2, 4, 4), (2, 2), lambda n: (math.isqrt(n), math.isqrt(n))),
    "long rows": ((8, 4, 3, 3), (2, 2), lambda n: (16, n // 16)),
    "tall": ((8, 4, 3, 3), (2, 2), lambda n: (n // 16, 16)),
    "volume": ((8, 8, 3, 3, 3), (2, 2, 2), lambda n: (n // 64, 8, 8)),
    "convolution": ((32, 64, 3), (1,), lambda n: (n,)),
}


@pytest.mark.parametrize(
    ("element", "threads"), [("float32", (1, 8, 256)), ("int8", (2, 64))], ids=["float32", "int8"]
)
def test_plans_grow_with_the_work(machine, element, threads):
    """Cycles are proportional to the positions, up to 64 M, and tiles do not get smaller."""
    for layer in LONG:
        shape, strides, extents = LONG[layer]
        kind = pack_convolution if layer == "convolution" else pack_deconvolution
        kernel = kind(np.ones(shape, element), strides=strides, dilations=(1,) * len(strides))
        channels = kernel.problem.channels_in
        for used in threads:
            set_threads(used)
            each = []
            for n in (1 << 18, 1 << 20, 1 << 21, 1 << 23, 1 << 26):
                data = (1, channels, *extents(n))
                output = tuple(s * x for s, x in zip(strides, data[2:], strict=True))
                told = describe(kernel, data, (1,) * len(strides), output)
                each.append(told["cycles"] / n)
                # As on NEON with 256 threads: smaller tiles would mostly be halo.
                assert math.prod(told["tile"]) * told["images"] >= 8, used
                assert told["bytes"] * min(told["threads"], told["jobs"]) <= SCRATCH, used
            assert min(each) > 0
            # Many threads share the scratchpad limit and get smaller tiles; the panels of few tiles
            # are shared by all. A collapse would cost factors of hundreds.
            assert max(each) < 3 * min(each), used
            assert max(each[2:]) < 3 * min(each[2:]), used


@pytest.mark.parametrize("used", [2, 256])
def test_many_channels_take_fewer_threads_where_scratch_is_short(machine, used):
    """With 4096 channels one thread's tile takes megabytes: 256 threads would exceed the limit.

    If one tile alone exceeds it, as with vectors of 64 bytes, the layer is summed directly.
    """
    set_threads(used)
    kernel = pack_deconvolution(
        np.ones((4096, 8, 4, 4), np.float32), strides=(2, 2), dilations=(1, 1), algorithm="winograd"
    )
    told = describe(kernel, (1, 4096, 64, 64), (1, 1), (128, 128))
    assert told["bytes"] * told["threads"] + told["shared_bytes"] <= SCRATCH
    assert told["threads"] <= used


ALIKE = {
    "plain": {},
    "batch": {"batch": 3},
    "extents": {"extent": 60},
    "pads": {"pad": 2},
    "output": {"more": 3},
    "threads": {"threads": 2},
    "scratchpad": {"scratch": 96 << 10},
    "kernel": {"kernel": 5},
    "strides": {"stride": 2},
    "dilations": {"dilation": 2},
    "channels": {"ins": 40},
    "outputs": {"outs": 40},
    "groups": {"groups": 2},
    "element": {"element": "float16"},
    "convolution": {"kind": pack_convolution},
}


def plan_alike(
    algorithm, kind=pack_deconvolution, ins=48, outs=48, groups=1, kernel=3, stride=1, dilation=1,
    pad=1, batch=1, extent=56, more=0, threads=1, scratch=SCRATCH, element="float32",
):  # fmt: skip
    set_threads(threads)
    shape = (
        groups * (outs if kind is pack_convolution else ins),
        ins if kind is pack_convolution else outs,
    )
    layer = kind(
        np.ones((*shape, kernel, kernel), element),
        strides=(stride, stride), dilations=(dilation, dilation), groups=groups,
        algorithm=algorithm,
    )  # fmt: skip
    data, output = (batch, groups * ins, extent, extent), (stride * extent + more,) * 2
    budget = ScratchpadBudget(scratch, winograd=True)
    return layer.plan(data, (pad, pad), output, budget).details


@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
def test_layers_that_are_nearly_alike_have_plans_of_their_own(algorithm):
    """Recent tilings are cached, and reused only for the same layer and run."""
    names = list(ALIKE)
    found = {name: plan_alike(algorithm, **ALIKE[name]) for name in names}
    for name in reversed(names):
        for other in range(30):  # more than the cache holds
            plan_alike(algorithm, ins=4, outs=4, extent=8 + other)
        assert plan_alike(algorithm, **ALIKE[name]) == found[name]
        assert plan_alike(algorithm, **ALIKE[name]) == found[name]


@pytest.mark.parametrize("algorithm", ["direct", "winograd", "compiled"])
def test_results_under_every_machine(machine, draw_case, dtype_of, algorithm):
    """Each available instruction set runs with the tiles of every machine."""
    elements = ["float32", "float32", "float16", "float64", "int8"]
    for seed in range(15):
        set_threads(1 + seed % 3)
        channels = (4, 30, 150)[seed % 3]
        case = draw_case(seed, dtype_of(elements[seed % 5]), 1 + seed % 2, channels=channels)
        for scratch_bytes in (SCRATCH, 200_000):
            case.check(case.actual(algorithm=algorithm, scratch_bytes=scratch_bytes), algorithm)


# Layers of the kinds in bench/cases.py, whose algorithm, tiles and channel blocks vary.
def layers(count):
    """Draw layers, with data for one image and for other extents."""
    rng = np.random.default_rng(19)
    for _ in range(count):
        axes = int(rng.integers(1, 4))
        kernel, stride = [(4, 2), (3, 1), (2, 2), (3, 2), (5, 2), (9, 4), (1, 1)][rng.integers(7)]
        ins, outs = (round(4 * 2 ** rng.uniform(0, top)) for top in (7, 5))
        if rng.random() < 0.2:
            outs = int(rng.integers(1, 3))  # folded
        groups = int(rng.choice([1, 1, 1, 2]))
        extents = tuple(int(v) for v in rng.integers(2, (200, 24, 8)[axes - 1], axes))
        forward = bool(rng.random() < 0.25)
        shape = (groups * outs, ins) if forward else (groups * ins, outs)
        weights = rng.standard_normal((*shape, *(kernel,) * axes), dtype=np.float32)
        bias = rng.standard_normal(groups * outs, dtype=np.float32)
        kind = pack_convolution if forward else pack_deconvolution
        arguments = {"strides": (stride,) * axes, "dilations": (1,) * axes, "groups": groups}

        def make(kind=kind, weights=weights, bias=bias, arguments=arguments):
            return kind(weights, bias=bias, **arguments)

        def output(extents, forward=forward, stride=stride, kernel=kernel):
            return tuple(-(-x // stride) if forward else stride * x + kernel % 2 for x in extents)

        draw = [
            rng.standard_normal((3, groups * ins, *e), dtype=np.float32)
            for e in (extents, tuple(x + 3 for x in extents))
        ]
        yield make, draw, (kernel // 3,) * axes, output


@pytest.mark.parametrize("machine", ["zen3", ""])
def test_bits_depend_on_the_layer_and_the_image_alone(monkeypatch, machine, pytestconfig):
    """Threads, the batch and earlier runs do not change any bit."""
    count = max(1, 4 // pytestconfig.getoption("--one-in"))
    wanted = {"winograd": count, "direct": count}  # layers that use the algorithm on a Zen 3
    for make, (data, other), pads, output in layers(100):
        extents = output(data.shape[2:])
        monkeypatch.setenv("DECONV_IR_MACHINE", "zen3")
        told = describe(make(), (1, *data.shape[1:]), pads, extents)
        algorithm = "winograd" if "winograd" in told else "direct"
        if wanted[algorithm] == 0:
            continue
        wanted[algorithm] -= 1
        monkeypatch.setenv("DECONV_IR_MACHINE", machine)
        set_threads(1)
        kernel = make()
        expected = [kernel.run(image[None], pads, extents)[0] for image in data]
        for used, batches in ((1, (2,)), (3, (3,)), (8, (1, 3))):
            set_threads(used)
            fresh, warm = make(), make()
            warm.run(other[:2], tuple(p + 1 for p in pads), output(other.shape[2:]))
            warm.run(other[:1], pads, output(other.shape[2:]))
            for batch in batches:
                for prepared in (fresh, warm):
                    found = prepared.run(data[:batch], pads, extents)
                    for image, result in zip(expected, found, strict=False):
                        np.testing.assert_array_equal(result, image)
    assert set(wanted.values()) == {0}


@pytest.mark.parametrize("isa", compiled_module().isas() if compiled_module() else [])
@pytest.mark.parametrize(
    ("shape", "extents"),
    [
        ((48, 48, 4), (600,)),
        ((300, 8, 4, 4), (20, 20)),
        ((1024, 4, 16), (900,)),
        ((16, 8, 3, 3, 3), (6, 6, 6)),
        ((64, 1, 4, 4), (30, 30)),
    ],
)
def test_a_small_scratchpad_changes_no_bit_and_does_not_collapse(monkeypatch, shape, extents, isa):
    """If no tile fits, the budget is raised: tiles do not shrink to one position and channel."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    rng = np.random.default_rng(3)
    axes = len(extents)
    weights, data = (
        rng.standard_normal(s, dtype=np.float32) for s in (shape, (2, shape[0], *extents))
    )
    kernel = pack_deconvolution(
        weights, strides=(2,) * axes, dilations=(1,) * axes, algorithm="direct"
    )
    output = tuple(2 * x for x in extents)
    expected = kernel.run(data, (1,) * axes, output)
    free = kernel.plan(data.shape, (1,) * axes, output).algorithm.cycles
    for scratch in (1, 1 << 12, 1 << 14, 1 << 16):
        budget = ScratchpadBudget(scratch)
        plan = kernel.plan(data.shape, (1,) * axes, output, budget)
        np.testing.assert_array_equal(plan.run([data])[0], expected)
        told = plan.details
        assert told["channels"] % told["channel_block"] == 0 or told["channels"] == shape[0]
        assert plan.algorithm.cycles < 20 * free
        assert plan.scratchpad_bytes <= max(scratch, 1 << 18)


@pytest.mark.parametrize("order", ["algorithm first", "details first", "run first"])
def test_what_a_plan_is_asked_does_not_change_it(order: str) -> None:
    """The budget is raised once, whichever attribute is read first."""
    kernel = pack_deconvolution(
        np.ones((64, 32, 4, 4), np.float32), strides=(2, 2), dilations=(1, 1), algorithm="direct"
    )
    plan = kernel.plan((1, 64, 20, 20), (1, 1), (40, 40), ScratchpadBudget(1))
    asks = {
        "algorithm": lambda: plan.algorithm,
        "details": lambda: plan.details,
        "run": lambda: plan.run([np.ones((1, 64, 20, 20), np.float32)]),
    }
    asks[order.split()[0]]()
    details, algorithm, candidates = plan.details, plan.algorithm, plan.candidates
    assert plan.scratchpad_bytes == algorithm.scratch_bytes
    assert (plan.details, plan.algorithm, plan.candidates) == (details, algorithm, candidates)
    fresh = kernel.plan((1, 64, 20, 20), (1, 1), (40, 40), ScratchpadBudget(1))
    assert (fresh.details, fresh.algorithm, fresh.candidates) == (details, algorithm, candidates)
