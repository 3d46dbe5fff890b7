"""Files changed by hand: the library reads and refuses the same files as OpenVINO.

Intended differences are explained in their rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import deconv_ir

from .problems import array
from .runtimes import F32, assert_close, infer, openvino_error, ops, ov, run

pytestmark = pytest.mark.peers

Edit = Callable[[str], str]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a static block: Parameter x, deconvolution, bias, ReLU, Result y."""
    x = ops.parameter([1, 4, 5, 6], np.float32, name="x")
    x.output(0).set_names({"x"})
    filters = ops.constant(array(1, (4, 6, 3, 3)), name="filter")
    node = ops.convolution_backprop_data(
        x, filters, [2, 2], None, [1, 1], [1, 1], [1, 1], name="deconvolution"
    )
    node = ops.add(node, ops.constant(array(2, (1, 6, 1, 1)), name="bias"), name="add")
    node = ops.relu(node, name="relu")
    node.output(0).set_names({"y"})
    path = tmp_path_factory.mktemp("saved") / "block.xml"
    ov.save_model(ov.Model([ops.result(node, name="result")], [x], "block"), path, False)
    return path


def _put(old: str, new: str, count: int = 1) -> Edit:
    """Replace text that must be present."""

    def edit(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, count)

    return edit


def _sub(pattern: str, new: str) -> Edit:
    """Replace the first match of a pattern that must match."""

    def edit(text: str) -> str:
        changed, count = re.subn(pattern, new, text, count=1, flags=re.DOTALL)
        assert count, pattern
        return changed

    return edit


def _edges(change: Callable[[list[str]], list[str]]) -> Edit:
    def edit(text: str) -> str:
        edges = re.findall(r"<edge .*?/>", text)
        assert len(edges) == 6
        return re.sub(
            r"<edges>.*</edges>", f"<edges>{''.join(change(edges))}</edges>", text, flags=re.DOTALL
        )

    return edit


def _both(*edits: Edit) -> Edit:
    def edit(text: str) -> str:
        for each in edits:
            text = each(text)
        return text

    return edit


_DECONVOLUTION = r'(<layer id="2".*?'


def _input_ports(first: str, second: str) -> Edit:
    """Give the input ports of the deconvolution other ids, in layer and edges."""
    return _both(
        _sub(
            _DECONVOLUTION + r')<port id="0"(.*?)<port id="1"',
            rf'\1<port id="{first}"\2<port id="{second}"',
        ),
        _put('to-layer="2" to-port="0"', f'to-layer="2" to-port="{first}"'),
        _put('to-layer="2" to-port="1"', f'to-layer="2" to-port="{second}"'),
    )


