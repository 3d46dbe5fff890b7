"""Boxes and regions, patches, color, sampling and searching."""

from __future__ import annotations

import itertools

import numpy as np

from .dsl import BF16, Case, c, f32, i64, o, ov, p, s64


def cases():
    yield from suppression()
    yield from multiclass()
    yield from regions()
    yield from patches()
    yield from searching()
    yield from color()
    yield from spectra()
    yield from matrices()
    yield from deformable()
    yield from binary()
    yield from darknet()
    yield from decoders()


def boxes(batches, count, *, seed=0, center=False):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 1, (batches, count, 2))
    size = rng.uniform(0.1, 0.8, (batches, count, 2))
    return np.concatenate([low, size if center else low + size], -1)


def suppression():
    for version, encoding, ordered in itertools.product(
        (1, 3, 4, 5, 9), ("corner", "center"), (True, False)
    ):
        given = boxes(2, 9, center=encoding == "center")
        yield Case(
            f"non_max_suppression-{version}-{encoding}-{ordered}",
            lambda b, s, n, i, t, v=version, e=encoding, r=ordered: (
                o[v].non_max_suppression(b, s, n, i, t, e, r)
                if v < 5
                else o[v].non_max_suppression(
                    b, s, n, i, t, box_encoding=e, sort_result_descending=r
                )
            ),
            (
                f32(2, 9, 4, values=given),
                f32(2, 3, 9, low=0, high=1),
                s64(4),
                c(0.3),
                c(0.2),
            ),
            semantics="openvino",
            dynamic=version > 3,  # OpenVINO infers fewer rows than it returns
        )
    for version, kind, sigma in itertools.product((5, 9), ("i32", "i64"), (0.0, 0.4)):
        yield Case(
            f"non_max_suppression-{version}-{kind}-sigma-{sigma}",
            lambda b, s, n, i, t, g, v=version, k=kind: o[v].non_max_suppression(
                b, s, n, i, t, g, output_type=k
            ),
            (
                f32(1, 12, 4, values=boxes(1, 12, seed=1)),
                f32(1, 2, 12, low=0, high=1),
                s64(20),
                c(0.6),
                c(0.25),
                c(sigma),
            ),
            semantics="openvino",
        )
    yield Case(
        "non_max_suppression-f16",
        lambda b, s, n, i: o[9].non_max_suppression(b, s, n, i),
        (p("f16", 1, 6, 4, values=boxes(1, 6)), p("f16", 1, 2, 6, low=0, high=1), s64(3), c(0.4)),
        semantics="openvino",
    )


def turned(count):
    rng = np.random.default_rng(4)
    return np.concatenate(
        [
            rng.uniform(0, 3, (2, count, 2)),
            rng.uniform(1, 2, (2, count, 2)),
            rng.uniform(-3, 3, (2, count, 1)),
        ],
        -1,
    )


def multiclass():
    for clockwise, ordered in itertools.product((True, False), (True, False)):
        yield Case(
            f"nms_rotated-{clockwise}-{ordered}",
            lambda b, s, n, i, t, w=clockwise, r=ordered: o[13].nms_rotated(
                b, s, n, i, t, r, "i32", w
            ),
            (f32(2, 8, 5, values=turned(8)), f32(2, 3, 8, low=0, high=1), s64(5), c(0.3), c(0.1)),
            semantics="openvino",
        )
    for order, across, kept in itertools.product(("classid", "score"), (True, False), (-1, 5)):
        common = {
            "sort_result_type": order,
            "sort_result_across_batch": across,
            "keep_top_k": kept,
            "score_threshold": 0.2,
            "nms_top_k": 6,
        }
        given = (f32(2, 9, 4, values=boxes(2, 9)), f32(2, 3, 9, low=0, high=1))
        # Within an image, the CPU plugin's MatrixNms only supports the order by score.
        decays = ("linear", "gaussian") if across or order == "score" else ()
        for decay, normalized in itertools.product(decays, (True, False)):
            yield Case(
                f"matrix_nms-{order}-{across}-{kept}-{decay}-{normalized}",
                lambda b, s, d=decay, n=normalized, a=common: o[8].matrix_nms(
                    b, s, decay_function=d, normalized=n, post_threshold=0.1, output_type="i32", **a
                ),
                given,
            )
        for version, eta, background in itertools.product((8, 9), (1.0, 0.7), (-1, 1)):
            yield Case(
                f"multiclass_nms-{version}-{order}-{across}-{kept}-{eta}-{background}",
                lambda b, s, v=version, e=eta, g=background, a=common: o[v].multiclass_nms(
                    b, s, iou_threshold=0.6, nms_eta=e, background_class=g, **a
                ),
                given,
                dynamic=False,  # OpenVINO's shape rule fails on scores of unknown rank
            )
        yield Case(
            f"multiclass_nms-9-{order}-{across}-{kept}-roisnum",
            lambda b, s, n, a=common: o[9].multiclass_nms(b, s, n, iou_threshold=0.4, **a),
            (
                f32(3, 9, 4, values=boxes(3, 9)),
                f32(3, 9, low=0, high=1),
                p("i64", 2, values=[5, 4]),
            ),
            dynamic=False,
        )


