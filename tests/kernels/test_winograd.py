"""Winograd: the layers and runs that use it, and those that fall back to direct sums."""

from __future__ import annotations

import itertools
import weakref

import numpy as np
import pytest
from kernels.cases import MACHINES

from deconv_ir.ir.scratchpad import UNLIMITED, ScratchpadBudget
from deconv_ir.kernels import (
    Activation,
    ActivationType,
    naive,
    naive_convolution,
    pack_convolution,
    pack_deconvolution,
)
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
ISAS = compiled_module().isas() if compiled_module() else []
F32 = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def _machine(monkeypatch):
    """Plan for one machine and two threads, on any machine."""
    monkeypatch.setenv("DECONV_IR_MACHINE", "zen4")
    set_threads(2)


def describe(kernel, data, pads, output):
    """Return the details of the compiled kernel's plan of a run."""
    return kernel.plan(data.shape, pads, output).details


def winograd_sizes(kernel, data, pads, output):
    """Return F(outputs, taps) for each axis of a run, or None for direct sums."""
    return describe(kernel, data, pads, output).get("winograd")


def ones(shape, strides, dilations=None, groups=1, algorithm="winograd", kind=pack_deconvolution):
    dilations = dilations or (1,) * len(strides)
    weights = np.ones(shape, np.float32)
    return kind(weights, strides=strides, dilations=dilations, groups=groups, algorithm=algorithm)


# F(m, t) has t taps: as many as a sub-convolution has at most, ceil(kernel / stride), or, where an
# axis is one sub-convolution of more than three, as many as each of its parts.
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "taps"),
    [
        ((4, 4), (2, 2), (1, 1), (2, 2)),
        ((3, 3), (1, 1), (1, 1), (3, 3)),
        ((3, 3), (1, 1), (2, 3), (3, 3)),
        ((3, 3), (2, 2), (1, 1), (2, 2)),  # sub-convolutions of two taps and of one
        ((5, 9), (2, 4), (1, 1), (3, 3)),
        ((16, 2), (8, 2), (1, 1), (2, 1)),
        ((2, 2), (2, 2), (1, 1), (1, 1)),  # kernel = stride: a product without transforms
        ((4, 4), (2, 2), (3, 3), (2, 2)),
        ((3, 3), (2, 2), (2, 1), None),  # a sub-convolution without taps
        ((1, 3), (2, 1), (1, 1), None),
        ((4, 9), (2, 1), (1, 1), (2, 3)),  # nine taps, three parts of 3
        ((4, 12), (1, 1), (1, 2), (2, 3)),  # 2 and 2; four parts of 3
        ((3, 13), (1, 1), (1, 1), None),  # too many parts
        ((4, 9), (2, 2), (1, 1), None),  # five taps and four: these are not one sub-convolution
        ((4, 4), (2, 2), (17, 1), None),  # taps far apart
    ],
)
def test_layers_for_which_winograd_is_planned(kernel, strides, dilations, taps):
    prepared = ones((3, 2, *kernel), strides, dilations)
    data = np.ones((1, 3, 20, 20), np.float32)
    found = winograd_sizes(prepared, data, (1, 1), (30, 30))
    assert taps == (None if found is None else tuple(t for _, t in found[1:]))


@pytest.mark.parametrize("element", ["float64", "int32"])
def test_types_other_than_f32_are_summed_directly(element):
    weights = np.ones((3, 2, 4, 4), element)
    kernel = pack_deconvolution(weights, strides=(2, 2), dilations=(1, 1), algorithm="winograd")
    assert winograd_sizes(kernel, np.ones((1, 3, 8, 8), element), (1, 1), (16, 16)) is None


