"""Bounds on what is read from files that may come from anywhere."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Sizes beyond which a file is refused.

    Attributes
    ----------
    xml_bytes : int
        Size of an IR's XML.
    layers : int
        Layers of a network.
    rank : int
        Dims of a port.
    """

    xml_bytes: int = 512 << 20
    layers: int = 1_000_000
    rank: int = 64


DEFAULT_LIMITS = Limits()
