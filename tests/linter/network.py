"""Completes fragments of XML, in rules and cases, to a whole network.

A fragment is a few lines of XML.  Each element takes the place of the one with its id in
network.xml: an empty ``<net/>`` has the attributes of the root; a ``<layer>`` changes the
attributes and the children that it has; ``<data>``, ``<input>`` and ``<output>`` alone are those of
the transposed convolution; an ``<edge>`` replaces the edge that ends at the same port.  Elements
without a counterpart are added. Ports named by the edges of added layers are added without dims,
unless the fragment has them.  A single layer with an id of its own, and everything with another
root, is a whole file.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

NETWORK = Path(__file__).with_name("network.xml")
WEIGHTS = struct.pack("<222f", *[1.0] * 222)
DECONVOLUTION = "2"
CHILDREN = ("data", "input", "output")

# An element, with the comments before it and those behind it in its line.
_PIECE = re.compile(
    r"(?:<!--(?:(?!-->).)*-->\s*)*<([\w-]+)\b([^<>]*)(?:/>|>(.*?)</\1>)(?:[ \t]*<!--[^\n]*-->)*",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_LAYER = re.compile(r'<layer id="(\d+)"([^>]*)>(.*?)</layer>', re.DOTALL)


def weights_bytes(words: str) -> bytes | None:
    """Make a .bin from words, as in ``ones 864, i64 1 2, f32 1 nan``; ``none``: no .bin.

    ``ones`` and ``zeros`` take a number of bytes; those of ``ones`` are f32.
    """
    if words == "none":
        return None
    data = b"" if words else WEIGHTS
    for part in filter(None, words.split(",")):
        kind, *values = part.split()
        if kind == "zeros":
            data += bytes(int(values[0]))
        elif kind == "ones":
            data += (struct.pack("<f", 1.0) * (int(values[0]) // 4 + 1))[: int(values[0])]
        else:
            code, number = {"i64": ("q", int), "f32": ("f", float), "f16": ("e", float)}[kind]
            data += struct.pack(f"<{len(values)}{code}", *map(number, values))
    return data


def complete(fragment: str) -> str:
    """Return the whole file of a fragment; JSON is already a whole file."""
    if fragment.lstrip().startswith("{"):
        return fragment
    text = NETWORK.read_text("utf-8")
    pieces = list(_PIECE.finditer(fragment))
    known = {match[1] for match in _LAYER.finditer(text)}
    ids = {dict(_ATTRIBUTE.findall(p[2])).get("id") for p in pieces if p[1] == "layer"}
    alone = len(pieces) == 1 and len(ids - known) == 1
    root = re.match(r"(<net[^>]*)/>([ \t]*<!--.*-->)?", fragment)
    if root:
        text = re.sub("<net[^>]*>", f"{root[1]}>{root[2] or ''}", text)
    elif (
        not pieces
        or alone
        or pieces[0][1] not in ("layer", "edges", "edge", "pre-process", *CHILDREN)
    ):
        return fragment
    own = "".join(f"{piece[0]}\n" for piece in pieces if piece[1] in CHILDREN)
    if own:
        text = _changed_layer(text, DECONVOLUTION, {}, own)
    for piece in pieces:
        attributes = dict(_ATTRIBUTE.findall(piece[2]))
        if piece[1] == "edges":
            text = re.sub("<edges>.*?</edges>", lambda _, new=piece[0]: new, text, flags=re.DOTALL)
        elif piece[1] == "edge":
            text = _changed_edge(text, attributes, piece[0])
        elif piece[1] == "layer" and attributes.get("id") in known:
            text = _changed_layer(text, attributes["id"], attributes, piece[3] or "")
            comments = piece[0][: piece[0].index("<layer")]
            text = text.replace(
                f'<layer id="{attributes["id"]}"', f'{comments}<layer id="{attributes["id"]}"'
            )
        elif piece[1] == "pre-process":
            text = text.replace("<layers>", f"{piece[0]}\n<layers>", 1)
        elif piece[1] == "layer":
            text = text.replace("</layers>", f"{piece[0]}\n</layers>")
    for piece in pieces:
        if piece[1] == "edge":
            text = _with_ports(text, dict(_ATTRIBUTE.findall(piece[2])), ids - known)
    return text


def _with_ports(text: str, edge: dict[str, str], added: set[str | None]) -> str:
    """Add missing ports at the ends of an edge of an added layer."""
    ends = [("output", "from"), ("input", "to")]
    if not added.intersection(edge.get(f"{end}-layer") for _, end in ends):
        return text
    for side, end in ends:
        number, port = edge[f"{end}-layer"], f'<port id="{edge[f"{end}-port"]}"'
        text = re.sub(rf'(<layer id="{number}"[^>]*[^>/])/>', r"\1></layer>", text)
        found = next(match for match in _LAYER.finditer(text) if match[1] == number)
        ports = re.search(rf"(?s)<{side}>.*?(?=</{side}>)", found[3])
        if port in (ports[0] if ports else ""):
            continue
        before = f"{ports[0] if ports else f'<{side}>'}{port}/></{side}>"
        text = _changed_layer(text, number, {}, before)
    return text


def _changed_layer(text: str, number: str, attributes: dict[str, str], inside: str) -> str:
    """Give a layer other attributes, and replace the children named in `inside`."""

    def change(old: re.Match[str]) -> str:
        if old[1] != number:
            return old[0]
        head = {"id": number} | dict(_ATTRIBUTE.findall(old[2])) | attributes
        comment = re.match(r"[ \t]*(?:<!--[^\n]*-->)?", inside)
        assert comment is not None
        new = list(_PIECE.finditer(inside, comment.end()))
        names = {piece[1] for piece in new}
        kept = [piece for piece in _PIECE.finditer(old[3]) if piece[1] not in names]
        order = [*CHILDREN, *sorted(names - set(CHILDREN))]
        children = sorted([*kept, *new], key=lambda piece: order.index(piece[1]))
        written = " ".join(f'{name}="{value}"' for name, value in head.items())
        lines = [f"<layer {written}>{comment[0]}", *(c[0] for c in children)]
        return "\n".join([*lines, "</layer>"])

    return _LAYER.sub(change, text)


def _changed_edge(text: str, attributes: dict[str, str], edge: str) -> str:
    """Replace the edge of the network that ends at the same port, or add one."""
    ends = [f'{name}="{attributes.get(name)}"' for name in ("to-layer", "to-port")]
    for old in re.findall(r"<edge from[^>]*?/>", NETWORK.read_text("utf-8")):
        if all(end in old for end in ends) and old in text:
            return text.replace(old, edge)
    return text.replace("</edges>", f"{edge}\n</edges>")