# The cost decides: Winograd if both channel counts are large and the plane is not tiny.
@pytest.mark.parametrize(
    ("data", "shape", "strides", "pads", "expected"),
    [
        ((1, 256, 32, 24), (256, 256, 4, 4), (2, 2), 1, True),
        ((8, 1024, 4, 4), (1024, 512, 4, 4), (2, 2), 1, True),
        ((1, 64, 112, 112), (64, 64, 3, 3), (1, 1), 1, True),
        ((1, 512, 800), (512, 256, 16), (8,), 4, True),
        ((1, 64, 16, 16, 16), (64, 32, 4, 4, 4), (2, 2, 2), 1, True),
        ((1, 20, 224, 224), (20, 10, 3, 3), (2, 2), 1, False),
        ((1, 4, 64, 64), (4, 4, 4, 4), (2, 2), 1, False),
        ((1, 128, 1, 1), (128, 4, 4, 4), (2, 2), 1, False),
    ],
)
def test_choices_on_which_all_machines_agree(monkeypatch, data, shape, strides, pads, expected):
    # The cost is that of vectors of 8.
    monkeypatch.setenv("DECONV_IR_ISA", "avx2" if "avx2" in ISAS else "")
    output = [
        s * (x - 1) + k - 2 * pads for s, x, k in zip(strides, data[2:], shape[2:], strict=True)
    ]
    for machine in MACHINES:
        monkeypatch.setenv("DECONV_IR_MACHINE", machine)
        kernel = ones(shape, strides, algorithm="compiled")
        found = kernel.plan(data, (pads,) * len(strides), output).details.get("winograd")
        assert (found is not None) is expected, machine


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("element", ["float32", "float16", "bfloat16"])
def test_every_combination(draw_case, monkeypatch, dtype_of, isa, element):
    # Per axis: kernel, stride, dilation; sub-convolutions of 1 to 3 taps, equal or not, or one of
    # more.
    shapes = [
        (2, 1, 1),
        (3, 1, 2),
        (4, 2, 1),
        (3, 2, 1),
        (2, 2, 1),
        (5, 2, 3),
        (8, 3, 1),
        (3, 3, 2),
        (5, 1, 1),
        (7, 1, 2),
    ]
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    with_winograd = 0
    # Narrow floats are widened before the transforms: every third layer holds that.
    step = 1 if element == "float32" else 3
    for seed, pair in list(enumerate(itertools.product(shapes, repeat=2)))[::step]:
        axes = 1 + seed % 3
        layer = [pair[0], pair[1], shapes[seed % len(shapes)]][:axes]
        case = draw_case(
            seed,
            dtype_of(element),
            axes,
            channels=(4, 30)[seed % 2],
            kernel=tuple(k for k, _, _ in layer),
            strides=tuple(s for _, s, _ in layer),
            dilations=tuple(d for _, _, d in layer),
        )
        kernel = pack_deconvolution(case.filter, **case.static, algorithm="winograd")
        where = case.data, case.pads_begin, case.output
        if case.data.size and min(case.output) >= 3 and describe(kernel, *where)["fold"] == 1:
            assert winograd_sizes(kernel, *where) is not None
            with_winograd += 1
        # The second limit only allows small tiles.
        for scratch_bytes in (64 << 20, 60_000):
            kernel = pack_deconvolution(
                case.filter, **case.static, scratch_bytes=scratch_bytes, algorithm="winograd"
            )
            case.check(kernel.run(case.data, case.pads_begin, case.output), "winograd")
    assert with_winograd > 20 // step  # the others have empty or short outputs


@pytest.mark.parametrize("extents", [(4, 4), (17, 30), (60, 7)])
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("pad", [0, 1, -2, 3])
def test_small_integers_are_exact(extents, batch, pad):
    """The weights of F(2, 2), F(3, 2) and F(2, 3) are sums and halves, exact in binary."""
    rng = np.random.default_rng(0)
    data = rng.integers(-8, 9, (batch, 41, *extents)).astype(np.float32)
    for size, stride in ((4, 2), (3, 1), (3, 2), (6, 2), (5, 1), (7, 1), (2, 2), (1, 1)):
        weights = rng.integers(-8, 9, (41, 23, size, size)).astype(np.float32)
        arguments = {"strides": (stride, stride), "dilations": (1, 1)}
        output = tuple(stride * x + 1 for x in extents)
        kernel = pack_deconvolution(weights, algorithm="winograd", **arguments)
        direct = pack_deconvolution(weights, algorithm="direct", **arguments)
        assert winograd_sizes(kernel, data, (pad, pad), output) is not None
        np.testing.assert_array_equal(
            kernel.run(data, (pad, pad), output), direct.run(data, (pad, pad), output)
        )