_BOTH = {
    "as saved": lambda text: text,
    "net version 10": _put('version="11"', 'version="10"'),
    "no net name": _put(' name="block"', ""),
    "layers in reverse": lambda text: re.sub(
        r"<layers>(.*)</layers>",
        lambda m: "".join(
            ["<layers>", *re.findall(r"<layer .*?</layer>", m[1], re.DOTALL)[::-1], "</layers>"]
        ),
        text,
        flags=re.DOTALL,
    ),
    "edges in reverse": _edges(lambda edges: edges[::-1]),
    "two layers of one name": _put('name="add"', 'name="deconvolution"'),
    "input ports 7 and 9": _input_ports("7", "9"),
    "input ports 9 and 7, bound by their order": _input_ports("9", "7"),
    "output port reuses an input's id": _both(
        _put('from-layer="2" from-port="2"', 'from-layer="2" from-port="0"'),
        _sub(_DECONVOLUTION + r'<output>\s*)<port id="2"', r'\1<port id="0"'),
    ),
    "no dims in the deconvolution": lambda text: re.sub(
        r'<layer id="2".*?</layer>',
        lambda m: re.sub(r"<dim>.*?</dim>", "", m[0]),
        text,
        flags=re.DOTALL,
    ),
    "no precision of an input": _sub(_DECONVOLUTION + r'<port id="0") precision="FP32"', r"\1"),
    "no names anywhere": lambda text: re.sub(r' (output_)?names="[^"]*"', "", text),
    "strides without a space": _put('strides="2, 2"', 'strides="2,2"'),
    "strides with more spaces": _put('strides="2, 2"', 'strides=" 2 , 2 "'),
    "no strides, dilations and pads": _sub(r'strides="2, 2".*?auto_pad', "auto_pad"),
    "no data element": _sub(_DECONVOLUTION + r")<data [^>]*/>", r"\1"),
    "empty lists": _put('strides="2, 2" dilations="1, 1"', 'strides="" dilations=""'),
    "no auto_pad": _put(' auto_pad="explicit"', ""),
    "no output_padding": _put(' output_padding="0, 0"', ""),
    "auto_pad in upper case": _put('auto_pad="explicit"', 'auto_pad="SAME_UPPER"'),
    "auto_pad in mixed case": _put('auto_pad="explicit"', 'auto_pad="Valid"'),
    "an unknown attribute": _put('strides="2, 2"', 'strides="2, 2" colour="red"'),
    "output_padding of five": _put('output_padding="0, 0"', 'output_padding="5, 5"'),
    "comments": _put("<dim>11</dim>", "<dim>11<!-- eleven --></dim>"),
    "spaces around a dim": _put("<dim>11</dim>", "<dim> 11 </dim>"),
    "a dim declared unknown": _put("<dim>11</dim>", "<dim>-1</dim>"),
    "no XML declaration": _put('<?xml version="1.0"?>', ""),
    "a byte order mark": lambda text: "\ufeff" + text,
    "an unknown section": _put("</layers>", "</layers><quantization_parameters/>"),
    "a constant that states too many bytes": _put('size="864"', 'size="868"'),
    "overlapping constants": _put('offset="864"', 'offset="0"'),
    "an unaligned constant": _put('offset="864"', 'offset="3"'),
    "Parameter shape with spaces": _put('shape="1,4,5,6"', 'shape="1, 4 ,5,6"'),
    "Parameter shape in ranges": _put('shape="1,4,5,6"', 'shape="1..3,4,?,-1"'),
    "Parameter shape in open ranges": _put('shape="1,4,5,6"', 'shape="1..,4,..9,2.."'),
    "Parameter shape 1..1": _put('shape="1,4,5,6"', 'shape="1..1,4,5,6"'),
}

