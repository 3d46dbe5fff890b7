"""A graph that is written and read again is unchanged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import deconv_ir
from deconv_ir.formats.openvino_xml.entry import read, read_bytes
from deconv_ir.formats.openvino_xml.writer import to_bytes
from deconv_ir.ir.graph import Graph, Layer

SAMPLES = Path(__file__).parent.parent.parent.parent / "samples"
FILES = sorted(SAMPLES.glob("*/*.xml"))


def without_lines(graph: Graph) -> Graph:
    """Return the same graph without line numbers of the file."""

    def strip(layer: Layer) -> Layer:
        ports = [
            tuple(p._replace(line_offset=0) for p in side) for side in (layer.inputs, layer.outputs)
        ]
        return layer._replace(line=None, inputs=ports[0], outputs=ports[1])

    edges = tuple(e._replace(line=None) for e in graph.edges)
    return graph.replace(layers=tuple(map(strip, graph.layers)), edges=edges, file=None)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_round_trip(path: Path) -> None:
    graph, _ = read(path)
    assert graph is not None
    again, errors = read_bytes(to_bytes(graph))
    assert not errors
    assert again is not None
    assert without_lines(again) == without_lines(graph)


def test_rt_info_is_kept() -> None:
    text = (SAMPLES / "block" / "block.xml").read_bytes()
    graph, _ = read_bytes(text)
    assert graph is not None
    root = etree.fromstring(to_bytes(graph))
    original = etree.fromstring(text)

    def infos(tree: etree._Element) -> list[bytes]:
        return [etree.tostring(e, method="c14n2", strip_text=True) for e in tree.iter("rt_info")]

    assert infos(root) == infos(original)
    assert len(infos(root)) == 3


def test_save_writes_xml_and_weights(tmp_path: Path) -> None:
    model = deconv_ir.load(SAMPLES / "block" / "block.xml")
    deconv_ir.save(model, tmp_path / "copy.xml")
    copy = deconv_ir.load(tmp_path / "copy.xml")
    x = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float32)
    assert np.array_equal(model.run([x])["y"], copy.run([x])["y"])
    deconv_ir.save(copy, tmp_path / "copy.xml")  # overwrites the file that was read
    assert deconv_ir.load(tmp_path / "copy.xml").run([x])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.bin", "copy.xml"]


def test_save_into_a_directory_that_is_not_there(tmp_path: Path) -> None:
    model = deconv_ir.load(SAMPLES / "block" / "block.xml")
    with pytest.raises(deconv_ir.OutputError, match="cannot write"):
        deconv_ir.save(model, tmp_path / "none" / "copy.xml")


def test_weights_in_memory_replace_a_file(tmp_path: Path) -> None:
    xml, weights = ((SAMPLES / f"block/block.{s}").read_bytes() for s in ("xml", "bin"))
    for stale in (b"", b"other"):
        (tmp_path / "copy.bin").write_bytes(stale)
        deconv_ir.save(deconv_ir.load(xml, weights), tmp_path / "copy.xml")
        assert (tmp_path / "copy.bin").read_bytes() == weights
