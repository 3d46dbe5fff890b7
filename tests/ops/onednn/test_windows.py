"""Convolutions, their gradients and pooling of oneDNN Graph, against loops in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, as_bytes, deconvolution, op, tensor, windows
from onednn_oracle import close, floats, gather, last, run, scatter

import deconv_ir
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_grouped_conv_transpose_takes_weights_as_ic_by_oc_over_groups(dtype: str) -> None:
    """Weights (IC, OC / groups, X) with strides, dilations and output_padding."""
    kind = deconv_ir.load(as_bytes(deconvolution([1, 4, 3], [4, 2, 2], [1, 2, 4], dtype)))
    element = kind.inputs["0"].element_type
    assert element is not None
    x = floats(2, 4, 3, 4).astype(element.numpy())
    w = floats(4, 3, 2, 3).astype(element.numpy())
    graph = deconvolution(
        x.shape,
        w.shape,
        [2, 6, 7, 9],
        dtype,
        strides=[2, 2],
        dilations=[2, 1],
        pads_begin=[0, 1],
        pads_end=[0, 0],
        output_padding=[0, 1, *ZEROS[2:]],
        groups=2,
    )
    (found,) = run(graph, arrays=[x, w])
    wanted = scatter(x.astype(float), w.astype(float), [2, 2], [0, 1], [7, 9], [2, 1], 2)
    assert found.dtype == element.numpy()
    close(found, wanted, {"f32": 1e-5, "bf16": 1e-2, "f16": 2e-3}[dtype])


def test_layouts_of_data_and_weights_are_the_same_computation() -> None:
    """NXC and XOI, with a bias."""
    x, w, b = floats(1, 4, 5, 5), floats(4, 3, 3, 3), floats(3)
    wanted = scatter(x, w, [1, 1], [1, 1], [5, 5]) + b.reshape(-1, 1, 1)
    graph = op(
        0,
        "ConvTranspose",
        [tensor(0, [1, 5, 5, 4]), tensor(1, [3, 3, 3, 4]), tensor(2, [3])],
        [tensor(3, [1, 5, 5, 3])],
        **windows([1, 1], [1, 1], [1, 1], data_format="NXC", filter_format="XOI"),
    )
    (found,) = run(graph, arrays=[last(x), np.moveaxis(w, (0, 1), (-1, -2)), b])
    close(found, last(wanted))


@pytest.mark.parametrize(("pad", "begin"), [("SAME_UPPER", 0), ("SAME_LOWER", 1), ("VALID", 0)])
def test_auto_pad_of_conv_transpose(pad: str, begin: int) -> None:
    """SAME_UPPER puts the odd pad at the end (S3); the declared pads are ignored."""
    x, w = floats(1, 2, 4), floats(2, 3, 3)
    extent = 9 if pad == "VALID" else 8
    graph = deconvolution(
        x.shape, w.shape, [1, 3, extent], strides=[2], auto_pad=pad, pads_begin=[7], pads_end=[7]
    )
    (found,) = run(graph, arrays=[x, w])
    close(found, scatter(x, w, [2], [begin], [extent]))


@pytest.mark.parametrize("stated", ["attribute", "zeros", "absent", "input"])
def test_the_shape_of_convolution_backward_data(stated: str) -> None:
    """dst_shape as attribute or input; absent, or zeros: the declared shape of the output."""
    x, w = floats(1, 4, 3, 3), floats(4, 2, 3, 3)
    attributes = windows([2, 2], [1, 0], [1, 0], weights_format="OIX", output_padding=ZEROS)
    inputs, arrays = [tensor(0, x.shape), tensor(1, w.shape)], [x, w]
    if stated == "attribute":
        attributes["dst_shape"] = [1, 2, 5, 7]
    elif stated == "zeros":
        attributes["dst_shape"] = ZEROS
    elif stated == "input":
        inputs.append(tensor(2, [4], "s32"))
        arrays.append(np.array([1, 2, 5, 7], np.int32))
    graph = op(0, "ConvolutionBackwardData", inputs, [tensor(9, [1, 2, 5, 7])], **attributes)
    (found,) = run(graph, arrays=arrays)
    close(found, scatter(x, w, [2, 2], [1, 0], [5, 7]))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_convolution_with_bias(groups: int, layout: str) -> None:
    """OIX and XIO, in groups."""
    x, w, b = floats(2, 4, 6, 5), floats(6, 4 // groups, 3, 2), floats(6)
    wanted = gather(x, w, [2, 1], [1, 0], [3, 3], [1, 2], groups) + b.reshape(-1, 1, 1)
    attributes = windows([2, 1], [1, 0], [0, 0], [1, 2], groups=groups, data_format=layout)
    weights, data, result = w, x, wanted
    if layout == "NXC":
        data, result = last(x), last(wanted)
        weights = np.moveaxis(w, (0, 1), (-1, -2))
    attributes["weights_format"] = "OIX" if layout == "NCX" else "XIO"
    graph = op(
        0,
        "Convolution",
        [tensor(0, data.shape), tensor(1, weights.shape), tensor(2, [6])],
        [tensor(3, result.shape)],
        **attributes,
    )
    (found,) = run(graph, arrays=[data, weights, b])
    close(found, result)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_gradients_are_the_adjoints_of_conv_transpose(groups: int, layout: str) -> None:
    """<dy, f(x, w)> is linear in x and in w, so gradients follow from the definition of f."""
    x, w, dy = floats(2, 4, 3, 4), floats(4, 6 // groups, 3, 2), floats(2, 6, 6, 8)
    settings = windows([2, 2], [1, 0], [0, 1], [1, 2], groups=groups, data_format=layout)
    turned = layout == "NXC"
    form = {"weights_format": "XOI" if turned else "IOX"}
    data, grad = (last(x), last(dy)) if turned else (x, dy)
    weights = np.moveaxis(w, (0, 1), (-1, -2)) if turned else w

    def value(x: Any, w: Any) -> Any:
        return scatter(x, w, [2, 2], [1, 0], [6, 8], [1, 2], groups)

    wanted = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        one = np.zeros(x.shape)
        one[at] = 1
        wanted[at] = (value(one, w.astype(float)) * dy).sum()
    graph = op(
        0,
        "ConvTransposeBackwardData",
        [tensor(0, grad.shape), tensor(1, weights.shape)],
        [tensor(2, data.shape)],
        **settings | form,
    )
    (found,) = run(graph, arrays=[grad, weights])
    close(found, last(wanted) if turned else wanted)

    wanted = np.zeros(w.shape)
    for at in np.ndindex(*w.shape):
        one = np.zeros(w.shape)
        one[at] = 1
        wanted[at] = (value(x.astype(float), one) * dy).sum()
    graph = op(
        0,
        "ConvTransposeBackwardWeights",
        [tensor(0, data.shape), tensor(1, grad.shape)],
        [tensor(2, weights.shape)],
        weights_shape=list(weights.shape),
        **settings | form,
    )
    (found,) = run(graph, arrays=[data, grad])
    close(found, np.moveaxis(wanted, (0, 1), (-1, -2)) if turned else wanted)


def test_gradient_of_convolution_with_respect_to_its_weights() -> None:
    """In groups, strided, with weights_shape as an input."""
    x, dy = floats(2, 4, 7), floats(2, 6, 4)
    wanted = np.zeros((6, 2, 3))
    for at in np.ndindex(*wanted.shape):
        one = np.zeros(wanted.shape)
        one[at] = 1
        wanted[at] = (gather(x.astype(float), one, [2], [1], [4], [1], 2) * dy).sum()
    graph = op(
        0,
        "ConvolutionBackwardWeights",
        [tensor(0, x.shape), tensor(1, dy.shape), tensor(2, [3], "s32")],
        [tensor(3, [6, 2, 3])],
        **windows([2], [1], [1], groups=2, weights_format="OIX"),
    )
    (found,) = run(graph, arrays=[x, dy, np.array([6, 2, 3], np.int32)])
    close(found, wanted)


def test_a_gradient_of_other_weights_is_refused_before_it_runs() -> None:
    """Three outputs, where a kernel of 3 with stride 2 has four: found when shapes are inferred."""
    graph = op(
        0,
        "ConvolutionBackwardWeights",
        [tensor(0, (2, 4, 7)), tensor(1, (2, 6, 3))],
        [tensor(2, [6, 4, 3])],
        weights_shape=[6, 4, 3],
        **windows([2], [1], [1], weights_format="OIX"),
    )
    with pytest.raises(deconv_ir.DeconvError, match="diff_dst"):
        deconv_ir.load(as_bytes(graph)).infer_shapes()


@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_pooling(layout: str) -> None:
    """Windows of 3 with stride 2, pads that are excluded from the mean or not, floor and ceil."""
    x = floats(1, 2, 7, 6)
    turn = last if layout == "NXC" else np.asarray
    data = turn(x)

    def window(y: int, extent: int) -> range:
        return range(max(0, 2 * y - 1), min(extent, 2 * y + 2))

    for kind, extra in (
        ("MaxPool", {}),
        ("AvgPool", {"exclude_pad": True}),
        ("AvgPool", {"exclude_pad": False}),
    ):
        wanted = np.zeros((1, 2, 4, 3))
        for c, i, j in np.ndindex(2, 4, 3):
            part = x[0, c][np.ix_(window(i, 7), window(j, 6))].astype(float)
            count = part.size if extra.get("exclude_pad") else 9
            wanted[0, c, i, j] = part.max() if kind == "MaxPool" else part.sum() / count
        result = turn(wanted)
        graph = op(
            0,
            kind,
            [tensor(0, data.shape)],
            [tensor(1, result.shape)],
            strides=[2, 2],
            kernel=[3, 3],
            pads_begin=[1, 1],
            pads_end=[1, 1],
            data_format=layout,
            rounding_type="floor",
            **extra,
        )
        (found,) = run(graph, arrays=[data])
        close(found, result)


@pytest.mark.parametrize("attribute", ["pads_begin", "pads_end"])
@pytest.mark.parametrize(
    "kind",
    [
        "Convolution", "MaxPool", "AvgPool", "ConvTranspose", "ConvolutionBackwardData",
        "ConvTransposeBackwardData", "ConvolutionBackwardWeights",
    ],
)  # fmt: skip
def test_negative_pads_are_an_error(kind: str, attribute: str) -> None:
    """The library refuses them: check_pads in op_def_constraint.cpp of oneDNN."""
    attributes: dict[str, Any] = windows([1], [0], [0], weights_format="OIX") | {attribute: [-1]}
    if kind.endswith("Pool"):
        attributes |= {"kernel": [2], "exclude_pad": True}
    inputs = [tensor(0, [1, 2, 5]), tensor(1, [2, 2, 2])][: 1 if kind.endswith("Pool") else 2]
    graph = as_bytes(op(0, kind, inputs, [tensor(2, [1, 2, 5])], **attributes))
    with pytest.raises(deconv_ir.DeconvError, match=rf"{kind}.*{attribute}.*-1"):
        deconv_ir.load(graph, warn=False)
    findings = check_bytes(graph, "g.json", choose()).findings
    assert any(f.severity.value == "error" and attribute in f.message for f in findings)


LIBRARY = [
    # By hand, of x = 1, 2, 3: full = 1 10 22 20 43 30 60 with stride 2 and w = 1, 10, 20.
    ("ConvolutionBackwardData", "SAME_UPPER", [1, 10, 20], 6, [10, 22, 20, 43, 30, 60],
     [1, 10, 22, 20, 43, 30]),
    ("ConvolutionBackwardData", "SAME_LOWER", [1, 10, 20], 6, [1, 10, 22, 20, 43, 30],
     [10, 22, 20, 43, 30, 60]),
    # dst is no multiple of the stride: total = 3 - 1.
    ("ConvolutionBackwardData", "SAME_UPPER", [1, 10, 20], 5, [10, 22, 20, 43, 30],
     [10, 22, 20, 43, 30]),
    # A kernel smaller than the stride: the documents' total is -1, the library's 0.
    ("ConvolutionBackwardData", "SAME_UPPER", [1], 6, [1, 0, 2, 0, 3, 0], [1, 0, 2, 0, 3, 0]),
    ("ConvolutionBackwardData", "SAME_LOWER", [1], 6, [0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]),
    ("ConvTranspose", "SAME_UPPER", [1, 10, 20], 6, [1, 10, 22, 20, 43, 30],
     [1, 10, 22, 20, 43, 30]),
    ("ConvTranspose", "SAME_UPPER", [1], 6, [0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]),
    ("ConvTranspose", "SAME_LOWER", [1], 6, [1, 0, 2, 0, 3, 0], [1, 0, 2, 0, 3, 0]),
    ("ConvTranspose", "SAME_UPPER", [1], None, [0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3]),
    ("ConvTranspose", "VALID", [1], 5, [1, 0, 2, 0, 3], [1, 0, 2, 0, 3]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "pad", "w", "extent", "spec", "library"), LIBRARY)
def test_pads_of_the_library(
    kind: str, pad: str, w: list[float], extent: int | None, spec: Any, library: Any
) -> None:
    """oneDNN 3.2, compiled; infer_auto_pad in shape_infer.cpp.  Each difference is reported."""
    layout = {"weights_format": "IOX" if kind == "ConvTranspose" else "OIX"}
    attributes = windows([2], [0], [0], **layout) | {"auto_pad": pad}
    x, weights = np.array([[[1, 2, 3]]], np.float32), np.array([[w]], np.float32)
    output = [] if extent is None else [1, 1, extent]
    tensors = [tensor(0, x.shape), tensor(1, weights.shape)]
    graph = as_bytes(op(0, kind, tensors, [tensor(2, output)], **attributes))
    for semantics, wanted in (("spec", spec), ("openvino", spec), ("onednn", library)):
        model = deconv_ir.load(graph, semantics=semantics, warn=False)
        (found,) = model.run([x, weights]).values()
        assert found.ravel().tolist() == wanted, semantics
        reported = [f for f in model.findings if f.rule == "profiles-differ"]
        assert bool(reported) == (spec != library)
        used = "onednn" if semantics == "onednn" else "spec"
        assert all(f"the oneDNN library {p}" in f.message for f in reported for p in ("0", "1")
                   if f.actual[0] == int(p))  # fmt: skip
        assert all(f.message.endswith(f"this run uses {used}") for f in reported)
    findings = check_bytes(graph, "g.json", choose(severity="info")).findings
    assert [f.rule for f in findings if f.rule == "profiles-differ"] == ["profiles-differ"] * (
        spec != library
    )


POOLED = [
    # Two elements of 4 and 8 between pads: the library never counts pads if it rounds up
    # (create_desc of the pooling in oneDNN's graph backend: `exclude_pad || adj_pad`).
    ("AvgPool", {"exclude_pad": False, "rounding_type": "ceil"}, [2, 6, 4], [4, 6, 8]),
    ("AvgPool", {"exclude_pad": False, "rounding_type": "floor"}, [2, 6, 4], [2, 6, 4]),
    ("AvgPool", {"exclude_pad": True, "rounding_type": "ceil"}, [4, 6, 8], [4, 6, 8]),
    ("AvgPool", {"rounding_type": "ceil", "exclude_pad": False, "pads_begin": [0], "pads_end": [0]},
     [6], [6]),
    ("MaxPool", {"rounding_type": "ceil"}, [4, 8, 8], [4, 8, 8]),
    # Pads of 2 on both sides: the first and the last window see padding alone.
    ("MaxPool", {"pads_begin": [2], "pads_end": [2]}, [-np.inf, 4, 8, 8, -np.inf],
     [np.finfo(np.float32).min, 4, 8, 8, np.finfo(np.float32).min]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "attributes", "spec", "library"), POOLED)
def test_pooling_of_the_library(kind: str, attributes: Any, spec: Any, library: Any) -> None:
    base = windows([1], [1], [1], kernel=[2]) | attributes
    for name in ("groups", *(["dilations"] if kind == "AvgPool" else [])):
        base.pop(name)
    x = np.array([[[4, 8]]], np.float32)
    graph = as_bytes(op(0, kind, [tensor(0, x.shape)], [tensor(1, [1, 1, len(spec)])], **base))
    for semantics, wanted in (("spec", spec), ("openvino", spec), ("onednn", library)):
        model = deconv_ir.load(graph, semantics=semantics, warn=False)
        (found,) = model.run([x]).values()
        assert found.ravel().tolist() == list(map(float, wanted)), semantics
        assert [f.rule for f in model.findings] == ["profiles-differ"] * (spec != library)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_filter_without_spatial_axes_is_refused(rank: int, groups: int) -> None:
    """The error is the same in layout OIX, where nothing is permuted."""
    attributes = windows([1], [0], [0], weights_format="OIX", groups=groups)
    inputs = [tensor(0, [1, 2, 5]), tensor(1, [2] * rank)]
    graph = op(0, "Convolution", inputs, [tensor(2, [1, 2, 5])], **attributes)
    with pytest.raises(deconv_ir.ShapeError, match="weights must have rank 3 or greater"):
        deconv_ir.load(as_bytes(graph))
