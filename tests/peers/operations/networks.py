"""Convolutions, poolings, normalisations, interpolation, recurrent layers."""

from __future__ import annotations

import itertools

import numpy as np

from .dsl import Case, c, f32, i64, node, o, p


def cases():
    yield from convolutions()
    yield from poolings()
    yield from products()
    yield from normalisations()
    yield from interpolations()
    yield from recurrent()


def convolutions():
    for name, data, kernel, s, d, pb, pe, auto in [
        ("1d", (2, 3, 9), (4, 3, 3), [2], [1], [1], [0], "explicit"),
        ("2d", (2, 3, 8, 9), (4, 3, 3, 2), [2, 1], [1, 2], [1, 0], [2, 1], "explicit"),
        ("3d", (1, 2, 5, 6, 7), (3, 2, 2, 3, 3), [1, 2, 1], [1, 1, 2], [0, 1, 2], [1, 1, 0],
         "explicit"),
        ("1x1", (2, 3, 4, 5), (6, 3, 1, 1), [1, 1], [1, 1], [0, 0], [0, 0], "explicit"),
        ("upper", (1, 3, 8, 9), (4, 3, 4, 3), [3, 2], [1, 1], [9, 9], [9, 9], "same_upper"),
        ("lower", (1, 3, 8, 9), (4, 3, 4, 3), [3, 2], [1, 1], [0, 0], [0, 0], "same_lower"),
        ("valid", (1, 3, 8, 9), (4, 3, 4, 3), [3, 2], [1, 2], [1, 1], [1, 1], "valid"),
    ]:  # fmt: skip
        for kind in ("f32", "f16"):
            yield Case(
                f"convolution-{name}-{kind}",
                lambda x, w, a=(s, pb, pe, d, auto): o[1].convolution(x, w, *a),
                (p(kind, *data), p(kind, *kernel)),
            )
        groups = (2, kernel[0], *kernel[1:])
        yield Case(
            f"group_convolution-{name}",
            lambda x, w, a=(s, pb, pe, d, auto): o[1].group_convolution(x, w, *a),
            (f32(data[0], data[1] * 2, *data[2:]), f32(*groups)),
        )
    depthwise = (5, 1, 1, 3, 3)
    yield Case(
        "group_convolution-depthwise",
        lambda x, w: o[1].group_convolution(x, w, [1, 1], [1, 1], [1, 1], [1, 1]),
        (f32(2, 5, 6, 7), c(np.arange(45).reshape(depthwise) / 45)),
    )


