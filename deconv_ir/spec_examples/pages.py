"""Pages for readers: each example with its XML, its formulas worked through, its shapes.

A page is a list of blocks; a format is a function for each kind of block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..geometry import Semantics, effective_kernel
from ..model import Context
from ..ops.deconvolution import Deconvolution
from ..shapes import format_shape
from .fragments import fragment
from .golden import geometry_of
from .specfile import ExampleSpec, Spec


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the page (level 1) or of an example (2) or of a part of one (3)."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text to the letter; its language is ``xml`` or ``text``."""

    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Table:
    """A head, and rows as long as it."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a file, with words for those who can not see it."""

    file: str
    text: str


Block = Heading | Paragraph | Code | Table | Picture


def page(spec: Spec, files: Sequence[str]) -> list[Block]:
    """Make the page of a SPEC file.

    Parameters
    ----------
    files : sequence of str
        What is generated beside the page.
    """
    there = set(files)
    blocks: list[Block] = [Heading(spec.title, 1)]
    if spec.source:
        blocks.append(Paragraph(f"Source: {spec.source}"))
    blocks += _paragraphs(spec.text)
    for example in spec.examples:
        blocks += _example(spec, example, there)
    return blocks


def _paragraphs(text: str) -> list[Block]:
    return [Paragraph(" ".join(p.split())) for p in re.split(r"\n\s*\n", text) if p.strip()]


def _example(spec: Spec, example: ExampleSpec, there: set[str]) -> list[Block]:
    blocks: list[Block] = [Heading(example.title, 2), *_paragraphs(example.text)]
    blocks.append(Code(fragment(spec, example), "xml"))
    picture = f"{example.name}/diagram.svg"
    if picture in there:
        blocks.append(Picture(picture, f"{example.title}: how input and output line up"))
    if isinstance(example.operation, Deconvolution):
        for semantics in example.profiles:
            blocks += _axes(example, semantics)
    else:
        blocks.append(Code(_explanations(example), "text"))
    blocks.append(_tensors(example, there))
    return blocks


def _axes(example: ExampleSpec, semantics: Semantics) -> list[Block]:
    """Work an example's axes through: a column of numbers and a formula for each."""
    operation = example.operation
    assert isinstance(operation, Deconvolution)
    geometry = geometry_of(example, semantics)
    spatial = len(geometry)
    data, filter_ = operation.views(example.infos, spatial)
    axes = operation.axes(spatial)
    natural = [
        axis.natural(x, k)
        for axis, x, k in zip(axes, data.spatial, filter_.kernel, strict=True)
        if isinstance(x, int) and isinstance(k, int)
    ]
    effective = [
        effective_kernel(k, axis.dilation)
        for axis, k in zip(axes, filter_.kernel, strict=True)
        if isinstance(k, int)
    ]
    rows: list[tuple[str, Sequence[object]]] = [
        ("input extent X", data.spatial),
        ("kernel extent K", filter_.kernel),
        ("stride", [a.stride for a in axes]),
        ("dilation", [a.dilation for a in axes]),
        ("effective kernel (K - 1)*dilation + 1", effective),
        ("natural extent stride*(X - 1) + effective kernel", natural),
        ("output_padding", [a.output_padding for a in axes]),
        ("pad_begin", [g.pad_begin for g in geometry]),
        ("pad_end", [g.pad_end for g in geometry]),
        ("output extent Y", [g.output for g in geometry]),
    ]
    blocks: list[Block] = []
    if len(example.profiles) > 1:
        blocks.append(Heading(f"By the rule of {_PROFILES[semantics]}", 3))
    head = ("", *(f"axis {i}" for i in range(spatial)))
    blocks.append(Table(head, tuple((n, *map(str, values)) for n, values in rows)))
    text = [
        f"axis {i}:\n{_work(g.formula)}" if spatial > 1 else _work(g.formula)
        for i, g in enumerate(geometry)
    ]
    blocks.append(Code("\n".join(text), "text"))
    return blocks


_PROFILES = {
    Semantics.SPEC: "the specification",
    Semantics.OPENVINO: "the OpenVINO runtime",
}


def _work(formula: str) -> str:
    """Break a formula into lines: what is sought, the formula, its numbers, its value."""
    lines = []
    for part in formula.replace(", pad_end", "; pad_end").split("; "):
        sought, *steps = part.split(" = ") if part.count(" = ") > 1 else [part]
        lines.append(sought + (f" = {steps[0]}" if steps else ""))
        lines += [f"{' ' * len(sought)} = {step}" for step in steps[1:]]
    return "\n".join(lines) + "\n"


def _explanations(example: ExampleSpec) -> str:
    context = Context(example.profiles[0])
    lines = []
    for i, shape in enumerate(example.outputs):
        lines.append(f"output {i}: {format_shape(shape)}")
        for axis in range(len(shape)):
            formula = example.operation.explain(example.infos, context, i, axis)
            if formula:
                lines.append(f"  axis {axis}: {formula}")
    return "\n".join(lines) + "\n"


def _tensors(example: ExampleSpec, there: set[str]) -> Table:
    rows = [
        (i.name, format_shape(i.shape), i.element_type.name, f"{example.name}/{i.name}.npy")
        for i in example.inputs
    ]
    for semantics in example.profiles:
        for i, shape in enumerate(example.outputs):
            name = output_name(example, semantics, i)
            file = f"{example.name}/{name}.npy"
            rows.append((name, format_shape(shape), example.output_types[i].name, file))
    return Table(
        ("tensor", "shape", "element type", "file"),
        tuple((n, s, t, f if f in there else "") for n, s, t, f in rows),
    )


def output_name(example: ExampleSpec, semantics: Semantics, index: int = 0) -> str:
    """Name an output: the first profile's has no suffix."""
    suffix = "" if semantics is example.profiles[0] else f".{semantics.value}"
    return f"output{index or ''}{suffix}"


# Formats


def markdown(blocks: Sequence[Block]) -> str:
    """Write blocks as Markdown."""
    return _render(blocks, _markdown)


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Paragraph):
        return block.text
    if isinstance(block, Code):
        return f"```{block.language}\n{block.text}```"
    if isinstance(block, Picture):
        return f"![{block.text}]({block.file})"
    rows = [block.head, tuple("---" for _ in block.head), *block.rows]
    return "\n".join(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in r)} |" for r in rows)


def rst(blocks: Sequence[Block]) -> str:
    """Write blocks as reStructuredText."""
    return _render(blocks, _rst)


def _rst(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{block.text}\n{'=-~'[block.level - 1] * len(block.text)}"
    if isinstance(block, Paragraph):
        # Markdown's `literal` is ``literal`` here.
        return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", block.text)
    if isinstance(block, Code):
        body = "".join(f"   {line}".rstrip() + "\n" for line in block.text.splitlines())
        return f".. code-block:: {block.language}\n\n{body}".rstrip("\n")
    if isinstance(block, Picture):
        return f".. image:: {block.file}\n   :alt: {block.text}"
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (block.head, *block.rows):
        cells = [f"- {cell}".rstrip() for cell in row]
        lines += [f"   * {cells[0]}", *(f"     {cell}" for cell in cells[1:])]
    return "\n".join(lines)


def xml(spec: Spec) -> str:
    """Write the fragments alone, each under its title."""
    parts = [
        f"<!-- {example.title.replace('--', '- -')} -->\n{fragment(spec, example)}"
        for example in spec.examples
    ]
    return "\n".join(parts)


def _render(blocks: Sequence[Block], one: Callable[[Block], str]) -> str:
    return "\n\n".join(map(one, blocks)) + "\n"
