"""Sums of rows of tables, sparse rows and beams: the documents' examples and their pseudocode."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir.errors import DeconvError

# The table of the examples of all EmbeddingBag documents.
TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)
HALVES = np.full(4, 0.5, np.float32)
OFFSETS = ([0, 2, 3, 4], [0, 2, 2])
SEGMENTS = ([0, 2, 3, 4], [0, 0, 2, 2], 3)
PACKED = [[0, 2], [1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "expected"),
    [
        # EmbeddingBagOffsets-15, examples 1 to 3; the first is that of EmbeddingBagOffsetsSum-3.
        ("EmbeddingBagOffsets-15", (*OFFSETS, 0, HALVES), {},
         [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]]),
        ("EmbeddingBagOffsetsSum-3", (*OFFSETS, 0, HALVES), {},
         [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]]),
        ("EmbeddingBagOffsets-15", (*OFFSETS, -1, np.array([0.5, 0.2, -2, 1], np.float32)), {},
         [[-0.48, -0.66], [0, 0], [2.8, -3.7]]),
        ("EmbeddingBagOffsets-15", OFFSETS, {"reduction": "mean"},
         [[-1.05, -1.2], [0, 0], [-0.1, 0.4]]),
        # EmbeddingBagPacked-15, all examples.
        ("EmbeddingBagPacked-15", (PACKED,), {}, [[-2.1, -2.4], [-2, -2.2], [-0.2, 0.8]]),
        ("EmbeddingBagPackedSum-3", (PACKED,), {}, [[-2.1, -2.4], [-2, -2.2], [-0.2, 0.8]]),
        ("EmbeddingBagPacked-15", (PACKED, np.full((3, 2), 0.5, np.float32)), {},
         [[-1.05, -1.2], [-1, -1.1], [-0.1, 0.4]]),
        ("EmbeddingBagPacked-15", (PACKED,), {"reduction": "mean"},
         [[-1.05, -1.2], [-1, -1.1], [-0.1, 0.4]]),
        # EmbeddingSegmentsSum-3.
        ("EmbeddingSegmentsSum-3", (*SEGMENTS, 0, HALVES), {},
         [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]]),
        ("EmbeddingSegmentsSum-3", SEGMENTS, {}, [[-2.1, -2.4], [0, 0], [-0.2, 0.8]]),
        # Segments in another order.
        ("EmbeddingSegmentsSum-3", ([3, 0, 4, 2], [2, 0, 2, 0], 4), {},
         [[-2.1, -2.4], [0, 0], [-0.2, 0.8], [0, 0]]),
    ],
)  # fmt: skip
def test_examples_of_tables(run, infer, kind: str, inputs, attributes, expected) -> None:
    found = run(kind, TABLE, *inputs, **attributes)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if kind.startswith("EmbeddingSegments"):
        assert infer(kind, "f32[5,2]", "i64[?]", "i64[?]", inputs[2]) == f"[{len(expected)},2]"
    elif "Offsets" in kind:
        assert infer(kind, "f32[?,2..3]", "i64[?]", "i64[3]", **attributes) == "[3,2..3]"
    else:
        assert infer(kind, "f32[5,2]", "i64[3..4,?]", **attributes) == "[3..4,2]"


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("default", [None, 3])
def test_bags_against_the_documents_function(run, reduction: str, default: int | None) -> None:
    """The NumPy function of EmbeddingBagOffsets-15, with integers, empty bags and three axes."""
    rng = np.random.default_rng(1)
    table = rng.integers(-50, 50, (7, 2, 3)).astype(np.int32)
    indices, offsets = rng.integers(0, 7, 9), [0, 0, 4, 4, 8, 9]
    bags = []
    for start, end in itertools.pairwise([*offsets, 9]):
        bag = table[indices[start:end]]
        if start == end:
            bags.append(np.zeros((2, 3)) if default is None else table[default])
        else:
            total = bag.sum(axis=0)
            bags.append(np.trunc(total / len(bag)) if reduction == "mean" else total)
    more = [] if default is None else [default]
    found = run("EmbeddingBagOffsets-15", table, indices, offsets, *more, reduction=reduction)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, bags)


def test_sums_wrap_as_integers_do(run) -> None:
    table = np.array([[100], [100]], np.int8)
    assert run("EmbeddingBagPacked-15", table, [[0, 1]]).tolist() == [[-56]]


@pytest.mark.parametrize(
    ("kind", "inputs", "message"),
    [
        ("EmbeddingBagOffsets-15", ([5], [0]), "index 5 of indices is outside emb_table of 5 rows"),
        ("EmbeddingBagOffsets-15", ([0], [1, 0]), "offsets must be sorted"),
        ("EmbeddingBagOffsets-15", ([0], [0, 2]), "offsets must be sorted"),
        ("EmbeddingBagOffsets-15", ([0], [0, 1], 9), "index 9 of default_index"),
        ("EmbeddingSegmentsSum-3", ([0], [2], 2), "segment_ids must be from 0 to 1"),
        ("EmbeddingSegmentsSum-3", ([0], [0], 2**62), "bytes"),
    ],
)
def test_indices_out_of_range(run, kind: str, inputs, message: str) -> None:
    with pytest.raises(DeconvError, match=message):
        run(kind, TABLE, *inputs)


def test_weights_have_no_mean(infer) -> None:
    """EmbeddingBagOffsets-15: per_sample_weights are "supported only in sum reduction"."""
    with pytest.raises(DeconvError, match="reduction must be sum"):
        infer("EmbeddingBagPacked-15", "f32[5,2]", "i64[3,2]", "f32[3,2]", reduction="mean")


def test_sparse_rows(run, infer) -> None:
    """SparseFillEmptyRows-16, example 1, with entries in any order."""
    places = [[0, 1], [0, 3], [2, 0], [3, 1]]
    for order in ([0, 1, 2, 3], [3, 0, 2, 1]):
        values = np.arange(1.0, 5.0, dtype=np.float32)[order]
        indices, filled, empty = run(
            "SparseFillEmptyRows-16", values, [5, 6], np.array(places)[order], np.float32(9)[...]
        )
        assert indices.tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
        assert filled.tolist() == [1, 2, 9, 3, 4, 9]
        assert empty.tolist() == [False, True, False, False, True]
    bounds = infer("SparseFillEmptyRows-16", "f32[4]", [5, 6], "i64[4,2]", "f32[]")
    assert bounds == "[5..9,2] [5..9] [5]"
    unknown = infer("SparseFillEmptyRows-16", "f32[2..3]", "i64[2]", "i64[?,2]", "f32[]")
    assert unknown == "[2..,2] [2..] [?]"


@pytest.mark.parametrize(
    ("shape", "place", "message"),
    [
        ([2, 3], [2, 0], "indices must be from 0 to 1 on axis 0"),
        ([2, 3], [0, 3], "indices must be from 0 to 2 on axis 1"),
        ([-1, 3], [0, 0], "dense_shape must not be negative"),
    ],
)
def test_sparse_rows_out_of_range(run, shape, place, message: str) -> None:
    with pytest.raises(DeconvError, match=message):
        run("SparseFillEmptyRows-16", np.ones(1, np.float32), shape, [place], np.float32(0)[...])


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64])
def test_beams_against_the_documents_pseudocode(run, dtype) -> None:
    """GatherTree-1, 'Detailed description'; a sequence without steps has end tokens alone."""
    rng = np.random.default_rng(0)
    count, batch, beams, end = 7, 3, 4, 5
    steps = rng.integers(0, 7, (count, batch, beams))
    parents = rng.integers(0, beams, steps.shape)
    lengths = [9, 4, 0]
    final = np.full(steps.shape, end)
    for n, beam in itertools.product(range(batch), range(beams)):
        last = min(count, lengths[n])
        if not last:
            continue
        parent = parents[last - 1, n, beam]
        final[last - 1, n, beam] = steps[last - 1, n, beam]
        for level in reversed(range(last - 1)):
            final[level, n, beam] = steps[level, n, parent]
            parent = parents[level, n, parent]
        finished = False
        for time in range(last):
            if finished:
                final[time, n, beam] = end
            elif final[time, n, beam] == end:
                finished = True
    arrays = [np.array(a, dtype) for a in (steps, parents, lengths, end)]
    found = run("GatherTree", *arrays)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, final)
    arrays[1][3, 0] = beams
    with pytest.raises(DeconvError, match=r"parent 4 of step 3 is not a beam: expected 0 to 3"):
        run("GatherTree", *arrays)


def test_shapes_of_beams(infer) -> None:
    """The example of GatherTree-1, and dims that only one input has."""
    kind = "GatherTree"
    assert infer(kind, "i32[100,1,10]", "i32[100,1,10]", "i32[1]", "i32[]") == "[100,1,10]"
    assert infer(kind, "i32[?,?,3..9]", "i32[7,?,2..4]", "i32[2]", "i32[]") == "[7,2,3..4]"
    with pytest.raises(DeconvError, match="max_seq_len must have shape"):
        infer(kind, "i32[9,2,3]", "i32[9,2,3]", "i32[3]", "i32[]")


@pytest.mark.parametrize("compute", [None, "f32", "f64"])
@pytest.mark.parametrize("axes", [[-1], [1, -1], [2]])
def test_rms_norm(run, axes, compute: str | None) -> None:
    """RMSNorm-14: x / sqrt(mean(x^2) + eps) * scale."""
    x = np.random.default_rng(2).normal(0, 3, (2, 3, 4)).astype(np.float16)
    scale = np.array([1.0, 2.0, 0.5, -1.0], np.float16)
    wide = x.astype(np.float64)
    mean = (wide**2).mean(axis=tuple(axes), keepdims=True)
    expected = wide / np.sqrt(mean + 0.25)
    more = {} if compute is None else {"compute_type": compute}
    found = run("RMSNorm-14", x, axes, epsilon=0.25, **more)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    found = run("RMSNorm-14", x, axes, scale, epsilon=0.25, **more)
    np.testing.assert_allclose(found, expected * scale, rtol=3e-3)
