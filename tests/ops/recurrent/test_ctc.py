"""CTC decoders against itertools: merge groups of equal classes, then drop blanks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.operations import Context
from deconv_ir.ops.recurrent.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss


def decode(scores: np.ndarray, blank: int, merge: bool) -> list[int]:
    best = scores.argmax(-1).tolist()
    if merge:
        best = [value for value, _ in itertools.groupby(best)]
    return [value for value in best if value != blank]


LENGTHS = [12, 7, 0]
DATA = np.random.default_rng(0).standard_normal((3, 12, 3)).astype(np.float32)


@pytest.mark.parametrize("merge", [True, False])
def test_ctc_decoder_with_a_mask(merge: bool) -> None:
    mask = np.array([[t < n for n in LENGTHS] for t in range(12)], np.float32)
    operation = CTCGreedyDecoder(ctc_merge_repeated=merge)
    (found,) = operation.execute([DATA.swapaxes(0, 1), mask], Context())
    assert found.shape == (3, 12, 1, 1)
    for row, scores, length in zip(found[..., 0, 0], DATA, LENGTHS, strict=True):
        expected = decode(scores[:length], 2, merge)
        assert row.tolist() == expected + [-1] * (12 - len(expected))


@pytest.mark.parametrize("blank", [None, 0])
@pytest.mark.parametrize("merge", [True, False])
def test_ctc_decoder_with_lengths(merge: bool, blank: int | None) -> None:
    operation = CTCGreedyDecoderSeqLen(merge_repeated=merge)
    more = [] if blank is None else [np.array([blank])]
    found, counts = operation.execute([DATA, np.array(LENGTHS), *more], Context())
    for row, count, scores, length in zip(found, counts, DATA, LENGTHS, strict=True):
        expected = decode(scores[:length], 2 if blank is None else blank, merge)
        assert row.tolist() == expected + [-1] * (12 - len(expected))
        assert count == len(expected)


@pytest.mark.parametrize("kind", [CTCGreedyDecoder, CTCGreedyDecoderSeqLen])
def test_there_is_a_class(kind: type) -> None:
    data = np.zeros((2, 3, 0), np.float32)
    lengths = np.ones((2, 3), np.float32) if kind is CTCGreedyDecoder else np.array([1, 1])
    with pytest.raises(ShapeError, match="data must have at least one class, found 0"):
        kind().execute([data, lengths], Context())


def loss(scores: np.ndarray, target: list[int], blank: int, merge: bool) -> float:
    """Sum the probabilities of all paths that decode to the target."""
    probabilities = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    steps, classes = scores.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        found = [value for value, _ in itertools.groupby(path)] if merge else list(path)
        if [value for value in found if value != blank] == target:
            total += float(np.prod([probabilities[t, c] for t, c in enumerate(path)]))
    return -np.log(total) if total else np.inf


LABELS = np.array([[0, 0, 1, 1, 0], [1, 0, 0, 2, 2], [2, 2, 2, 2, 2], [0, 1, 2, 1, 0]])


@pytest.mark.parametrize("blank", [None, 0])
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("collapse", "unique"), [(False, False), (True, False), (False, True)])
def test_loss(collapse: bool, unique: bool, merge: bool, blank: int | None) -> None:
    logits = np.random.default_rng(0).standard_normal((4, 5, 4)).astype(np.float32)
    steps, counts = [5, 4, 5, 3], [3, 2, 5, 0]
    labels = LABELS if blank is None else LABELS + 1
    operation = CTCLoss(
        ctc_merge_repeated=merge, preprocess_collapse_repeated=collapse, unique=unique
    )
    more = [] if blank is None else [np.array(blank)]
    (found,) = operation.execute(
        [logits, np.array(steps), labels, np.array(counts), *more], Context()
    )
    for value, scores, row, length, count in zip(found, logits, labels, steps, counts, strict=True):
        target = row[:count].tolist()
        if collapse:
            target = [label for label, _ in itertools.groupby(target)]
        if unique:
            target = sorted(set(target), key=target.index)
        expected = loss(scores[:length], target, 3 if blank is None else blank, merge)
        np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_ctc_loss_without_time_steps() -> None:
    """Without time steps, an empty target has probability 1, and any other 0."""
    logits, none = np.zeros((1, 2, 3), np.float32), np.array([0])
    (found,) = CTCLoss().execute([logits, none, np.array([[1, 1]]), none], Context())
    assert found.tolist() == [0]


@pytest.mark.parametrize(
    ("steps", "count", "label", "message"),
    [(3, 1, 0, "label_length must"), (1, 2, 0, "label_length must"), (2, 1, 3, "labels and blank")],
)
def test_lengths_and_labels_of_a_loss(steps: int, count: int, label: int, message: str) -> None:
    given = [np.zeros((1, 2, 3), np.float32), np.array([steps]), np.array([[label] * 2])]
    with pytest.raises(ShapeError, match=message):
        CTCLoss().execute([*given, np.array([count])], Context())
