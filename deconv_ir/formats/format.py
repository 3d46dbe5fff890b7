"""The interface of a file format: a `Format`, and the `ParsedFile` and `Locator` of each file."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import UnsupportedError
from deconv_ir.findings import TextSpan

if TYPE_CHECKING:
    from pathlib import Path

    from deconv_ir.errors import DeconvError
    from deconv_ir.findings import Location
    from deconv_ir.formats.exchange import Extract, Lowered, Written
    from deconv_ir.formats.file_text import FileText
    from deconv_ir.ir.graph import Graph, Layer
    from deconv_ir.ir.operation import ConstantSource
    from deconv_ir.limits import Limits


class Format(abc.ABC):
    """A file format of models; `register` adds one.

    All commands know formats only by this interface.  An instance exists in every process, so that
    its module imports what reads and writes files only within the methods.

    Attributes
    ----------
    name : str
        A `Graph` that is read from such a file has it as its `format`.
    title : str
        Name of a file for messages, with an article.
    suffixes : tuple of str
        Of such files, in small letters.
    weights_suffix : str
        Suffix of the weights file beside them; empty: there is none.
    shares_suffixes : bool
        Whether files of other kinds have the suffixes, too: those in folders must be `is_likely`.
    has_opsets : bool
        Whether layers are those of OpenVINO's opsets; otherwise `to_opsets` converts them.
    rules : str
        Family of the lint rules that only such files can break; empty: there are none.
    unread_by_openvino : str
        Why no release of OpenVINO reads such files; empty: releases do.
    states_image_type : bool
        Whether a `<pre-process>` states the element type of its mean images.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    weights_suffix = ""
    shares_suffixes = False
    has_opsets = True
    rules = ""
    unread_by_openvino = ""
    states_image_type = False

    @abc.abstractmethod
    def recognise(self, data: bytes, file: str | None) -> bool:
        """Whether a file is read as one of this format: by its first bytes, or by its name."""

    def is_likely(self, start: bytes) -> bool:
        """Whether a file that nobody named is one of this format, by its first 64 KiB."""
        return True

    @abc.abstractmethod
    def read(self, data: bytes, file: str | None, limits: Limits) -> ParsedFile:
        """Read a file; its problems are collected in the document."""

    def complete(self, graph: Graph, weights: Any) -> tuple[Graph, Any]:
        """Return a graph, and its weights, as they are run and saved, once the latter are open.

        `weights` is a `Weights` of the built-in formats, or None.
        """
        return graph, weights

    def changes(self, graph: Graph) -> list[str]:
        """Return a line for each kind of change that a complete graph has gone through."""
        return []

    @abc.abstractmethod
    def save(self, graph: Graph, weights: ConstantSource | None, path: Path) -> list[str]:
        """Write a graph of layers of opsets; return the files that were written.

        Raises
        ------
        OutputError
            A file cannot be written.
        UnsupportedError
            The format has no counterpart of a layer; nothing is written.
        """

    def cut(self, part: Extract, path: Path) -> Written:
        """Write a part of a model; its layers are those of opsets or of this format.

        Raises
        ------
        InputError
            Parts of this model cannot be written in this format.
        """
        from deconv_ir.formats.exchange import Written

        self.save(part.graph, part.weights, path)
        return Written()

    def to_opsets(self, graph: Graph) -> Lowered:
        """Express a graph of this format in layers of opsets, if it has others.

        Raises
        ------
        UnsupportedError
            An operation has no counterpart.
        """
        raise UnsupportedError(f"{self.title} files have no counterpart in opsets", file=graph.file)


class Locator(abc.ABC):
    """Finds the parts of a graph in the text that it was read from, `file_text`."""

    file_text: FileText

    @abc.abstractmethod
    def span(self, location: Location) -> TextSpan:
        """Return the narrowest span of the text that contains a location."""

    def owner(self, offset: int) -> TextSpan | None:
        """Return the span of the layer or edge that contains an offset; None outside of them."""
        return None

    def data(self, index: int) -> Any:
        """Return the element with the attributes of a layer; None: the format has no fixes."""
        return None

    def port(self, index: int, side: str, port: int) -> Any:
        """Return the element of a port; None: the format has no fixes."""
        return None


class ParsedFile:
    """The result of reading one file.

    Attributes
    ----------
    format : str
        Name of its `Format`; empty for a file of none.
    file_text : FileText or None
        None if the file is not text of its format.
    graph : Graph or None
        None if the file has no graph.
    errors : list of DeconvError
        Those that prevent loading, in the order of the file.
    remarks : list of DeconvError
        Unknown parts of the file, which are ignored.
    layers, edges : sequence of int
        Offsets of the graph's layers and edges in the text, if each has one.
    root : TextSpan
        The beginning of the file's only element.
    bodies : sequence of (int, str, ParsedFile)
        Bodies of layers: index of the layer, name of the body, contents.
    """

    format = ""
    has_opsets = True
    """Whether types and versions of layers are those of OpenVINO's opsets."""
    states_edges = True
    """Whether the file states edges and Results.  Otherwise the reader finds them from the names of
    tensors, and what is missing there follows from other problems."""

    states_constants = True
    """Whether all constants of the file are in the graph, also those of layers with problems."""

    layers: Sequence[int] = ()
    edges: Sequence[int] = ()
    bodies: Sequence[tuple[int, str, Any]] = ()
    root = TextSpan(0, 0)

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.file_text: FileText | None = None
        self.graph: Graph | None = None
        self.errors: list[DeconvError] = []
        self.remarks: list[DeconvError] = []

    def locator(self) -> Locator:
        """Return the locator of the parts of the graph in the text."""
        raise NotImplementedError

    def walk(self) -> Iterator[ParsedFile]:
        """Iterate over the document and the bodies within it."""
        yield self
        for _, _, body in self.bodies:
            yield from body.walk()

    def located_errors(self) -> list[DeconvError]:
        """Return the problems, of bodies too, each with its line and column."""
        parts = list(self.walk())
        for part in parts:
            if part.errors:
                part._pin_down()
        return [error for part in parts for error in part.errors]

    def _pin_down(self) -> None:
        """Narrow the problems' locations to the invalid attribute or dim."""
        if self.file_text is None or self.graph is None:
            return
        locator = self.locator()
        for error in self.errors:
            if error.location is not None:
                start, _ = locator.span(error.location)
                error.line, error.column = self.file_text.position(start)

    def is_known(self, layer: Layer) -> bool:
        """Whether the type and version of a layer are implemented."""
        from deconv_ir.ops import find_operation

        return find_operation(layer.type, layer.version) is not None

    def known_attributes(self, layer: Layer) -> frozenset[str] | None:
        """Return the names of the attributes that a layer may have; None: any."""
        from deconv_ir.ops import find_operation
        from deconv_ir.ops.base import attributes_of

        operation = find_operation(layer.type, layer.version)
        if operation is None or not operation.implemented:
            return None
        return frozenset(spec.name for spec in attributes_of(operation))

    def label(self, index: int) -> str:
        """Return the name of a layer of the graph for messages about the file."""
        assert self.graph is not None, "a file with layers has a graph"
        return self.graph.layers[index].label

    def is_rank_unknown(self, layer: int, output: int) -> bool:
        """Whether the file says of an output that its rank is unknown; dims may just be missing."""
        return False
