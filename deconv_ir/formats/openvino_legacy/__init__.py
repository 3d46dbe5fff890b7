"""The format of OpenVINO IRs of version 2 to 7, of its releases up to 2020.4: read, not written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deconv_ir.formats.format import Format

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir.formats.openvino_legacy.parsed import ParsedLegacy
    from deconv_ir.formats.openvino_xml.weights import Weights
    from deconv_ir.ir.graph import Graph
    from deconv_ir.ir.operation import ConstantSource
    from deconv_ir.limits import Limits

_START: Final = 4096
"""Bytes in which the start tag of the root must end."""
_ROOT: Final = (
    rb"(?s)(?>(?><!--.*?-->|<\?.*?\?>)|[^<])*+"  # atomic: a hostile file has many comments
    rb"""<net\s(?:[^>"']|"[^"]*"|'[^']*')*?\bversion\s*=\s*["']\s*[2-7]\s*["']"""
)


class _Legacy(Format):
    name = "openvino_legacy"
    title = "an IR of version 2 to 7"
    suffixes = ()
    """The files are .xml, which is the suffix of the current format."""
    weights_suffix = ".bin"
    states_image_type = True

    def recognise(self, data: bytes, file: str | None) -> bool:
        start = data[:_START].partition(b"<layers")[0].replace(b"\0", b"")  # of UTF-16, too
        # Most files end here, before the pattern is compiled.
        values = b"".join(start.split()).replace(b"'", b'"')
        digits = b"<net" in start and any(b'"%d"' % digit in values for digit in range(2, 8))
        return digits and re.match(_ROOT, start) is not None

    def read(self, data: bytes, file: str | None, limits: Limits) -> ParsedLegacy:
        from deconv_ir.formats.openvino_legacy.reader import parse_bytes

        return parse_bytes(data, file, limits)

    def complete(self, graph: Graph, weights: Weights | None) -> tuple[Graph, Weights | None]:
        from deconv_ir.formats.openvino_legacy.complete import complete

        return complete(graph, weights)

    def changes(self, graph: Graph) -> list[str]:
        from deconv_ir.formats.openvino_legacy.summary import described

        return described(graph)

    def save(self, graph: Graph, weights: ConstantSource | None, path: Path) -> list[str]:
        from deconv_ir.formats.openvino_xml.writer import save

        return save(graph, weights, path)


OPENVINO_LEGACY = _Legacy()
