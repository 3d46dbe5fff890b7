"""All file formats: the built-in ones, and those of other packages."""

from __future__ import annotations

import os
from typing import Final

from deconv_ir.errors import InputError
from deconv_ir.formats.format import Format
from deconv_ir.formats.onednn_json import ONEDNN_JSON
from deconv_ir.formats.openvino_legacy import OPENVINO_LEGACY
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.ir.graph import Graph

FORMATS: Final[list[Format]] = [OPENVINO_XML, OPENVINO_LEGACY, ONEDNN_JSON]
"""All formats; if several recognise a file, it is read by the last."""


def register(added: Format) -> None:
    """Add a format of another package.

    Raises
    ------
    InputError
        Another format has its name.
    """
    for index, there in enumerate(FORMATS):
        if there.name == added.name:
            own, other = (f"{type(f).__module__}.{type(f).__qualname__}" for f in (added, there))
            if own != other:  # code may be run again, as in a notebook
                raise InputError(f"format {added.name} is already registered, by {other}")
            FORMATS[index] = added
            return
    FORMATS.append(added)


def find_format(data: bytes, file: str | None) -> Format | None:
    """Return the format of a file, by its contents and its name; None: it is of another kind."""
    return next((f for f in reversed(FORMATS) if f.recognise(data, file)), None)


def format_of_suffix(path: str | os.PathLike[str]) -> Format | None:
    """Return the format that a file's name announces."""
    name = os.fspath(path)
    return next((f for f in reversed(FORMATS) if name.endswith(f.suffixes)), None)


def format_named(name: str | None) -> Format | None:
    """Return the format of this name; None: a file was read as none."""
    return next((f for f in FORMATS if f.name == name), None)


def format_of(graph: Graph) -> Format:
    """Return the format that a graph was read from; one made in memory is written as an IR."""
    return format_named(graph.format) or OPENVINO_XML


def models_beside(path: str) -> list[str]:
    """Return the models whose weights file a file may be; they may not exist."""
    return [
        path[: -len(known.weights_suffix)] + suffix
        for known in FORMATS
        if known.weights_suffix and path.lower().endswith(known.weights_suffix)
        for suffix in known.suffixes
    ]


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of models."""
    return tuple(suffix for known in FORMATS for suffix in known.suffixes)