def regions():
    rois = [[0, 0, 7, 6], [1.5, 2.25, 9, 12], [3, 3, 3.2, 3.1], [-4, -2, 20, 18], [2, 1, 5, 8]]
    for mode, ratio, scale in itertools.product(("avg", "max"), (0, 2, 3), (1.0, 0.5)):
        # The CPU plugin's maximum is at least 0.
        low = 0.0 if mode == "max" else -2.0
        yield Case(
            f"roi_align-3-{mode}-{ratio}-{scale}",
            lambda x, r, b, m=mode, n=ratio, s=scale: o[3].roi_align(x, r, b, 2, 3, n, s, m),
            (f32(2, 3, 7, 8, low=low), f32(5, 4, values=rois), p("i64", 5, values=[0, 1, 1, 0, 0])),
            tolerance=1e-4,
        )
        for aligned in ("asymmetric", "half_pixel_for_nn", "half_pixel"):
            yield Case(
                f"roi_align-9-{mode}-{ratio}-{scale}-{aligned}",
                lambda x, r, b, m=mode, n=ratio, s=scale, a=aligned: o[9].roi_align(
                    x, r, b, 3, 2, n, s, m, a
                ),
                (
                    f32(2, 3, 7, 8, low=low),
                    f32(5, 4, values=rois),
                    p("i32", 5, values=[0, 1, 1, 0, 0]),
                ),
                tolerance=1e-4,
            )
    turned = [[3, 3, 4, 3, 0.3], [4, 2, 9, 12, -1.2], [1, 6, 2, 2, 2.5]]
    for ratio, clockwise in itertools.product((0, 2), (True, False)):
        yield Case(
            f"roi_align_rotated-{ratio}-{clockwise}",
            lambda x, r, b, n=ratio, w=clockwise: o[15].roi_align_rotated(
                x, r, b, 2, 3, n, 0.75, w
            ),
            (f32(2, 3, 7, 8), f32(3, 5, values=turned), p("i32", 3, values=[0, 1, 1])),
            tolerance=1e-4,
        )


def patches():
    for sizes, strides, rates, pad in [
        ([3, 3], [5, 5], [1, 1], "valid"),
        ([4, 4], [8, 8], [1, 1], "valid"),
        ([3, 2], [2, 3], [2, 1], "same_upper"),
        ([2, 3], [3, 2], [1, 2], "same_lower"),
    ]:
        for kind in ("f32", "f16", "i32"):
            yield Case(
                f"extract_image_patches-{sizes}-{rates}-{pad}-{kind}",
                lambda x, k=sizes, s=strides, r=rates, a=pad: o[3].extract_image_patches(
                    x, k, s, r, a
                ),
                (p(kind, 2, 3, 10, 11),),
            )
    for attributes, data in [
        ({}, (2, 12, 225)),
        ({"strides": [2, 2], "pads_begin": [1, 1], "pads_end": [1, 1]}, (12, 81)),
        ({"dilations": [3, 2], "strides": [1, 2]}, (1, 8, 13 * 7)),
    ]:
        yield Case(
            f"col2im-{data}",
            lambda x, s, k, a=attributes: o[15].col2im(x, s, k, **a),
            (f32(*data), i64(16, 16), i64(2, 2)),
        )


