"""Why releases of OpenVINO refuse a file, or why it is not known whether they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from deconv_ir.formats.openvino_xml.text import XMLText
from deconv_ir.formats.registry import format_named
from deconv_ir.linter.releases import (
    FIRST_OF_IR,
    LAST_OF_OLD_IRS,
    OPSETS,
    Release,
    reads_ir,
    shown,
)
from deconv_ir.linter.targets.layers import LayerForm, layer_forms
from deconv_ir.linter.targets.table import Acceptance, Table, measured
from deconv_ir.ops import opset_number

if TYPE_CHECKING:
    from deconv_ir.ir.graph import Info, Layer
    from deconv_ir.linter.context import LintContext

ANY: Final = "*"
"""The part that stands for every form of an operation that was tried."""
TOGETHER: Final = "&"
"""Joins two parts that some release accepts alone and refuses together."""
PRODUCTS: Final = frozenset(
    {"MatMul", "Convolution", "GroupConvolution", "BinaryConvolution", "DeformableConvolution"}
    | {"ConvolutionBackpropData", "GroupConvolutionBackpropData"}
)
"""Types with kernels for some shapes only, where their data are not floating-point."""
FLOATS: Final = frozenset({"f32", "f16", "bf16", "f64", "u1"})
"""Element types that have kernels for all shapes; u1 is that of binary filters."""
READ: Final = "read"
"""The section of types and opsets."""
DEPENDING: Final = frozenset({"types", "rank", "dynamic", "shape"})
"""Parts that are refused or not by what else is in a network, so that they never block."""
UNKNOWN_INFO: Final = "unknown_0"
"""The attribute of runtime info that stands for all that no release knows."""
FILES: Final = "files"
"""The section of files as a whole."""
SHORT: Final = "short"
"""A network that ends within the first `HEADER_BYTES` bytes."""
HEADER_BYTES: Final = 512
RT_INFO: Final = "rt_info"
"""The section of attributes in the rt_info of layers and ports."""


class Reason(NamedTuple):
    """Why a file is not likely to run on some releases."""

    blocks: bool
    """The releases refuse the file; otherwise it is not known whether they do."""
    message: str
    releases: frozenset[Release]
    layer: int | None = None
    """Index in the graph; None: the file."""


class _Fault(NamedTuple):
    blocks: bool
    message: str


def reasons(context: LintContext, releases: Iterable[Release]) -> Iterator[Reason]:
    """Iterate over the reasons in a graph: a file without its bodies, or a body.

    Parameters
    ----------
    context : LintContext
    releases : iterable of tuple of int
        The releases in question.
    """
    table = measured()
    asked = tuple(releases)
    root = context
    while root.around is not None:
        root = root.around
    whole = list(_of_file(root, asked, table))
    if root is context:
        yield from whole
    refused = frozenset(r for reason in whole if reason.blocks for r in reason.releases)
    left = tuple(r for r in asked if r not in refused)
    if not left or context.inference is None:
        return
    known: dict[object, list[tuple[_Fault, frozenset[Release]]]] = {}
    unneeded = frozenset(context.unneeded)
    # Without a Result nothing is needed.
    reads_layers = any(layer.type == "Result" for layer in root.graph.layers)
    for form in layer_forms(context):
        layer = context.graph.layers[form.layer]
        extras = (*layer.extras, *(e for p in (*layer.inputs, *layer.outputs) for e in p.extras))
        key = (layer.type, layer.version, form.operation, form.parts, extras)
        if key not in known:
            found: dict[_Fault, list[Release]] = {}
            for release in left:
                for fault in _of_layer(layer, form, extras, release, table):
                    found.setdefault(fault, []).append(release)
            known[key] = [(fault, frozenset(where)) for fault, where in found.items()]
        for fault, where in known[key]:
            # The reader leaves out layers that nothing needs.
            blocks = fault.blocks and reads_layers and form.layer not in unneeded
            yield Reason(blocks, fault.message, where, form.layer)


def _of_file(context: LintContext, asked: Sequence[Release], table: Table) -> Iterator[Reason]:
    """Iterate over the reasons that concern the file as a whole."""
    graph = context.parsed.graph
    every = frozenset(asked)
    if graph is None:
        yield Reason(False, "the linter cannot read the file", every)
        return
    own = format_named(context.parsed.format)
    if own is not None and own.unread_by_openvino:
        yield Reason(True, own.unread_by_openvino, every)
        return
    if graph.bare or graph.ir_version is None:
        yield Reason(True, "the file is not a network: OpenVINO does not read it", every)
        return
    version = graph.ir_version
    refusing = frozenset(r for r in asked if not reads_ir(version, r))
    if refusing:
        yield Reason(True, ir_version_message(version), refusing)
    if _is_short(context):
        accepted = table.of(FILES).get(SHORT, Acceptance(frozenset())).accepted
        if where := frozenset(r for r in table.releases if r in every and r not in accepted):
            message = (
                f"a network that ends in the first {HEADER_BYTES} bytes of the file is not read"
            )
            yield Reason(True, message, where)
    unknown = frozenset(r for r in asked if r not in table.releases) - refusing
    if unknown:
        yield Reason(False, "no measurement of these releases", unknown)


def _is_short(context: LintContext) -> bool:
    """Whether the network ends within the bytes that tell the reader the kind of a file."""
    file_text = context.parsed.file_text
    if not isinstance(file_text, XMLText):
        return False
    return "</net" in file_text.markup[:HEADER_BYTES]


def ir_version_message(version: int) -> str:
    """Return which releases read an IR version."""
    if version in FIRST_OF_IR:
        return f"IR version {version} is read from OpenVINO {shown(FIRST_OF_IR[version])} on"
    if 2 <= version < 8:
        last = shown(LAST_OF_OLD_IRS)
        return f"IR version {version} was read last by OpenVINO {last}"
    return f"no release of OpenVINO reads IR version {version}"


def _of_layer(
    layer: Layer, form: LayerForm, extras: tuple[Info, ...], release: Release, table: Table
) -> Iterator[_Fault]:
    """Iterate over the faults of one layer for one release."""
    of_opset = _opset_fault(layer, release, table)
    if of_opset is not None:
        yield of_opset
        return
    if form.operation is None:
        words = f"{layer.type} of version {layer.version or 'none'}"
        yield _Fault(False, f"{words} is not an operation of an opset: it needs an extension")
        return
    if release not in table.releases:
        return  # the file has a reason for it
    known = table.of(form.operation)
    if not known:
        yield _Fault(False, f"{form.operation} was not tried")
        return
    any_form = known[ANY]
    if release not in any_form.accepted:
        blocks = release not in any_form.unclear
        yield _Fault(blocks, f"no form of {form.operation} compiled for the CPU")
        return
    if layer.type == "Const" and dict(layer.attributes).get("element_type") == "string":
        yield _Fault(False, "constants of strings were not tried")
    for part in form.parts:
        fault = _judged(part, known.get(part), release, f"{form.operation} with {described(part)}")
        if fault is not None:
            yield fault
    if layer.type in PRODUCTS and (kinds := _low_precision(form.parts)):
        yield _Fault(False, f"whether {layer.type} of {kinds} compiles depends on its shapes")
    for pair in known:
        joined = pair.split(TOGETHER)
        if len(joined) > 1 and form.parts and set(joined) <= set(form.parts):
            what = f"{form.operation} with {' and '.join(map(described, joined))}"
            fault = _judged(pair, known[pair], release, what)
            if fault is not None:
                yield fault
    for name in _rt_info(extras):
        found = table.of(RT_INFO).get(name) or table.of(RT_INFO).get(UNKNOWN_INFO)
        fault = _judged(name, found, release, f"the rt_info {name}", reading=True)
        if fault is not None:
            yield fault


def _low_precision(parts: Sequence[str]) -> str:
    """Return the element types of a layer's data and filter if they are not floating-point."""
    for part in parts:
        name, _, value = part.partition("=")
        if name == "elements" and not set(value.split(",")[:2]) <= FLOATS:
            return value
    return ""


