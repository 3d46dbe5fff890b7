"""Bounds on what is read from files that may come from anywhere."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Sizes beyond which a file is refused.

    Attributes
    ----------
    xml_bytes : int
        Size of an IR's XML.
    tags : int
        Tags of the XML; start and end tags, comments and the like count alike.
    layers : int
        Layers of a network.
    rank : int
        Dims of a port.
    problems : int
        Mistakes in one file; after that many, the rest of it is not read.
    """

    xml_bytes: int = 256 << 20
    tags: int = 16_000_000
    layers: int = 1_000_000
    rank: int = 64
    problems: int = 10_000


DEFAULT_LIMITS = Limits()