def poolings():
    for auto, rounding, (pb, pe) in itertools.product(
        ("explicit", "same_upper", "same_lower", "valid"),
        ("floor", "ceil", "ceil_torch"),
        (([0, 0], [0, 0]), ([1, 1], [0, 1])),
    ):
        if auto != "explicit" and (rounding != "floor" or pb != [0, 0]):
            continue
        for s, k in (([2, 3], [3, 2]), ([1, 1], [2, 2]), ([2, 2], [2, 3])):
            how = (pb, pe, k)
            tail = (rounding, auto)
            key = f"{auto}-{rounding}-{pb}-{s}-{k}"
            if rounding != "ceil_torch":
                yield Case(
                    f"max_pool1-{key}",
                    lambda x, s=s, h=how, t=tail: o[1].max_pool(x, s, *h, *t),
                    (f32(1, 2, 8, 9),),
                    # Windows of padding alone are finite in OpenVINO, -inf in the documents.
                    semantics="openvino",
                )
            for exclude in (True, False):
                for version in (1, 14):
                    if rounding == "ceil_torch" and version == 1:
                        continue
                    yield Case(
                        f"avg_pool{version}-{key}-{exclude}",
                        lambda x, s=s, h=how, t=tail, e=exclude, v=version: o[v].avg_pool(
                            x, s, *h, e, *t
                        ),
                        (f32(1, 2, 8, 9),),
                        # With pads, OpenVINO divides by the whole window, unlike torch and ONNX.
                        semantics="openvino",
                    )
            for version, d in ((8, [1, 1]), (14, [1, 1]), (14, [2, 1])):
                if rounding == "ceil_torch" and version == 8:
                    continue
                yield Case(
                    f"max_pool{version}-{key}-{d}",
                    lambda x, s=s, h=how, t=tail, v=version, d=d: o[v].max_pool(
                        x, s, d, *h, *t, index_element_type="i32", axis=2
                    ),
                    (f32(1, 2, 8, 9),),
                    semantics="openvino",
                )
    for exclude, dilations in itertools.product((True, False), ([1, 1], [2, 1], [1, 3])):
        yield Case(
            f"avg_pool16-{exclude}-{dilations}",
            lambda x, e=exclude, d=dilations: o[16].avg_pool(
                x, [1, 2], [1, 0], [0, 1], [2, 3], e, "floor", "explicit", d
            ),
            (f32(1, 2, 8, 9),),
        )
    yield Case(
        "max_pool8-axis0-3d",
        lambda x: o[8].max_pool(x, [1, 2, 1], [1, 1, 1], [0] * 3, [0] * 3, [2, 2, 2], axis=0),
        (f32(2, 3, 4, 5, 6),),
    )
    yield Case(
        "max_pool1-1d",
        lambda x: o[1].max_pool(x, [2], [1], [1], [3], "floor", "explicit"),
        (f32(2, 3, 9),),
        semantics="openvino",
    )
    yield Case(
        "avg_pool1-3d",
        lambda x: o[1].avg_pool(x, [2, 1, 1], [1, 0, 1], [0, 0, 1], [2, 2, 3], False),
        (f32(2, 3, 6, 5, 5),),
    )


def products():
    for a, b, ta, tb in [
        ((2, 3), (3, 4), False, False), ((3, 2), (3, 4), True, False),
        ((2, 3), (4, 3), False, True), ((5, 1, 2, 3), (4, 3, 6), False, False),
        ((3,), (3, 4), False, False), ((2, 3), (3,), False, False), ((3,), (3,), False, False),
        ((3,), (3, 4), True, False), ((2, 4, 3), (2, 5, 4), True, True),
    ]:  # fmt: skip
        yield Case(
            f"matmul-{a}-{b}-{ta}-{tb}",
            lambda x, y, ta=ta, tb=tb: o[1].matmul(x, y, ta, tb),
            (f32(*a), f32(*b)),
        )
    yield Case(
        "matmul-f16", lambda x, y: o[1].matmul(x, y, False, False), (p("f16", 3, 9), p("f16", 9, 2))
    )


