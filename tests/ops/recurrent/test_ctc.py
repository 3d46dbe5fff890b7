"""The decoders against itertools: groups of equal classes, without the blank one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.operations import Context
from deconv_ir.ops.recurrent.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen


def decode(scores: np.ndarray, blank: int, merge: bool) -> list[int]:
    best = scores.argmax(-1).tolist()
    if merge:
        best = [value for value, _ in itertools.groupby(best)]
    return [value for value in best if value != blank]


LENGTHS = [12, 7, 0]
DATA = np.random.default_rng(0).standard_normal((3, 12, 3)).astype(np.float32)


@pytest.mark.parametrize("merge", [True, False])
def test_by_mask(merge: bool) -> None:
    mask = np.array([[t < n for n in LENGTHS] for t in range(12)], np.float32)
    operation = CTCGreedyDecoder(ctc_merge_repeated=merge)
    (found,) = operation.execute([DATA.swapaxes(0, 1), mask], Context())
    assert found.shape == (3, 12, 1, 1)
    for row, scores, length in zip(found[..., 0, 0], DATA, LENGTHS, strict=True):
        expected = decode(scores[:length], 2, merge)
        assert row.tolist() == expected + [-1] * (12 - len(expected))


@pytest.mark.parametrize("blank", [None, 0])
@pytest.mark.parametrize("merge", [True, False])
def test_by_length(merge: bool, blank: int | None) -> None:
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
    with pytest.raises(ShapeError, match="data must have a class at least, found 0"):
        kind().execute([data, lengths], Context())