_NEITHER = {
    "net version 9": _put('version="11"', 'version="9"'),
    "net version 12": _put('version="11"', 'version="12"'),
    "no net version": _put(' version="11"', ""),
    "cut off": lambda text: text[:2000],
    "empty": lambda text: "",
    "two layers of one id": _put('id="3" name="bias"', 'id="2" name="bias"'),
    "a negative id": lambda text: text.replace('layer id="5"', 'layer id="-5"').replace(
        'layer="5"', 'layer="-5"'
    ),
    "an id that is no number": lambda text: text.replace('layer id="5"', 'layer id="e"').replace(
        'layer="5"', 'layer="e"'
    ),
    "an edge to a missing port": _put('to-layer="2" to-port="1"', 'to-layer="2" to-port="9"'),
    "an edge from a missing port": _put(
        'from-layer="2" from-port="2"', 'from-layer="2" from-port="9"'
    ),
    "an edge to a missing layer": _put('to-layer="2" to-port="1"', 'to-layer="99" to-port="1"'),
    "an edge from a missing layer": _put(
        'from-layer="1" from-port="0"', 'from-layer="99" from-port="0"'
    ),
    "an edge too few": _edges(lambda edges: [edges[0], *edges[2:]]),
    "an edge twice": _edges(lambda edges: [*edges, edges[1]]),
    "two edges into a port": _edges(
        lambda edges: [*edges, edges[1].replace('from-layer="1"', 'from-layer="3"')]
    ),
    "an edge without to-port": _put('to-layer="2" to-port="1"', 'to-layer="2"'),
    "a port that is no number": _put('to-layer="2" to-port="1"', 'to-layer="2" to-port="x"'),
    "a cycle": _put(
        'from-layer="0" from-port="0" to-layer="2"', 'from-layer="5" from-port="1" to-layer="2"'
    ),
    "no edges": _edges(lambda edges: []),
    "an unknown precision": _sub(
        _DECONVOLUTION + r'<output>\s*<port id="2") precision="FP32"', r'\1 precision="FOO"'
    ),
    "a dim that is no number": _put("<dim>11</dim>", "<dim>eleven</dim>"),
    "unknown auto_pad": _put('auto_pad="explicit"', 'auto_pad="bogus"'),
    "auto_pad NOTSET": _put('auto_pad="explicit"', 'auto_pad="NOTSET"'),
    "auto_pad same": _put('auto_pad="explicit"', 'auto_pad="same"'),
    "no auto_pad in the attribute": _put('auto_pad="explicit"', 'auto_pad=""'),
    **{
        f"strides {text!r}": _put('strides="2, 2"', f'strides="{text}"')
        for text in (
            "2",
            "2,2,2",
            "2 2",
            "2;2",
            "a,b",
            "2,",
            "0,1",
            "+2,2",
            "99999999999999999999,1",
        )
    },
    **{
        f"{name} of one element": _put(f'{name}="{value}, {value}"', f'{name}="{value}"')
        for name, value in (
            ("pads_begin", 1),
            ("pads_end", 1),
            ("dilations", 1),
            ("output_padding", 0),
        )
    },
    "a constant that states too few bytes": _put('size="864"', 'size="860"'),
    "a constant of more elements than bytes": _put('shape="4, 6, 3, 3"', 'shape="4, 6, 3, 5"'),
    "a constant beyond the file": _put('offset="864"', 'offset="8640"'),
    "a constant of negative offset": _put('offset="864"', 'offset="-4"'),
    "a constant without size": _put(' size="864"', ""),
    "a constant without offset": _put(' offset="864"', ""),
    "a constant without shape": _put('shape="4, 6, 3, 3" ', ""),
    "a constant without element type": _put('element_type="f32" shape="4', 'shape="4'),
    "a constant of unknown shape": _put('shape="4, 6, 3, 3"', 'shape="?, 6, 3, 3"'),
    "a constant larger than 2**64": _put(
        'shape="4, 6, 3, 3"', 'shape="4000000000, 6000000000, 3, 3"'
    ),
    "a bias that does not fit": _put('shape="1, 6, 1, 1"', 'shape="1, 3, 1, 1"'),
    "a Parameter shape that ends in a comma": _put('shape="1,4,5,6"', 'shape="1,4,5,"'),
    "a Parameter shape in braces": _put('shape="1,4,5,6"', 'shape="{1,4,5,6}"'),
    "a Parameter shape of fractions": _put('shape="1,4,5,6"', 'shape="1,4,5,6.0"'),
    "dots between dims": _put('shape="1,4,5,6"', 'shape="1,4,...,6"'),
    "auto_broadcast none": _put('auto_broadcast="numpy"', 'auto_broadcast="none"'),
    "unknown auto_broadcast": _put('auto_broadcast="numpy"', 'auto_broadcast="bogus"'),
}

_OURS = {
    "no version of a layer: the documents' examples have none": _sub(
        r'(type="ConvolutionBackpropData") version="opset1"', r"\1"
    ),
    "no precision of an output: neither": _sub(
        _DECONVOLUTION + r'<output>\s*<port id="2") precision="FP32"', r"\1"
    ),
    "FP32 for element_type: one name for one thing, in two spellings": _put(
        'element_type="f32" />', 'element_type="FP32" />'
    ),
}

