"""Reading an IR: XML in, a frozen graph out.

All problems are collected for the linter; a loader raises the first.  XML is
untrusted: DTDs, entities, external references and network access are disabled.
"""

from __future__ import annotations

import os

from deconv_ir.errors import DeconvError, IRError
from deconv_ir.findings import GraphLocation
from deconv_ir.formats.files import read_input
from deconv_ir.formats.openvino_xml.parsed import ParsedXML
from deconv_ir.formats.openvino_xml.reader import Reader, open_text
from deconv_ir.formats.openvino_xml.scanner import NestingError, depth_error
from deconv_ir.ir.graph import Graph
from deconv_ir.limits import DEFAULT_LIMITS, Limits


def read(
    path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS
) -> tuple[Graph | None, list[DeconvError]]:
    """Read an IR from a file: its graph, if the file is an IR, and all problems in order."""
    try:
        data = read_input(path, limits.xml_bytes, "the model", IRError)
    except DeconvError as error:
        return None, [error]
    return read_bytes(data, str(path), limits)


def read_bytes(
    data: bytes, file: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[Graph | None, list[DeconvError]]:
    """Read an IR from the bytes of its file; see `read`."""
    parsed = parse_bytes(data, file, limits)
    return parsed.graph, parsed.located_errors()


def parse_bytes(data: bytes, file: str | None = None, limits: Limits = DEFAULT_LIMITS) -> ParsedXML:
    """Read an IR from the bytes of its file, and keep the location of each part."""
    parsed = ParsedXML(file)
    try:
        parsed.file_text = text = open_text(data, file, limits)
        try:
            parsed.graph = Reader(parsed, text, limits).read()
        except NestingError:
            raise depth_error(text) from None
    except DeconvError as error:
        for earlier in parsed.errors:
            if isinstance(earlier.location, GraphLocation):
                earlier.location = None  # without a graph, the location has no meaning
        parsed.errors.append(error)
    return parsed
