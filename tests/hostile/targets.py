"""Fuzz targets: any bytes must give a result or an error that names the place.

A target raises only if a promise is broken.  They run under atheris
(`make fuzz`), and over the seeds and findings in corpus/ as ordinary tests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from deconv_ir.errors import DeconvError
from deconv_ir.limits import Limits

LIMITS = Limits(xml_bytes=1 << 20, tags=20_000, layers=2000, problems=200)
CORPUS = Path(__file__).parent / "corpus"


def xml(data: bytes) -> None:
    """The XML reader, the graph's topology, shape inference and the linter."""
    from deconv_ir.formats.openvino_xml.entry import read_bytes
    from deconv_ir.ir.infer import infer
    from deconv_ir.ir.operation import Context
    from deconv_ir.linter.engine import check_bytes
    from deconv_ir.linter.options import choose

    graph, errors = read_bytes(data, "f.xml", LIMITS)
    _all_of_one_line(errors)
    if graph is not None:
        _all_of_one_line(graph.topology.errors)
        infer(graph, Context(), collect=True)
    result = check_bytes(data, "f.xml", choose(severity="info", deep=True), None, LIMITS)
    _all_of_one_line(result.findings)


def npy(data: bytes) -> None:
    """The reader of arrays."""
    from deconv_ir.formats.npy import read_stream

    try:
        with tempfile.TemporaryFile() as stream:
            stream.write(data)
            stream.seek(0)
            array = read_stream(stream, "f.npy", len(data))
    except DeconvError as error:
        _all_of_one_line([error])
    else:
        assert array.dtype.hasobject is False
        assert array.nbytes <= len(data)


def attributes(data: bytes) -> None:
    """The parsers of attributes: accepted text is written and parsed again without change."""
    from deconv_ir.ops import all_operations
    from deconv_ir.ops.base import attributes_of, format_attributes, parse_attributes

    operations = all_operations()
    if not data:
        return
    operation = operations[data[0] % len(operations)]
    texts = data[1:].decode("utf-8", "replace").split("\0")
    names = [a.name for a in attributes_of(operation)]
    made, errors = parse_attributes(operation, dict(zip(names, texts, strict=False)))
    _all_of_one_line(errors)
    if made is not None:
        again, errors = parse_attributes(operation, format_attributes(made))
        assert not errors, errors
        assert repr(again) == repr(made)


def shapes(data: bytes) -> None:
    """The parsers of dims and shapes."""
    from deconv_ir.ir.shapes import format_shape, parse_shape

    text = data.decode("utf-8", "replace")
    try:
        shape = parse_shape(text)
    except ValueError as error:
        _all_of_one_line([DeconvError(str(error))])
    else:
        assert parse_shape(format_shape(shape)) == shape


def scanner(data: bytes) -> None:
    """The scanner of documents, and the check of the examples that it finds."""
    from deconv_ir.spec_examples.check import check_document
    from deconv_ir.spec_examples.text import Document

    try:
        judged = check_document(Document(data, "f.md"))
    except DeconvError as error:
        _all_of_one_line([error])
        return
    for judgement in judged:
        _all_of_one_line(judgement.findings)


def _all_of_one_line(items: object) -> None:
    for item in items:  # type: ignore[attr-defined]
        text = str(item)
        assert "\n" not in text, text
        assert len(text) < 5000, len(text)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    function.__name__: function for function in (xml, npy, attributes, shapes, scanner)
}