def normalisations():
    for axis in (0, 1, 2):
        yield Case(f"softmax1-{axis}", lambda x, a=axis: o[1].softmax(x, a), (f32(2, 3, 4),))
    for axis in (0, -1, -2):
        for kind in ("f32", "f16"):
            yield Case(
                f"softmax8-{axis}-{kind}", lambda x, a=axis: o[8].softmax(x, a), (p(kind, 2, 3, 4),)
            )
        yield Case(f"log_softmax-{axis}", lambda x, a=axis: o[5].log_softmax(x, a), (f32(2, 3, 4),))
    for across, variance in itertools.product((True, False), repeat=2):
        yield Case(
            f"mvn1-{across}-{variance}",
            lambda x, a=across, v=variance: o[2].mvn(x, a, v, 0.01),
            (f32(2, 3, 4, 5),),
        )
    for axes, variance, mode in itertools.product(
        ([2, 3], [1, -1], [1, 2, 3]), (True, False), ("inside_sqrt", "outside_sqrt")
    ):
        yield Case(
            f"mvn6-{axes}-{variance}-{mode}",
            lambda x, a, v=variance, m=mode: o[6].mvn(x, a, v, 0.01, m),
            (f32(2, 3, 4, 5), i64(*axes)),
        )
    for groups, data in [(2, (2, 6, 4)), (6, (1, 6, 3, 5)), (1, (2, 6, 2, 2, 2))]:
        yield Case(
            f"group_normalization-{groups}",
            lambda x, s, b, g=groups: o[12].group_normalization(x, s, b, g, 1e-3),
            (f32(*data), f32(6), f32(6)),
        )
    positive = f32(3, low=0.5, high=2)
    for version in (1, 5):
        for data in ((2, 3), (2, 3, 4), (2, 3, 4, 5)):
            yield Case(
                f"batch_norm{version}-{data}",
                lambda x, g, b, m, v, n=version: o[n].batch_norm_inference(x, g, b, m, v, 1e-3),
                (f32(*data), f32(3), f32(3), f32(3), positive),
            )
    for axes, mode in itertools.product(([1], [1, 2, 3]), ("add", "max")):
        yield Case(
            f"normalize_l2-{axes}-{mode}",
            lambda x, a, m=mode: o[1].normalize_l2(x, a, 1e-3, m),
            (f32(2, 3, 4, 5), i64(*axes)),
        )
    for axes, size in itertools.product(([1], [2, 3]), (3, 5)):
        yield Case(
            f"lrn-{axes}-{size}",
            lambda x, a, s=size: o[1].lrn(x, a, 0.3, 0.75, 2, s),
            (f32(2, 6, 4, 5), i64(*axes)),
        )


COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners",
)  # fmt: skip
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


def interpolations():
    data, axes = (1, 2, 6, 7), i64(2, 3)
    for sizes in ([9, 14], [4, 5], [12, 3], [6, 7], [1, 1]):
        scales = [sizes[0] / 6, sizes[1] / 7]
        for where in COORDINATES:
            if sizes == [6, 7] and where == "tf_half_pixel_for_nn":
                # OpenVINO drops an Interpolate that keeps the shape; by the document this one
                # shifts the picture by half an element.
                continue
            for mode in ("linear", "linear_onnx", "cubic"):
                for by in ("sizes", "scales"):
                    yield interpolation4(data, sizes, scales, axes, mode, by, where)
            for near in NEAREST:
                yield interpolation4(data, sizes, scales, axes, "nearest", "sizes", where, near)
    yield interpolation4(
        data, [4, 5], [0.7, 0.71], axes, "linear", "scales", "half_pixel", anti=True
    )
    yield interpolation4(
        data, [3, 9], [0.5, 1.3], axes, "linear", "scales", "half_pixel", anti=True
    )
    for scale in (0.7, 1.2, 1.3, 2.9, 0.33333334, 1.6666666):
        yield interpolation4(
            data, [1, 1], [scale, scale], axes, "nearest", "scales", "asymmetric", "floor"
        )
    for mode in ("nearest", "linear_onnx", "cubic"):
        yield Case(
            f"interpolate11-{mode}",
            lambda x, s, a, m=mode: o[11].interpolate(x, s, m, "sizes", axes=a),
            (f32(*data), i64(9, 5), axes),
            semantics="openvino",
        )
        yield Case(
            f"interpolate11-{mode}-pads",
            lambda x, s, a, m=mode: o[11].interpolate(
                x, s, m, "scales", [0, 0, 1, 2], [0, 0, 0, 1], axes=a
            ),
            (f32(*data), c([1.5, 2.0]), axes),
        )
    for mode, coefficient in (("bilinear_pillow", -0.75), ("bicubic_pillow", -0.5)):
        for sizes in ([9, 14], [4, 5], [12, 3], [2, 2]):
            yield Case(
                f"interpolate11-{mode}-{sizes}",
                lambda x, s, a, m=mode, k=coefficient: o[11].interpolate(
                    x, s, m, "sizes", cube_coeff=k, axes=a
                ),
                (f32(*data), i64(*sizes), axes),
            )
    yield interpolation4(
        (1, 2, 3, 4, 5),
        [6, 7, 8],
        [2.0, 1.75, 1.6],
        i64(2, 3, 4),
        "linear_onnx",
        "sizes",
        "half_pixel",
    )
    for mode, corners in itertools.product(("nearest", "linear", "cubic"), (True, False)):
        for sizes in ([9, 14], [4, 5]):
            yield Case(
                f"interpolate1-{mode}-{corners}-{sizes}",
                lambda x, s, m=mode, k=corners: o[1].interpolate(
                    x, s, {"axes": [2, 3], "mode": m, "align_corners": k}
                ),
                (f32(*data), i64(*sizes)),
                semantics="openvino",
            )


