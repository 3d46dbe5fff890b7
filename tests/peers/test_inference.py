"""Dynamic shape inference: closed intervals, as in OpenVINO."""

from __future__ import annotations

from pathlib import Path

import pytest

import deconv_ir

from .blocks import Block, blocks
from .partial import TABLE, Partial, partials
from .runtimes import bounds, infer, infer_with, openvino_error

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("partial", TABLE + partials(120, first=20_000), ids=str)
def test_intervals_are_openvinos(partial: Partial, tmp_path: Path) -> None:
    """Intervals agree, but OpenVINO forgets the lower bound of ``n..`` times or plus a value."""
    path = partial.save(tmp_path)
    shapes = deconv_ir.load(path, semantics="openvino", warn=False).infer_shapes()
    expected = infer(path)
    for axis, low in partial.lower_bounds():
        assert expected is not None
        assert expected[axis] == (0, None)
        expected[axis] = (low, None)
    assert bounds(shapes["y"]) == expected


@pytest.mark.parametrize("block", [b for b in blocks(90) if b.dynamic != "static"], ids=str)
def test_given_input_shapes_are_taken_as_openvino_takes_them(block: Block, tmp_path: Path) -> None:
    path = block.save(tmp_path)
    given = {n: a.shape for n, a in block.inputs().items() if n != "output_shape"}
    shapes = deconv_ir.load(path, warn=False).infer_shapes(given)
    assert bounds(shapes["y"]) == infer_with(path, given)


_DATA, _FILTER = [1, 4, 5, 6], [4, 6, 3, 3]
_REFUSED = [
    (Partial("channels", [1, 5, 5, 6], _FILTER), "channels"),
    (Partial("channels-range", [1, (5, 7), 5, 6], _FILTER), "channels"),
    (Partial("ranks", [1, 4, 5], _FILTER), "rank"),
    (Partial("rank-2", [1, 4], [4, 6], strides=(), dilations=()), "rank"),
    (Partial("strides", _DATA, _FILTER, strides=(2,)), "strides"),
    (Partial("dilations", _DATA, _FILTER, dilations=(1,)), "dilations"),
    (Partial("pads", _DATA, _FILTER, pads_end=(1,)), "pads_end"),
    (Partial("output-padding", _DATA, _FILTER, output_padding=(1,)), "output_padding"),
    (Partial("shape-length", _DATA, _FILTER, shape_from=[9, 12, 3]), "output_shape"),
    (Partial("shape-parameter-length", _DATA, _FILTER, shape_from=3), "output_shape"),
    (Partial("shape-negative", _DATA, _FILTER, shape_from=[-9, 12]), "output_shape"),
    (Partial("group-channels", _DATA, [2, 3, 3, 3, 3], grouped=True), "channels"),
    (Partial("groups-unknown", _DATA, [-1, 3, 3, 3, 3], grouped=True), "channels"),
    (Partial("groups-range", [1, 8, 5, 6], [(1, 3), 2, 3, 3, 3], grouped=True), "channels"),
]


@pytest.mark.parametrize(("partial", "word"), _REFUSED, ids=str)
def test_what_openvino_refuses_is_refused(partial: Partial, word: str, tmp_path: Path) -> None:
    """OpenVINO cannot save such a file, so the test writes it by hand."""
    assert openvino_error(lambda: partial.save(tmp_path))
    path = partial.save_unchecked(tmp_path)
    with pytest.raises(deconv_ir.DeconvError, match=word) as caught:
        deconv_ir.load(path, warn=False)
    assert caught.value.file == str(path)
    assert caught.value.line
    assert "\n" not in str(caught.value)
