"""Which elements and attributes an IR may have, and where."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Final

LAYER_ATTRIBUTES: Final = frozenset({"id", "name", "type", "version"})
"""What every layer has; a `Layer` keeps the others apart."""

_SUBGRAPH: Final = frozenset(
    {
        "body",
        "then_body",
        "else_body",
        "port_map",
        "then_port_map",
        "else_port_map",
        "back_edges",
    }
)

CHILDREN: Final = {
    "net": frozenset({"layers", "edges", "rt_info", "meta_data", "statistics", "pre-process"}),
    "layers": frozenset({"layer"}),
    "layer": frozenset({"data", "input", "output", "rt_info", "weights", "biases", "blobs"})
    | _SUBGRAPH,
    "input": frozenset({"port"}),
    "output": frozenset({"port"}),
    "port": frozenset({"dim", "rt_info"}),
    "edges": frozenset({"edge"}),
    "edge": frozenset({"rt_info"}),
}

ATTRIBUTES: Final = {
    "net": frozenset({"name", "version", "precision", "batch"}),
    "layer": LAYER_ATTRIBUTES | {"output_names", "precision"},
    "input": frozenset[str](),
    "output": frozenset[str](),
    "port": frozenset({"id", "precision", "names"}),
    "edge": frozenset({"from-layer", "from-port", "to-layer", "to-port"}),
}


def nearest(word: str, known: Collection[str]) -> str | None:
    """Return a hint that names the known word most like this one; None: none is."""
    return _nearest(word, frozenset(known))


@lru_cache(maxsize=1024)
def _nearest(word: str, known: frozenset[str]) -> str | None:
    if len(word) > 2 * max(map(len, known), default=0):
        return None
    from difflib import get_close_matches

    folded = {k.lower(): k for k in sorted(known)}
    found = get_close_matches(word.lower(), folded, 1, 0.6)
    return f"did you mean {folded[found[0]]!r}?" if found else None
