"""Boxes and regions, patches, color, sampling and searching."""

from __future__ import annotations

import itertools

import numpy as np

from .dsl import Case, c, f32, i64, node, o, p, s64


def cases():
    yield from suppression()
    yield from regions()
    yield from patches()
    yield from searching()


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
            dynamic=version > 3,  # the rows that OpenVINO infers are fewer than those it gives
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


_ = node
