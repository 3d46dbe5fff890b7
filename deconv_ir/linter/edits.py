"""Fixes of declared dims and attributes, which leave the rest of the text unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.findings import Fix
from deconv_ir.formats.openvino_xml.locations import trimmed
from deconv_ir.formats.openvino_xml.scanner import Element
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.shapes import Shape, declared_form
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.safety import supports_attribute, supports_shape, supports_type
from deconv_ir.ops.base import attributes_of

if TYPE_CHECKING:
    from deconv_ir.edits import Edit
    from deconv_ir.linter.diagnosis import Correction, Diagnosis

MAX_INDENT = 1000
"""Characters before a port in which the beginning of its line is searched."""


def dims_fix(context: LintContext, index: int, side: str, port: int, shape: Shape) -> Fix | None:
    """Return the fix that makes a port declare a shape."""
    element = context.locator.port(index, side, port)
    if element is None:
        return None
    wanted = declared_form(shape)
    dims = list(element.named("dim"))
    edits: list[Edit] = []
    for dim, text in zip(dims, wanted, strict=False):
        if dim.text().strip() != text:
            edits.append((*_inside(dim), text))
    if len(dims) > len(wanted):
        start = dims[len(wanted) - 1].end if wanted else element.head_end
        keep = element.children[element.children.index(dims[-1]) + 1 :]
        if not wanted and not keep:
            start = element.head_end
        edits.append((start, dims[-1].end, ""))
    elif len(dims) < len(wanted):
        edits.append(_insertion(context, element, dims, wanted[len(dims) :]))
    if not edits:
        return None
    return Fix(tuple(edits), supports_shape(context, index, side, port, shape))


def type_fix(
    context: LintContext, index: int, side: str, port: int, element_type: ElementType
) -> Fix | None:
    """Return the fix that makes a port declare an element type."""
    edits = attribute_edit(context, index, "precision", element_type.ir_name, port=(side, port))
    return Fix(edits, supports_type(context, index, side, port, element_type)) if edits else None


def attribute_fix(context: LintContext, index: int, name: str, value: str) -> Fix | None:
    """Return the fix that gives an attribute of ``<data>`` a value."""
    edits = attribute_edit(context, index, name, value)
    if not edits:
        return None
    return Fix(edits, supports_attribute(context, index, name, value))


def diagnosis_fix(context: LintContext, index: int, diagnosis: Diagnosis) -> Fix | None:
    """Return the fix of the likeliest correction; if it is not certain, the others too."""
    found = (correction_fix(context, index, correction) for correction in diagnosis.corrections)
    fixes = [fix for fix in found if fix is not None]
    if not fixes or diagnosis.is_certain:
        return fixes[0] if fixes else None
    return fixes[0]._replace(alternatives=tuple(fixes[1:]))


def stated_type_fix(
    context: LintContext, index: int, stated: ElementType, declared: ElementType
) -> Fix | None:
    """Return the fix of the attribute that states the element type of an output, if any."""
    operation = context.graph.layers[index].operation
    for spec in attributes_of(type(operation)):
        if getattr(operation, spec.field, None) is stated:
            edits = attribute_edit(context, index, spec.name, declared.name)
            return Fix(edits, title=f'{spec.name}="{declared.name}"') if edits else None
    return None


def correction_fix(context: LintContext, index: int, correction: Correction) -> Fix | None:
    """Return the fix of a correction, which is confirmed only by the declared dims."""
    edits = attribute_edit(context, index, correction.name, correction.value)
    if correction.misspelt is not None:
        data = context.locator.data(index)
        if data is None:
            return None
        start = data.attribute_spans()[correction.misspelt][0]
        edits = ((start, start + len(correction.misspelt), correction.name),)
    return Fix(edits, title=str(correction)) if edits else None


def _inside(dim: Element) -> tuple[int, int]:
    start, end = trimmed(dim)
    return dim.text_span() if start == dim.start else (start, end)


def _insertion(
    context: LintContext, port: Element, dims: list[Element], texts: tuple[str, ...]
) -> Edit:
    """Add dims to a port, in the style of the file."""
    text = context.locator.file_text.text
    if dims:
        start = dims[-1].end
        before = dims[-2].end if len(dims) > 1 else port.head_end
        gap = text[before : dims[-1].start]
        gap = gap if not gap.strip() else ""
        return (start, start, "".join(f"{gap}<dim>{t}</dim>" for t in texts))
    # A file may be one line of many megabytes.
    nearest = max(0, port.start - MAX_INDENT)
    line_start = text.rfind("\n", nearest, port.start) + 1
    indent = text[line_start or nearest : port.start]
    if indent.strip() or not line_start:  # the port is not on a separate line
        inside = "".join(f"<dim>{t}</dim>" for t in texts)
        after = ""
    else:
        end = "\r\n" if text.endswith("\r\n", 0, line_start) else "\n"
        unit = "\t" if "\t" in indent else "  "
        inside = "".join(f"{end}{indent}{unit}<dim>{t}</dim>" for t in texts)
        after = f"{end}{indent}"
    if port.closed:
        head = text[port.start : port.head_end].removesuffix("/>").rstrip()
        return (port.start, port.head_end, f"{head}>{inside}{after}</port>")
    return (port.head_end, port.head_end, inside)


def attribute_edit(
    context: LintContext, index: int, name: str, value: str, *, port: tuple[str, int] | None = None
) -> tuple[Edit, ...]:
    """Return the edit that sets the value of an attribute, adding the attribute if it is absent.

    The value must not need escaping.  `port` is the side and index of a port; without it, the
    attribute is one of ``<data>``.
    """
    locator = context.locator
    element = locator.data(index) if port is None else locator.port(index, *port)
    if element is None:
        return ()
    spans = element.attribute_spans()
    if name in spans:
        _, start, end = spans[name]
        return ((start, end, value),)
    text = locator.file_text.text
    end = element.head_end - (2 if element.closed else 1)
    while text[end - 1].isspace():
        end -= 1
    return ((end, end, f' {name}="{value}"'),)
