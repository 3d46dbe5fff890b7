"""The format of OpenVINO IRs: XML and a weights file.  The only package that imports lxml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.formats.format import Format

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir.formats.exchange import Extract, Written
    from deconv_ir.formats.openvino_xml.parsed import ParsedXML
    from deconv_ir.ir.graph import Graph
    from deconv_ir.ir.operation import ConstantSource
    from deconv_ir.limits import Limits


class _OpenVINO(Format):
    name = "openvino_xml"
    title = "an IR"
    suffixes = (".xml",)
    weights_suffix = ".bin"

    def recognise(self, data: bytes, file: str | None) -> bool:
        start = data[:64].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").lower()
        return start.startswith(b"<") and not start.startswith((b"<!doctype html", b"<html"))

    def read(self, data: bytes, file: str | None, limits: Limits) -> ParsedXML:
        from deconv_ir.formats.openvino_xml.entry import parse_bytes

        return parse_bytes(data, file, limits)

    def save(self, graph: Graph, weights: ConstantSource | None, path: Path) -> list[str]:
        from deconv_ir.formats.openvino_xml.writer import save

        return save(graph, weights, path)

    def cut(self, part: Extract, path: Path) -> Written:
        from deconv_ir.formats.openvino_xml.part import write_part

        return write_part(part, path)


OPENVINO_XML = _OpenVINO()