@pytest.mark.parametrize("element", ["float32", "float16"])
@pytest.mark.parametrize("strides", [(2,), (2, 2), (4, 3), (2, 2, 2)])
def test_kernel_equal_to_stride(element, strides):
    """Planes without gaps are copied as a whole."""
    rng = np.random.default_rng(0)
    extents = (17, 11, 6)[: len(strides)]
    weights = rng.integers(-4, 5, (16, 7, *strides)).astype(element)
    arguments = {"strides": strides, "dilations": (1,) * len(strides)}
    kernel = pack_deconvolution(weights, algorithm="winograd", **arguments)
    pads, output = (0,) * len(strides), tuple(s * x for s, x in zip(strides, extents, strict=True))
    whole = rng.integers(-4, 5, (2, 16, *(2 * x for x in extents))).astype(element)
    gaps = whole[(..., *(slice(x) for x in extents))]
    for data in (np.ascontiguousarray(gaps), gaps, gaps[..., ::-1]):
        assert winograd_sizes(kernel, data, pads, output) == ((1, 1),) * 3
        expected = naive(data, weights, groups=1, pads_begin=pads, output=output, **arguments)
        np.testing.assert_array_equal(kernel.run(data, pads, output), expected)


@pytest.mark.parametrize(
    "activation",
    [
        Activation(),
        Activation(ActivationType.RELU),
        Activation(ActivationType.LEAKY_RELU, slope=0.25),
        Activation(ActivationType.CLAMP, low=-2, high=3),
    ],
    ids=lambda a: a.type.name,
)
@pytest.mark.parametrize("groups", [1, 3])
def test_bias_and_activation(activation, groups):
    rng = np.random.default_rng(0)
    data = rng.integers(-3, 4, (2, 6 * groups, 9, 14)).astype(np.float32)
    weights = rng.integers(-3, 4, (6 * groups, 5, 4, 3)).astype(np.float32)
    bias = rng.integers(-50, 50, 5 * groups).astype(np.float32)
    arguments = {"strides": (2, 2), "dilations": (1, 1), "groups": groups, "bias": bias}
    # The output extends beyond the data, where it is the activated bias.
    plain = naive(data, weights, pads_begin=(-3, 1), output=(25, 33), **arguments)
    kernel = pack_deconvolution(weights, activation=activation, algorithm="winograd", **arguments)
    actual = kernel.run(data, (-3, 1), (25, 33))
    np.testing.assert_array_equal(actual, activation.apply(plain))


@pytest.mark.parametrize("size", [(3, 2), (4, 5)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 3)])
@pytest.mark.parametrize("pads", [(1, 1), (0, 5), (-2, 2)])
def test_convolution(size, dilations, pads):
    rng = np.random.default_rng(0)
    data = rng.integers(-8, 9, (2, 14, 19, 22)).astype(np.float32)
    weights = rng.integers(-8, 9, (10, 7, *size)).astype(np.float32)
    arguments = {"strides": (1, 1), "dilations": dilations, "groups": 2}
    kernel = pack_convolution(weights, algorithm="winograd", **arguments)
    # Two taps and four use F(2, 2) or F(3, 2), five use these or F(2, 3), whichever costs less.
    found = winograd_sizes(kernel, data, pads, (18, 21))
    allowed = {2: {2}, 3: {3}, 4: {2}, 5: {2, 3}}
    assert all(t in allowed[k] for (_, t), k in zip(found[1:], size, strict=True))
    expected = naive_convolution(data, weights, pads_begin=pads, output=(18, 21), **arguments)
    np.testing.assert_array_equal(kernel.run(data, pads, (18, 21)), expected)


def few_positions(monkeypatch, threads_used):
    """Return kernels of a layer with few positions and many channels, and data for them."""
    monkeypatch.setenv("DECONV_IR_ISA", "avx2" if "avx2" in ISAS else "")
    set_threads(threads_used)
    rng = np.random.default_rng(0)
    # Enough channels that sharing one transform outweighs waiting for the other threads.
    data = rng.standard_normal((1, 300, 8, 8), dtype=np.float32)
    weights = rng.standard_normal((300, 30, 5, 5), dtype=np.float32)
    arguments = {"strides": (2, 2), "dilations": (1, 1)}
    algorithms = ("winograd", "direct")
    return data, [
        pack_deconvolution(weights, algorithm=algorithm, **arguments) for algorithm in algorithms
    ]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("extents", "few"), [((9, 5), True), ((40, 40), False)])
def test_panels_of_long_vectors_are_narrow_where_positions_are_few(monkeypatch, isa, extents, few):
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    kernel = ones((64, 32, 4, 4), (2, 2))
    output = tuple(2 * n for n in extents)
    # F(2, 2) or F(3, 2): (9, 5) has 5 x 3 windows at most, which fit into one vector of 16.
    told = describe(kernel, np.ones((1, 64, *extents), np.float32), (1, 1), output)
    two_vectors = {"baseline": 8, "avx2": 16, "avx512": 32}[isa]
    assert told["width"] == (16 if few and isa == "avx512" else two_vectors)