def searching():
    for right, kind in itertools.product((True, False), ("i32", "i64")):
        yield Case(
            f"bucketize-{right}-{kind}",
            lambda x, b, r=right, k=kind: o[3].bucketize(x, b, k, r),
            (f32(3, 4, values=[-3, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 9, 0]), c([-1, 1, 2, 4])),
        )
        yield Case(
            f"search_sorted-{right}-{kind}",
            lambda x, v, r=right, k=kind: o[15].search_sorted(x, v, r, k),
            (
                f32(2, 5, values=[1, 3, 5, 7, 9, 0, 2, 4, 6, 8]),
                f32(2, 3, values=[3, 6, 9, 3, 6, 9]),
            ),
        )
    yield Case(
        "search_sorted-one-row",
        lambda x, v: o[15].search_sorted(x, v),
        (p("i32", 4, values=[1, 3, 3, 7]), p("i32", 2, 2, values=[3, 0, 9, 1])),
    )
    repeated = [5, 1, 5, 3, 1, 1, 5, 3, 2, 2, 5, 1]
    for ordered in (True, False):
        yield Case(
            f"unique-{ordered}",
            lambda x, s=ordered: o[10].unique(x, None, s, "i32", "i64"),
            (p("f32", 3, 4, values=repeated),),
            dynamic=False,
        )
        for axis in (0, 1, -1):
            yield Case(
                f"unique-{ordered}-{axis}",
                lambda x, a, s=ordered: o[10].unique(x, a, s),
                (p("i32", 3, 4, values=[5, 1, 1, 3, 2, 2, 2, 1, 5, 1, 1, 3]), s64(axis)),
                dynamic=False,
            )
    for fill, kind, given in itertools.product(
        ("ZERO", "LOWEST"), ("f32", "i32"), ((), (s64(3),), (s64(7),))
    ):
        yield Case(
            f"segment_max-{fill}-{kind}-{len(given) and given[0].values}",
            lambda x, i, *n, f=fill: o[16].segment_max(x, i, *(n or (None,)), f),
            (p(kind, 6, 2), i64(0, 0, 2, 2, 2, 4), *given),
        )
    for kind, low, high in (
        ("f32", -2, 3),
        ("f16", 0, 1),
        ("bf16", 0, 4),
        ("i32", -5, 70),
        ("i64", 0, 9),
    ):
        yield Case(
            f"random_uniform-{kind}",
            lambda s, a, b, k=kind: o[8].random_uniform(s, a, b, k, 150, 10),
            (
                p("i64", 2, values=[3, 7], fixed=True),
                p(kind, values=low, fixed=True),
                p(kind, values=high, fixed=True),
            ),
            dynamic=False,
            fault="" if kind != "bf16" or BF16 else "draws as for f32 where it has no bf16",
        )


def color():
    for name, kind in itertools.product(
        ("nv12_to_rgb", "nv12_to_bgr", "i420_to_rgb", "i420_to_bgr"), ("u8", "f32")
    ):
        whole = {"low": 0, "high": 255}
        yield Case(
            f"{name}-{kind}", lambda x, n=name: getattr(o[8], n)(x), (p(kind, 2, 9, 8, 1, **whole),)
        )
        halves = (2,) if name.startswith("nv12") else (1, 1)
        yield Case(
            f"{name}-{kind}-planes",
            lambda *x, n=name: getattr(o[8], n)(*x),
            (
                p(kind, 2, 6, 8, 1, **whole),
                *(p(kind, 2, 3, 4, count, **whole) for count in halves),
            ),
        )


