"""Layers that OpenVINO's reader rejects, and this one accepts.

Measured with OpenVINO 2026.4; `make mutate-lint` repeats the measurement if it is installed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.ir.graph import Layer
from deconv_ir.linter.rule import DECONVOLUTION
from deconv_ir.ops.base import AttributeSpec, Form, attributes_of

NO_OPSET: Final = (None, "", "extension", "experimental")
"""Versions that do not name an opset."""

OF_EXTENSIONS: Final = frozenset({"Identity", "StringTensorPack", "StringTensorUnpack"})
"""Types of opsets that extension libraries of OpenVINO had before, and still have.

openvino_tokenizers writes its own StringTensorUnpack, and the guide to extensions an Identity.
"""

REQUIRED: Final = {
    "DepthToSpace": ("block_size",),
    "SpaceToDepth": ("block_size",),
    "PSROIPooling": ("mode", "group_size"),
    "DeformableConvolution": ("deformable_group", "group"),
    "Bucketize": ("output_type",),
    "PriorBoxClustered": ("width", "height"),
    "Col2Im": ("strides", "dilations", "pads_begin", "pads_end"),
}
"""Attributes that the reader requires, but that have a default here."""

WITH_DILATIONS: Final = ("opset16", "opset17")
"""Versions whose AvgPool has dilations; without them the reader of OpenVINO 2026.4 crashes."""

NOT_EMPTY: Final = {
    "PriorBoxClustered": ("width", "height"),
    "Col2Im": REQUIRED["Col2Im"],
    "StridedSlice": ("begin_mask",),
    **dict.fromkeys(("RNNCell", "GRUCell", "LSTMCell"), ("activations",)),
}
"""Lists that must not be empty for the reader."""
RANGES: Final[dict[str, dict[str, tuple[float, float]]]] = {
    "MulticlassNms": {"nms_eta": (0.0, 1.0)},
    "GenerateProposals": {"nms_eta": (1.0, 1.0)},
    "PSROIPooling": {"spatial_scale": (math.ulp(0.0), math.inf)},
}
"""Type -> attribute -> the smallest and the largest number that the reader accepts.

