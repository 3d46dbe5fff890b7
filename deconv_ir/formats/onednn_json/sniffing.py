"""JSON files that are oneDNN Graph files, told by their members."""

from __future__ import annotations

import re

_GRAPH = re.compile(r'"graph"\s*:\s*\[')
_MEMBERS = re.compile(r'"(?:engine_kind|fpmath_mode|input_ports|output_ports)"\s*:')
_OPERATION = re.compile(r'"kind"\s*:\s*"[^{}]*"(?:attrs|inputs)"\s*:')


def looks_like_graph(text: str) -> bool:
    """Whether JSON is a oneDNN Graph file, by its members."""
    return _GRAPH.search(text) is not None and any(
        pattern.search(text) is not None for pattern in (_MEMBERS, _OPERATION)
    )