def interpolation4(data, sizes, scales, axes, mode, by, where, near="floor", *, anti=False):
    def build(x, s, k, a):
        return node(
            "Interpolate", 4, (x, s, k, a), mode=mode, shape_calculation_mode=by,
            antialias=anti, coordinate_transformation_mode=where, nearest_mode=near,
            pads_begin=[0], pads_end=[0], cube_coeff=-0.75,
        )  # fmt: skip

    key = f"{mode}-{by}-{where}-{near}-{sizes}-{scales}"
    fault = "antialiases otherwise than the document" if anti else ""
    inputs = (f32(*data), i64(*sizes), c(scales), axes)
    # The runtime rounds the coordinates of nearest elements to f32.
    return Case(f"interpolate4-{key}", build, inputs, fault, semantics="openvino")


def recurrent():
    n, t, i, h = 2, 5, 3, 4

    def weights(directions, gates, biases=None):
        rng = np.random.default_rng(3)
        shapes = [(gates * h, i), (gates * h, h), ((biases or gates) * h,)]
        return [c(rng.uniform(-1, 1, (directions, *s) if directions else s)) for s in shapes]

    lengths = p("i32", n, values=[5, 3], fixed=True)
    for direction, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        x, state = f32(n, t, i), f32(n, d, h)
        yield Case(
            f"lstm_sequence-{direction}",
            lambda *a, k=direction: o[5].lstm_sequence(*a, h, k),
            (x, state, state, lengths, *weights(d, 4)),
        )
        yield Case(
            f"gru_sequence-{direction}",
            lambda *a, k=direction: o[5].gru_sequence(*a, h, k),
            (x, state, lengths, *weights(d, 3)),
        )
        yield Case(
            f"gru_sequence-{direction}-linear",
            lambda *a, k=direction: o[5].gru_sequence(*a, h, k, linear_before_reset=True),
            (x, state, lengths, *weights(d, 3, 4)),
        )
        yield Case(
            f"rnn_sequence-{direction}",
            lambda *a, k=direction: o[5].rnn_sequence(*a, h, k),
            (x, state, lengths, *weights(d, 1)),
        )
    x, state = f32(n, i), f32(n, h)
    for version in (1, 4):
        yield Case(
            f"lstm_cell{version}",
            lambda *a, v=version: o[v].lstm_cell(*a, h),
            (x, state, state, *weights(0, 4)),
        )
    yield Case(
        "lstm_cell4-clip", lambda *a: o[4].lstm_cell(*a, h, clip=0.3),
        (x, state, state, *weights(0, 4)),
    )  # fmt: skip
    yield Case("gru_cell", lambda *a: o[3].gru_cell(*a, h), (x, state, *weights(0, 3)))
    yield Case(
        "gru_cell-linear-clip",
        lambda *a: o[3].gru_cell(*a, h, clip=0.4, linear_before_reset=True),
        (x, state, *weights(0, 3, 4)),
    )
    yield Case(
        "gru_cell-activations",
        lambda *a: o[3].gru_cell(*a, h, activations=["tanh", "relu"]),
        (x, state, *weights(0, 3)),
    )
    yield Case(
        "rnn_cell",
        lambda *a: o[3].rnn_cell(*a, h, ["tanh"], [], []),
        (x, state, *weights(0, 1)),
    )