def spectra():
    for transpose, window, batch in itertools.product((True, False), (16, 11), ((), (2,))):
        yield Case(
            f"stft-{transpose}-{window}-{batch}",
            lambda x, w, n, s, t=transpose: o[15].stft(x, w, n, s, t),
            (f32(*batch, 53), f32(window, low=0.1), s64(16), s64(6)),
            tolerance=1e-4,
        )
    for center, normalized, batch in itertools.product((True, False), (True, False), ((), (2,))):
        for length in (None, 35, 64):
            given = () if length is None else (s64(length),)
            yield Case(
                f"istft-{center}-{normalized}-{batch}-{length}",
                lambda x, w, n, s, *g, c=center, m=normalized: o[16].istft(x, w, n, s, c, m, *g),
                (f32(*batch, 9, 7, 2), f32(14, low=0.2), s64(16), s64(6), *given),
                tolerance=1e-4,
            )


def matrices():
    square = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4, 4)) + 3 * np.eye(4)
    for adjoint, kind in itertools.product((True, False), ("f32", "f16")):
        yield Case(
            f"inverse-{adjoint}-{kind}",
            lambda x, a=adjoint: o[14].inverse(x, a),
            (p(kind, 2, 3, 4, 4, values=square),),
            tolerance=1e-4 if kind == "f32" else 1e-2,
        )
    for shape, kind in itertools.product(((2, 3), (2, 3, 4), (2, 3, 4, 5)), ("f32", "f16")):
        yield Case(f"grn-{shape}-{kind}", lambda x: o[1].grn(x, 0.5), (p(kind, *shape),))
    yield Case(
        "slice_scatter",
        lambda x, u, b, e, s, a: o[15].slice_scatter(x, u, b, e, s, a),
        (f32(4, 9), f32(4, 3), i64(1), i64(-1), i64(3), i64(1)),
    )
    yield Case(
        "slice_scatter-backward",
        lambda x, u, b, e, s: o[15].slice_scatter(x, u, b, e, s),
        (p("i32", 6, 3), p("i32", 2, 3), i64(4), i64(0), i64(-2)),
    )
    for one, other in (("i32", "f64"), ("u8", "i8"), ("f16", "bf16"), ("boolean", "i64")):
        yield Case(
            f"convert_promote_types-{one}-{other}",
            lambda a, b: o[14].convert_promote_types(a, b, True),
            (p(one, 2, 3, low=0), p(other, 4, low=0)),
        )
    yield Case(
        "convert_promote_types-scalar",
        lambda a, b: o[14].convert_promote_types(a, b, True, True),
        (p("f16", 2, 3), p("f32", fixed=True)),
        dynamic=False,
    )
    for kind, wide in itertools.product(("f8e4m3", "f8e5m2"), (2.0, 1e5)):
        yield Case(
            f"fake_convert-{kind}-{wide}",
            lambda x, s, k=kind: o[13].fake_convert(x, s, None, k),
            (f32(3, 40, low=-wide, high=wide), c([[0.5], [1.0], [3.0]])),
        )
        yield Case(
            f"fake_convert-{kind}-{wide}-shift",
            lambda x, s, z, k=kind: o[13].fake_convert(x, s, z, k),
            (f32(3, 40, low=-wide, high=wide), c([[0.5], [1.0], [3.0]]), c([[0.25], [0.0], [1.0]])),
            tolerance=0.02,  # OpenVINO rounds intermediate results to f16
        )