@pytest.mark.skipif("avx512" not in ISAS, reason="shorter vectors have no such panels")
@pytest.mark.parametrize("channels", [5, 64, 150])
def test_three_vectors_are_a_panel_where_two_would_leave_more_empty(monkeypatch, channels):
    monkeypatch.setenv("DECONV_IR_ISA", "avx512")
    set_threads(1)
    rng = np.random.default_rng(channels)
    # F(2, 3): 8 x 6 windows.
    data = rng.standard_normal((1, channels, 16, 12), dtype=np.float32)
    weights = rng.standard_normal((channels, 43, 3, 3), dtype=np.float32)
    kernel, direct = (
        pack_deconvolution(weights, strides=(1, 1), dilations=(1, 1), algorithm=algorithm)
        for algorithm in ("winograd", "direct")
    )
    assert describe(kernel, data, (1, 1), (16, 12))["width"] == 48
    expected = direct.run(data, (1, 1), (16, 12))
    bound = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(kernel.run(data, (1, 1), (16, 12)), expected, rtol=0, atol=bound)
    data[0, 3, 15, 11] = 1e6
    expected = direct.run(data, (1, 1), (16, 12))
    actual = kernel.run(data, (1, 1), (16, 12))
    far = (..., slice(None, 14), slice(None))
    np.testing.assert_allclose(actual[far], expected[far], rtol=0, atol=bound)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("used", [1, 2, 5])
@pytest.mark.parametrize("machine", MACHINES)
def test_panels_are_shared_where_positions_are_few(monkeypatch, machine, used):
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    data, (kernel, direct) = few_positions(monkeypatch, used)
    told = describe(kernel, data, (2, 2), (15, 15))
    assert (told["fills"] > 0) is (used > 1)
    assert (told["shared_bytes"] > 0) is (used > 1)
    # Their memory is part of the scratchpad.
    each = told["bytes"] * min(used, told["jobs"])
    chosen = kernel.plan(data.shape, (2, 2), (15, 15)).algorithm
    assert chosen.scratch_bytes == each + told["shared_bytes"]
    actual, expected = (k.run(data, (2, 2), (15, 15)) for k in (kernel, direct))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)
    bad = data.copy()
    bad[0, 70, 2, 1] = np.nan
    assert np.array_equal(
        np.isnan(kernel.run(bad, (2, 2), (15, 15))), np.isnan(direct.run(bad, (2, 2), (15, 15)))
    )
    # With a smaller budget, other algorithms run.
    budget = UNLIMITED._replace(scratch_bytes=each + told["shared_bytes"] - 1)
    plan = kernel.plan(data.shape, (2, 2), (15, 15), budget)
    assert plan.scratchpad_bytes < each + told["shared_bytes"]
    actual = plan.run([data])[0]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("used", [2, 7, 200])
def test_chunks_for_some_threads_serve_others(used):
    """Rows of a layer with few positions are divided evenly among the threads of the first run."""
    rng = np.random.default_rng(0)
    data = rng.integers(-8, 9, (2, 228, 35, 4)).astype(np.float32)
    weights = rng.integers(-8, 9, (228, 38, 4, 4)).astype(np.float32)
    arguments = {"strides": (2, 2), "dilations": (1, 1)}
    where = {"groups": 1, "pads_begin": (1, 1), "output": (70, 8)}
    expected = naive(data, weights, **arguments, **where)
    kernel = pack_deconvolution(weights, algorithm="winograd", **arguments)
    for threads_used in (used, 1, 3):
        set_threads(threads_used)
        assert winograd_sizes(kernel, data, (1, 1), (70, 8)) is not None
        np.testing.assert_array_equal(kernel.run(data, (1, 1), (70, 8)), expected)


