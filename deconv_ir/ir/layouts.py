"""Layouts: the meaning of the axes of an input, one letter each, such as ``nchw``.

Source: OpenVINO, Layout API overview.  An IR has the layout of an input in the `rt_info` of its
port.
"""

from __future__ import annotations

from typing import Final

from deconv_ir.ir.graph import Info, Layer, Port
from deconv_ir.ir.shapes import Shape

_ORDER: Final = "ncdhw"
_OF_RANK: Final = {4: "nchw", 5: "ncdhw"}
_IMAGE_CHANNELS: Final = (1, 3, 4)
"""Channels of an image: grey, RGB, RGB and alpha."""


def parse_layout(text: str) -> str:
    """Parse ``nchw``, ``NCHW`` or ``[N,C,H,W]``; raise a ValueError for anything else."""
    letters = text.strip().removeprefix("[").removesuffix("]").lower()
    letters = "".join(letters.replace(",", " ").split())
    if not letters.isascii() or not letters.isalpha() or len(set(letters)) < len(letters):
        raise ValueError(f"invalid layout {text!r} (expected one letter for each axis, as in nhwc)")
    return letters


def stated_layout(layer: Layer) -> str | None:
    """Return the layout that the file states for a Parameter; None if it states none."""
    ports = (info for port in layer.outputs for info in port.extras)
    for info in (*ports, *layer.extras):
        for child in info.children if info.tag == "rt_info" else ():
            found = dict(child.attributes)
            if found.get("name") == "layout":
                try:
                    return parse_layout(found.get("layout", ""))
                except ValueError:
                    return None  # a partial layout such as [N,...]
    return None


def with_layout(port: Port, layout: str) -> Port:
    """Return the port of a Parameter with a layout in its `rt_info`, as OpenVINO writes it."""
    written = f"[{','.join(layout.upper())}]"
    made = Info("attribute", (("name", "layout"), ("version", "0"), ("layout", written)))
    others: tuple[Info, ...] = ()
    for info in port.extras:
        if info.tag == "rt_info":
            others = tuple(c for c in info.children if dict(c.attributes).get("name") != "layout")
    rest = tuple(info for info in port.extras if info.tag != "rt_info")
    return port._replace(extras=(Info("rt_info", children=(*others, made)), *rest))


def guess_layout(shape: Shape, letters: str | None = None) -> str | None:
    """Return the likely layout of an input, given its letters in any order; None: not known.

    The channels come first, after the batch, unless the last extent alone is 1, 3 or 4.
    """
    if letters is None:
        first = None if shape is None else _OF_RANK.get(len(shape))
    else:
        first = "".join(x for x in _ORDER if x in letters) if set(letters) <= set(_ORDER) else None
    if first is None or "c" not in first or shape is None or len(shape) != len(first):
        return first
    axis = first.index("c")
    channels = shape[axis]
    looks_last = isinstance(channels, int) and channels not in _IMAGE_CHANNELS
    if looks_last and shape[-1] in _IMAGE_CHANNELS:
        return first.replace("c", "") + "c"
    return first