def _judged(
    part: str, found: Acceptance | None, release: Release, what: str, *, reading: bool = False
) -> _Fault | None:
    """Return the fault of a part; None if the release accepts it."""
    if found is not None and release in found.accepted:
        return None
    if found is None or release in found.unclear:
        return _Fault(False, f"{what} was not tried")
    if reading:
        return _Fault(True, f"{what} is not read")
    if part.partition("=")[0] in DEPENDING or TOGETHER in part:
        return _Fault(False, f"{what} did not compile for the CPU in a small network")
    return _Fault(True, f"{what} does not compile for the CPU")


def _opset_fault(layer: Layer, release: Release, table: Table) -> _Fault | None:
    """Return the fault if a release has no such operation in the layer's opset."""
    number = opset_number(layer.version or "")
    if number < 0:
        return None
    read = table.of(READ).get(f"{layer.type}-{number}")
    first = OPSETS.get(number)
    if read is not None and read.accepted and (first is None or first > min(table.releases)):
        first = min(read.accepted)  # a release may have a part of the next opset
    if release in table.releases:
        if read is None or release in read.accepted:
            return None
    elif first is None or release >= first:
        return None
    elif release >= OPSETS.get(number - 1, first):
        # 2024.2 reads parts of opset15, which the documents have from 2024.5 on.
        words = f"{shown(first)} is the first release that the documents name"
        return _Fault(False, f"whether {layer.type} of opset{number} is read is not known; {words}")
    later = first is not None and release < first
    words = f"; {shown(first)} is the first release that reads it" if first and later else ""
    return _Fault(True, f"{layer.type} of opset{number} is not read{words}")


def _rt_info(extras: Iterable[Info]) -> Iterator[str]:
    """Iterate over the attributes of runtime info, as ``fused_names_0``."""
    for extra in extras:
        if extra.tag == "rt_info":
            for child in extra.children:
                if child.tag == "attribute":
                    written = dict(child.attributes)
                    yield f"{written.get('name', '')}_{written.get('version', '')}"


def described(part: str) -> str:
    """Return a part of a form in words.

    Examples
    --------
    >>> from deconv_ir.linter.targets.reasons import described
    >>> described("types=f32,u4c"), described("rank=6"), described("mode=cubic")
    ('inputs f32,u4 (constant)', 'rank 6', 'mode="cubic"')
    """
    name, _, value = part.partition("=")
    if name == "elements":
        return f"inputs {value}"
    if name == "dynamic":
        return f"dynamic dims of inputs {value}"
    if name == "types":
        words = [f"{w[:-1]} (constant)" if w.endswith("c") else w for w in value.split(",")]
        return f"inputs {','.join(words)}"
    if name == "rank":
        return f"rank {value}"
    if name == "shape":
        return {
            "?": "a dynamic rank",
            "empty": "a dim of 0",
        }[value]
    return f'{name}="{value}"'