def deformable():
    for version, groups, offset_groups, pad in itertools.product(
        (1, 8), (1, 2), (1, 2), ("explicit", "same_upper")
    ):
        window = ([2, 1], [1, 0], [1, 2], [1, 2])
        rows = (9 + 2 - 3) // 2 + 1 if pad == "explicit" else 5
        columns = 8 + 2 - 5 + 1 if pad == "explicit" else 8
        data = (
            f32(2, 4, 9, 8),
            f32(2, 18 * offset_groups, rows, columns),
            f32(6, 4 // groups, 3, 3),
        )
        for edges in (False, True) if version == 8 else (False,):
            mask = (f32(2, 9 * offset_groups, rows, columns),) if version == 8 else ()
            more = {"bilinear_interpolation_pad": edges} if version == 8 else {}
            yield Case(
                f"deformable_convolution-{version}-{groups}-{offset_groups}-{pad}-{edges}",
                lambda x, f, w, *m, v=version, g=groups, d=offset_groups, a=pad, e=more, k=window: (
                    o[v].deformable_convolution(
                        x,
                        f,
                        w,
                        k[0],
                        k[1],
                        k[2],
                        k[3],
                        *m,
                        auto_pad=a,
                        group=g,
                        deformable_group=d,
                        **e,
                    )
                ),
                (*data, *mask),
                tolerance=1e-4,
                dynamic=False,
            )


def darknet():
    for stride in (1, 2, 3):
        yield Case(
            f"reorg_yolo-{stride}",
            lambda x, s=stride: o[2].reorg_yolo(x, [s]),
            (f32(2, 2 * stride * stride, 3 * stride, 2 * stride),),
        )
    for softmax, mask in ((True, [0, 1, 2]), (False, [1, 2])):
        count = 3 if softmax else len(mask)
        yield Case(
            f"region_yolo-{softmax}",
            lambda x, s=softmax, m=mask: o[1].region_yolo(x, 4, 5, 3, s, m, 1, 3, [1.0, 2.0]),
            (f32(2, count * 10, 3, 4),),
        )


def decoders():
    for merge in (True, False):
        mask = np.array([[1, 1]] * 5 + [[1, 0]] * 3)
        yield Case(
            f"ctc_greedy_decoder-{merge}",
            lambda x, m, r=merge: o[1].ctc_greedy_decoder(x, m, r),
            (f32(8, 2, 3), f32(8, 2, values=mask)),
        )
        for given in ((), (c([1], "i32"),)):
            yield Case(
                f"ctc_greedy_decoder_seq_len-{merge}-{len(given)}",
                lambda x, n, *b, r=merge: o[6].ctc_greedy_decoder_seq_len(
                    x, n, *(b or (None,)), r, "i32", "i64"
                ),
                (f32(2, 8, 3), p("i32", 2, values=[8, 5]), *given),
            )

    for merge, collapse, unique, kind in itertools.product(
        (True, False), (True, False), (True, False), ("f32", "f16")
    ):
        yield Case(
            f"ctc_loss-{merge}-{collapse}-{unique}-{kind}",
            lambda x, n, y, m, b, a=(collapse, merge, unique): o[4].ctc_loss(x, n, y, m, b, *a),
            (
                p(kind, 2, 8, 5),
                p("i32", 2, values=[8, 6]),
                p("i32", 2, 8, values=[[0, 0, 1, 2, 2, 1, 3, 3], [3, 1, 1, 0, 2, 2, 1, 0]]),
                p("i32", 2, values=[5, 3]),
                c(4, "i32"),
            ),
            tolerance=1e-4 if kind == "f32" else 1e-2,
        )


def binary():
    """Store the filter's bits as converters of binary networks did, from the lowest bit."""
    rng = np.random.default_rng(0)
    for pad_value, channels, attributes in [
        (0.0, 8, ([1, 1], [1, 1], [1, 1], [1, 1])), (1.0, 16, ([2, 1], [1, 0], [2, 1], [1, 1])),
        (-1.0, 8, ([1, 1], [2, 2], [1, 2], [2, 1])), (0.5, 40, ([1, 2], [1, 1], [1, 1], [1, 1])),
    ]:  # fmt: skip
        stored = rng.integers(0, 256, 3 * channels * 9 // 8, np.uint8)
        tensor = ov.Tensor(stored, [3, channels, 3, 3], ov.Type.u1)
        for auto_pad in ("explicit", "same_upper", "same_lower", "valid"):
            more = (*attributes, "xnor-popcount", pad_value, auto_pad)
            yield Case(
                f"binary_convolution-{pad_value}-{channels}-{auto_pad}",
                lambda x, w=tensor, a=more: o[1].binary_convolution(x, o[13].constant(w), *a),
                (f32(2, channels, 7, 8),),
                semantics="openvino",
            )