@pytest.mark.parametrize("value", [np.inf, np.nan, -3e38])
def test_a_product_of_panels_spreads_nothing(value):
    """If kernel and stride are equal, no data are added before the product."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-4, 5, (16, 7, 2, 2)).astype(np.float32)
    data = rng.integers(-4, 5, (1, 16, 9, 30)).astype(np.float32)
    data[0, 4, 8, 29] = value
    arguments = {"strides": (2, 2), "dilations": (1, 1)}
    kernel = pack_deconvolution(weights, algorithm="winograd", **arguments)
    assert winograd_sizes(kernel, data, (0, 0), (18, 60)) == ((1, 1),) * 3
    with np.errstate(all="ignore"):
        expected = naive(data, weights, groups=1, pads_begin=(0, 0), output=(18, 60), **arguments)
    np.testing.assert_array_equal(kernel.run(data, (0, 0), (18, 60)), expected)


@pytest.mark.parametrize("value", [1e13, -3e30])
def test_huge_weights_are_summed_directly(value):
    weights = np.ones((6, 5, 4, 4), np.float32)
    weights[3, 2, 1, 0] = value
    kernel = pack_deconvolution(weights, strides=(2, 2), dilations=(1, 1), algorithm="winograd")
    assert winograd_sizes(kernel, np.ones((1, 6, 9, 9), np.float32), (1, 1), (18, 18)) is None


def test_weights_serve_all_extents_and_pads(draw_case):
    case = draw_case(0, F32, 2, kernel=(4, 4), strides=(2, 2), dilations=(1, 1))
    kernel = pack_deconvolution(case.filter, **case.static, algorithm="winograd")
    rng = np.random.default_rng(0)
    for extents, pads, expected in [
        ((4, 4), (1, 1), True),
        ((40, 41), (1, 1), True),
        ((9, 9), (3, -5), True),
        (
            (9, 9),
            (0, 1),
            True,
        ),  # begins with other sub-convolutions, which have other weights
        ((9, 9), (1, 3), True),
    ]:
        case.data = rng.standard_normal((2, case.data.shape[1], *extents), dtype=np.float32)
        case.pads_begin, case.output = pads, tuple(2 * e + 1 for e in extents)
        case.answer = case.magnitude = None
        found = winograd_sizes(kernel, case.data, pads, case.output)
        assert (found is not None) is expected
        case.check(kernel.run(case.data, pads, case.output), "winograd")


def test_weights_of_two_forms_are_kept(draw_case) -> None:
    """Outputs that begin with other sub-convolutions take other weights: four forms in turn."""
    case = draw_case(0, F32, 2, kernel=(4, 4), strides=(2, 2), dilations=(1, 1))
    kernel = pack_deconvolution(case.filter, **case.static, algorithm="winograd")
    direct = pack_deconvolution(case.filter, **case.static, algorithm="direct")
    data = np.random.default_rng(0).integers(-8, 9, (1, case.data.shape[1], 9, 9)).astype(F32)
    packed = []
    for pads in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 1)]:
        found = kernel.run(data, pads, (17, 17))
        np.testing.assert_allclose(found, direct.run(data, pads, (17, 17)), 1e-5, 1e-4)
        packed.append(kernel.packed_bytes)
    assert packed[0] < packed[1] == packed[2] == packed[5]


@pytest.mark.parametrize("element", ["float32", "float16", "int8"])
def test_the_filter_is_not_kept_beside_its_packing(draw_case, dtype_of, element):
    case = draw_case(4, dtype_of(element), 2, channels=30)
    given = case.filter.copy()
    still_there = weakref.ref(given)
    kernel = pack_deconvolution(given, **case.static)
    del given
    assert still_there() is None
    np.testing.assert_array_equal(kernel.unpacked(), case.filter)


def test_the_transformed_weights_are_counted() -> None:
    """Weights of F(2, 2) take 9/4 of the filter's memory in two axes, those of F(3, 2) 16/4."""
    weights = np.ones((64, 64, 4, 4), np.float32)
    data, output = np.zeros((1, 64, 64, 64), np.float32), (128, 128)
    counted = {}
    for algorithm in ("direct", "winograd"):
        kernel = pack_deconvolution(weights, strides=(2, 2), dilations=(1, 1), algorithm=algorithm)
        assert kernel.packed_bytes == weights.nbytes
        kernel.run(data, (1, 1), output)
        counted[algorithm] = kernel.packed_bytes
    assert counted["direct"] == weights.nbytes
    assert counted["winograd"] - weights.nbytes in (9 * weights.nbytes // 4, 4 * weights.nbytes)


def test_weights_are_transformed_where_the_budget_allows_it(monkeypatch) -> None:
    monkeypatch.setenv("DECONV_IR_MACHINE", "zen3")
    weights = np.random.default_rng(0).standard_normal((64, 64, 4, 4), dtype=np.float32)
    data, where = np.ones((1, 64, 32, 32), np.float32), ((1, 1), (64, 64))
    kernel = ones(weights.shape, (2, 2), algorithm="auto")
    direct, winograd = kernel.plan(data.shape, *where, ScratchpadBudget(1 << 20)).candidates
    assert direct.weight_bytes == 0
    assert winograd.cycles < direct.cycles
    assert winograd.scratch_bytes <= 1 << 20
    assert not winograd.packed
    results = {}
    for turn, allowed in enumerate((False, True, False, True)):
        # Packed weights are used only if the budget allows it; a large scratchpad is not
        # sufficient.
        plan = kernel.plan(data.shape, *where, ScratchpadBudget((1 << 20) >> turn, allowed))
        chosen = plan.algorithm
        assert (chosen.weight_bytes > 0) == allowed == ("Winograd" in str(plan))
        assert chosen.scratch_bytes <= 1 << 20
        assert chosen.packed is (turn == 3)
        packed = (turn > 1) * winograd.weight_bytes
        assert kernel.packed_bytes == weights.nbytes + packed, "to ask packs nothing"
        result = plan.run([data])[0]
        np.testing.assert_allclose(result[:, :, 1:-1, 1:-1], 256, rtol=1e-5)
        np.testing.assert_array_equal(results.setdefault(allowed, result), result)
    assert kernel.packed_bytes == weights.nbytes + winograd.weight_bytes
    found = kernel.plan(data.shape, *where, ScratchpadBudget(1 << 20)).candidates
    assert found == (direct, winograd._replace(packed=True))


@pytest.mark.parametrize(("extent", "transforms"), [(64, True), (8, False)])
def test_a_filter_that_is_used_once_is_transformed_where_that_saves_time(
    monkeypatch, extent, transforms
) -> None:
    """The transform of 256x256 filters takes as long as some of their products."""
    monkeypatch.setenv("DECONV_IR_MACHINE", "zen3")
    weights = np.ones((256, 256, 3, 3), np.float32)
    data = np.ones((1, 256, extent, extent), np.float32)
    kernel = ones(weights.shape, (1, 1), algorithm="auto", kind=pack_convolution)
    assert "Winograd" in str(kernel.plan(data.shape, (0, 0), (extent - 2, extent - 2)))
    result = kernel.run(data, (0, 0), (extent - 2, extent - 2))
    np.testing.assert_allclose(result, 9 * 256, rtol=1e-5)
    assert (kernel.packed_bytes > weights.nbytes) is transforms


@pytest.mark.parametrize("outs", [5, 11, 30, 64, 65, 128])
@pytest.mark.parametrize("isa", ISAS)
def test_blocks_of_rows_need_not_be_those_of_the_packed_filter(isa, outs, monkeypatch) -> None:
    """The rows of a block may lie side by side or in two blocks; sums in f64 are the reference."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    rng = np.random.default_rng(outs)
    weights = rng.standard_normal((outs, 32, 3, 3)).astype(np.float32)
    data = rng.standard_normal((1, 32, 14, 14)).astype(np.float32)
    layer = pack_convolution(
        weights, strides=(1, 1), dilations=(1, 1), groups=1, algorithm="winograd"
    )
    windows = np.lib.stride_tricks.sliding_window_view(data.astype(np.float64), (3, 3), (2, 3))
    expected = np.einsum("niyxab,oiab->noyx", windows, weights.astype(np.float64))
    plan = layer.plan(data.shape, (0, 0), (12, 12))
    assert "Winograd" in str(plan)
    np.testing.assert_allclose(plan.run([data])[0], expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", [pack_deconvolution, pack_convolution])
@pytest.mark.parametrize("extents", [(6, 30), (5, 40), (12, 12)])
def test_the_choice_does_not_depend_on_earlier_runs(kind, extents) -> None:
    """A larger batch arranges the weights that are kept in other chunks."""
    weights = np.random.default_rng(0).standard_normal((64, 64, 3, 3), dtype=np.float32)
    kernel = kind(weights, strides=(1, 1), dilations=(1, 1))
    image, batch = (1, 64, *extents), (7, 64, *extents)
    fresh = kernel.plan(image, (1, 1), extents).candidates
    kernel.plan(batch, (1, 1), extents).run([np.ones(batch, np.float32)])
    again = kernel.plan(image, (1, 1), extents).candidates
    assert again[0] == fresh[0]
    assert [c._replace(packed=False) for c in again] == list(fresh)
