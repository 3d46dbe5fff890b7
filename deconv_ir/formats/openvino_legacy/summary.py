"""The record of a conversion: which old layers became which operations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from deconv_ir.formats.openvino_legacy.conversion import Conversion
from deconv_ir.formats.openvino_legacy.layer import OldLayer
from deconv_ir.ir.graph import Graph, Info

TAG: Final = "converted_from"
_VERSION: Final = "ir_version"


def summary(version: int, layers: Sequence[OldLayer], conversion: Conversion) -> Info:
    """Return an `rt_info` that says from which layers the operations of a graph come."""
    kinds: dict[int, list[str]] = defaultdict(list)
    for layer, origin in zip(conversion.layers, conversion.origins, strict=True):
        if layer.type not in ("Const", "Result"):
            kinds[origin.start].append(layer.type)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for old in layers:
        rows[old.type][" + ".join(_counted(kinds[old.start])) or "Const"] += 1
    entries = tuple(
        Info(kind, (("value", "; ".join(f"{n} as {new}" for new, n in made.items())),))
        for kind, made in sorted(rows.items())
    )
    stated = Info(_VERSION, (("value", str(version)),))
    return Info("rt_info", (), (Info(TAG, (), (stated, *entries)),))


def _counted(kinds: Sequence[str]) -> Iterator[str]:
    for kind, count in Counter(kinds).items():
        yield kind if count == 1 else f"{count} {kind}"


def described(graph: Graph) -> list[str]:
    """Return a line for each type of old layers of a graph: what they became."""
    found = []
    for info in graph.extras:
        for part in info.children if info.tag == "rt_info" else ():
            if part.tag != TAG:
                continue
            found += [
                f"{row.tag}: {row.attributes[0][1]}" for row in part.children if row.tag != _VERSION
            ]
    return found