The reader accepts less than the documents and the attributes' own ranges do.
"""
NOT_CHECKED: Final = {
    ("Interpolate", "opset1", "mode"),
    ("DeformablePSROIPooling", "opset1", "mode"),
    ("Proposal", "opset1", "framework"),
    ("Proposal", "opset4", "framework"),
    *((f"{cell}Sequence", "opset5", "activations") for cell in ("RNN", "GRU", "LSTM")),
}
"""Attributes that are text for the reader: the device that runs the model reads them."""
BOOLEAN: Final = "true, false"
EVERY: Final = (-math.inf, math.inf)
EQUALLY_LONG: Final = {
    "StridedSlice": tuple(
        f"{name}_mask" for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    ),
    "BinaryConvolution": ("strides", "dilations", "pads_begin", "pads_end"),
    "PriorBoxClustered": ("width", "height"),
}
"""Lists that must have equal lengths."""

_REAL: Final = r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*"


def refused_form(index: int, layer: Layer) -> Iterator[Finding]:
    """Check the version: an extension may have any, an operation of an opset may not."""
    from deconv_ir.ops.opsets import OF_OPSET_6, OF_OPSET_17, OPERATIONS

    if layer.version == "opset17" and layer.type in OPERATIONS - OF_OPSET_17:
        yield Finding(
            f"OpenVINO's reader refuses {layer.type} of opset17: 2026.4 has few of its operations",
            GraphLocation(layer=index, attribute="version", own=True),
            expected="opset16 or before",
            actual=layer.version,
        )
    if layer.version == "extension" and layer.type in OF_EXTENSIONS:
        return
    if layer.version in ("extension", "experimental") and layer.type in OF_OPSET_6:
        return
    if layer.version in NO_OPSET and layer.type in OPERATIONS:
        yield Finding(
            f"OpenVINO's reader refuses {layer.type} "
            + (f"of version {layer.version!r}" if layer.version is not None else "without version"),
            GraphLocation(layer=index, attribute="version", own=True),
            expected="an opset",
            actual=layer.version,
        )


def refused_attributes(index: int, layer: Layer) -> Iterator[Finding]:
    """Check the spelling of words and element types, and search for missing attributes."""
    written = dict(layer.attributes)
    operation = type(layer.operation)
    known = {spec.name: spec for spec in attributes_of(operation)} if operation.versions else {}
    for name, value in written.items():
        allowed = _refused_value(layer, name, value, known.get(name))
        if allowed:
            # A word that is neither true nor false leaves the default as it is.
            verb = "ignores" if _is_boolean(known.get(name)) else "refuses"
            yield Finding(
                f"OpenVINO's reader {verb} {name}={value!r} of {layer.type}; it reads {allowed}",
                GraphLocation(layer=index, attribute=name),
                expected=allowed,
                actual=value,
            )
    lists = [name for name in EQUALLY_LONG.get(layer.type, ()) if written.get(name)]
    if len({written[name].count(",") for name in lists}) > 1:
        yield Finding(
            f"OpenVINO's reader refuses {', '.join(lists)} of different lengths",
            GraphLocation(layer=index, attribute=min(lists, key=lambda n: written[n].count(","))),
        )
    required = REQUIRED.get(layer.type, ())
    if layer.type == "ShapeOf" and layer.version != "opset1":
        required = ("output_type",)
    if layer.type == "AvgPool" and layer.version in WITH_DILATIONS and "dilations" not in written:
        yield Finding(
            "OpenVINO crashes where it compiles AvgPool-16 without dilations",
            GraphLocation(layer=index, attribute="dilations"),
        )
    for name in required:
        if name not in written:
            yield Finding(
                f"OpenVINO's reader refuses {layer.type} without {name}",
                GraphLocation(layer=index, attribute=name),
            )


def _refused_value(layer: Layer, name: str, value: str, spec: AttributeSpec | None) -> str:
    """Return the accepted spelling of a value; empty if the value is accepted."""
    if spec is None:
        return ""  # no attribute of it, or one that cannot be read: other rules report both
    if _is_boolean(spec):
        return BOOLEAN if value != value.strip() else ""
    if (layer.type, layer.version, name) in NOT_CHECKED:
        return ""
    if value and not value.strip():
        return "nothing, or a value"
    if not value and name in NOT_EMPTY.get(layer.type, ()):
        return "a list that is not empty"
    least, most = RANGES.get(layer.type, {}).get(name, EVERY)
    if (least, most) != EVERY and not all(least <= n <= most for n in _numbers(value)):
        if least == most:
            return f"{least:g}"
        return (
            f"numbers >= {least:g}" if most == math.inf else f"numbers from {least:g} to {most:g}"
        )
    if name == "auto_pad" and layer.type in DECONVOLUTION:
        return ""  # auto-pad-refused
    if layer.type == "Const" and name in ("offset", "size"):
        is_read = value.lstrip().isdigit() or dict(layer.attributes).get("element_type") == "string"
        return "" if is_read else "an unsigned integer without spaces after it"
    allowed = spec.kind.values
    if allowed.form in (Form.ELEMENT_TYPE, Form.WORD) and not allowed.is_list:
        meant = spec.kind.format(spec.kind.parse(value))
        is_type = allowed.form is Form.ELEMENT_TYPE
        as_written = layer.type == "Const" and value in ("F16", "F32", "F64", "BOOLEAN")
        same = value.lower() in ((meant, "undefined") if is_type else (meant.lower(),))
        return "" if same and not as_written else meant
    return ""


def _is_boolean(spec: AttributeSpec | None) -> bool:
    return spec is not None and spec.kind.values.form is Form.BOOLEAN


def _numbers(text: str) -> list[float]:
    """Return the numbers of a list; other elements are left to other checks."""
    return [float(part) for part in text.split(",") if re.fullmatch(_REAL, part, re.IGNORECASE)]


def unmatched_variables(layers: Sequence[Layer]) -> Iterator[Finding]:
    """Report Assigns to a variable that no ReadValue has."""
    read = {dict(layer.attributes).get("variable_id") for layer in layers if layer.type != "Assign"}
    for index, layer in enumerate(layers):
        name = dict(layer.attributes).get("variable_id")
        if layer.type == "Assign" and name not in read:
            yield Finding(
                f"OpenVINO's reader refuses an Assign to {name!r}, which no ReadValue reads",
                GraphLocation(layer=index, attribute="variable_id"),
                actual=name,
            )
