"""The records that formats and their users exchange when graphs are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import ConstantSource


class Lowered(NamedTuple):
    """A graph expressed in layers of opsets.

    Attributes
    ----------
    graph : Graph
    weights : bytes
        The contents of its weights file.
    names : mapping
        Tensor of the original graph -> name of the layer that computes it.
    """

    graph: Graph
    weights: bytes
    names: Mapping[Source, str]


class Extract(NamedTuple):
    """A part of a model, to be written.

    Attributes
    ----------
    graph : Graph
    outputs : tuple of str
        Names of its outputs.
    weights : ConstantSource or None
        The weights of the whole model.
    source : str, path-like or None
        The file of the whole model; None if the model may differ from it.
    seed : int or None
        Seed of noise that replaces the weights; None: they are kept.
    """

    graph: Graph
    outputs: tuple[str, ...]
    weights: ConstantSource | None
    source: Path | None
    seed: int | None


class Written(NamedTuple):
    """What was written of the weights of a part.

    Attributes
    ----------
    weight_bytes : int
        Bytes of the weights file.
    kept : tuple of str
        Names of the constants that noise does not replace.
    """

    weight_bytes: int = 0
    kept: tuple[str, ...] = ()
