"""The format of oneDNN Graph files: JSON as ONEDNN_GRAPH_DUMP writes it and benchdnn reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.formats.files import is_json
from deconv_ir.formats.format import Format
from deconv_ir.formats.recognise import START, recognise

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir.formats.exchange import Extract, Lowered, Written
    from deconv_ir.formats.onednn_json.overrides import Overrides
    from deconv_ir.formats.onednn_json.parsed import ParsedJSON
    from deconv_ir.ir.graph import Graph
    from deconv_ir.ir.operation import ConstantSource
    from deconv_ir.limits import Limits


class _OneDNN(Format):
    name = "onednn_json"
    title = "a oneDNN Graph file"
    suffixes = (".json",)
    shares_suffixes = True
    has_opsets = False
    rules = "onednn"
    unread_by_openvino = "OpenVINO does not read oneDNN Graph files"

    def recognise(self, data: bytes, file: str | None) -> bool:
        return is_json(data, file) and (is_json(data) or recognise(data[:START], file) is None)

    def is_likely(self, start: bytes) -> bool:
        from deconv_ir.formats.onednn_json.sniffing import looks_like_graph

        return is_json(start) and looks_like_graph(start.decode("utf-8", "replace"))

    def read(
        self, data: bytes, file: str | None, limits: Limits, overrides: Overrides | None = None
    ) -> ParsedJSON:
        from deconv_ir.formats.onednn_json.reader import parse_bytes

        return parse_bytes(data, file, limits, overrides)

    def save(self, graph: Graph, weights: ConstantSource | None, path: Path) -> list[str]:
        from deconv_ir.formats.onednn_json.writer import save

        return save(graph, weights, path)

    def cut(self, part: Extract, path: Path) -> Written:
        from deconv_ir.formats.onednn_json.part import write_part

        return write_part(part, path)

    def to_opsets(self, graph: Graph) -> Lowered:
        from deconv_ir.formats.onednn_json.to_openvino import lower

        return lower(graph)


ONEDNN_JSON = _OneDNN()