_THEIRS = {
    **{
        f"strides {text!r}: a list of whole numbers": _put('strides="2, 2"', f'strides="{text}"')
        for text in ("2.0,2.0", "2.7,2", "1e0,1")
    },
    "negative pads: 'non-negative integers'": _put('pads_begin="1, 1"', 'pads_begin="-1, 1"'),
    "negative strides: 'positive integers'": _put('strides="2, 2"', 'strides="-1, 1"'),
    "negative output_padding": _put('output_padding="0, 0"', 'output_padding="-1, 0"'),
    "pads beyond the output: a negative extent": _put('pads_begin="1, 1"', 'pads_begin="99, 99"'),
    "an attribute twice: not well formed": _put('strides="2, 2"', 'strides="2, 2" strides="1, 1"'),
    "something after the end: not well formed": lambda text: text + "junk",
    "a Parameter dim of -2": _put('shape="1,4,5,6"', 'shape="1,4,5,-2"'),
    "a Parameter range the wrong way round": _put('shape="1,4,5,6"', 'shape="3..1,4,5,6"'),
}


def _write(saved: Path, folder: Path, edit: Edit) -> Path:
    path = folder / "block.xml"
    path.write_text(edit(saved.read_text()), encoding="utf-8")
    path.with_suffix(".bin").write_bytes(saved.with_suffix(".bin").read_bytes())
    return path


@pytest.mark.parametrize("name", _BOTH)
def test_read_alike(name: str, saved: Path, tmp_path: Path) -> None:
    path = _write(saved, tmp_path, _BOTH[name])
    model = deconv_ir.load(path, warn=False)
    x = array(3, (1, 4, 5, 6))
    (actual,) = model.run([x]).values()
    (expected,) = run_in_order(path, x)
    assert_close(actual, expected, F32, name)


def run_in_order(path: Path, x: np.ndarray) -> list[np.ndarray]:
    """Run with one input, whatever its name."""
    core = ov.Core()
    model = core.read_model(path)
    model.reshape(list(x.shape))
    return [np.array(v) for v in core.compile_model(model, "CPU")([x]).values()]


@pytest.mark.parametrize("name", _NEITHER)
def test_refused_alike(name: str, saved: Path, tmp_path: Path) -> None:
    path = _write(saved, tmp_path, _NEITHER[name])
    assert openvino_error(lambda: infer(path))
    _refused(path)


def _refused(path: Path) -> None:
    """Require an error of our own, of one line, that names the file."""
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path, warn=False)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", _OURS)
def test_read_here_alone(name: str, saved: Path, tmp_path: Path) -> None:
    path = _write(saved, tmp_path, _OURS[name])
    assert openvino_error(lambda: infer(path))
    x = array(3, (1, 4, 5, 6))
    (actual,) = deconv_ir.load(path, warn=False).run([x]).values()
    assert_close(actual, run(saved, {"x": x})[0], F32, name)


@pytest.mark.parametrize("name", _THEIRS)
def test_refused_here_alone(name: str, saved: Path, tmp_path: Path) -> None:
    path = _write(saved, tmp_path, _THEIRS[name])
    assert not openvino_error(lambda: infer(path))
    _refused(path)


def test_no_weights_file(saved: Path, tmp_path: Path) -> None:
    path = _write(saved, tmp_path, lambda text: text)
    path.with_suffix(".bin").unlink()
    assert openvino_error(lambda: infer(path))
    with pytest.raises(deconv_ir.WeightsError, match=r"block\.bin"):
        deconv_ir.load(path)


def test_entities_are_not_expanded(saved: Path, tmp_path: Path) -> None:
    """OpenVINO reads them as text; here the file is refused."""

    def edit(text: str) -> str:
        text = text.replace("?>", '?><!DOCTYPE net [<!ENTITY two "2">]>', 1)
        return text.replace('strides="2, 2"', 'strides="&two;, 2"')

    path = _write(saved, tmp_path, edit)
    assert "&two;" in openvino_error(lambda: infer(path))
    _refused(path)
