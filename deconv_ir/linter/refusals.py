"""Layers that OpenVINO's reader rejects, and this one accepts.

Measured with OpenVINO 2026.4; `make mutate-lint` repeats the measurement if it is installed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from deconv_ir.ir.dtypes import ELEMENT_TYPES
from deconv_ir.ir.graph import GraphLocation, Layer
from deconv_ir.linter.report import Report
from deconv_ir.linter.rule import DECONVOLUTION
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import AttributeSpec, attributes_of

NO_OPSET: Final = (None, "", "extension", "experimental")
"""Versions that do not name an opset."""

OF_EXTENSIONS: Final = frozenset({"Identity", "StringTensorPack", "StringTensorUnpack"})
"""Types of opsets that extension libraries of OpenVINO had before, and still have.

openvino_tokenizers writes its own StringTensorUnpack, and the guide to extensions an Identity.
"""

REQUIRED: Final = {
    "DepthToSpace": ("block_size",),
    "SpaceToDepth": ("block_size",),
    "PSROIPooling": ("output_dim", "mode", "group_size", "spatial_scale"),
    "DeformableConvolution": ("deformable_group", "group"),
    "ReorgYolo": ("stride",),
    "Bucketize": ("output_type",),
    "RandomUniform": ("output_type",),
    "PriorBoxClustered": ("width", "height"),
    "Col2Im": ("strides", "dilations", "pads_begin", "pads_end"),
}
"""Attributes that the reader requires, but that have a default or no class here."""

NOT_EMPTY: Final = {
    "PriorBoxClustered": ("width", "height"),
    "Col2Im": REQUIRED["Col2Im"],
    "StridedSlice": ("begin_mask",),
    **dict.fromkeys(("RNNCell", "GRUCell", "LSTMCell"), ("activations",)),
}
"""Lists that must not be empty for the reader."""
_TOP: Final = dict.fromkeys(("nms_top_k", "keep_top_k", "background_class"), (-1.0, math.inf))
RANGES: Final[dict[str, dict[str, tuple[float, float]]]] = {
    "MatrixNms": _TOP,
    "MulticlassNms": {**_TOP, "nms_eta": (0.0, 1.0)},
    "GenerateProposals": {"nms_eta": (1.0, 1.0)},
    "PSROIPooling": {
        "output_dim": (1.0, math.inf),
        "group_size": (1.0, math.inf),
        "spatial_scale": (math.ulp(0.0), math.inf),
    },
}
"""Type -> attribute -> the smallest and the largest number that the reader accepts."""
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

_DIGITS: Final = r"\s*[-+]?\d+\s*"
_REAL: Final = r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*"
_PADS: Final = "explicit|same_upper|same_lower|valid"
_TYPES: Final = "|".join([*(t.name for t in ELEMENT_TYPES), "dynamic", "undefined"])
_REDUCTION: Final = {"reduction": "sum|mean"}

WORDS: Final[dict[str, dict[str, str]]] = {
    "EmbeddingBagOffsets": _REDUCTION,
    "EmbeddingBagPacked": _REDUCTION,
    "MatrixNms": {"sort_result_type": "classid|score|none", "decay_function": "gaussian|linear"},
    "MulticlassNms": {"sort_result_type": "classid|score|none"},
    "NonMaxSuppression": {"box_encoding": "corner|center"},
    "ROIAlign": {
        "mode": "avg|max",
        "aligned_mode": "asymmetric|half_pixel_for_nn|half_pixel",
    },
    "PSROIPooling": {"mode": "average|bilinear"},
    "ROIPooling": {"method": "max|bilinear"},
    "RandomUniform": {"alignment": "tensorflow|pytorch"},
}
"""Words of operations that are not implemented here: type -> attribute -> alternatives.

Source, as of the names below: OpenVINO operation specifications.
"""

_INTEGERS: Final = """
axis background_class background_label_id base_size batch_dims channels classes coords
deformable_group end_axis feat_stride global_seed group group_size input_height input_width
keep_top_k max_output_boxes_per_class max_rois num_classes nms_top_k num op_seed
output_dim pooled_h pooled_w post_nms_count post_nms_topn pre_nms_topn sampling_ratio
spatial_bins_x spatial_bins_y top_k
"""
_REALS: Final = """
bias box_coordinate_scale box_size_scale confidence_threshold gaussian_sigma iou_threshold
max_delta_log_wh nms_eta nms_thresh nms_threshold offset part_size post_threshold
score_threshold spatial_scale step step_h step_heights step_w step_widths trans_std
"""
_INTEGER_LISTS: Final = """
dilations kernel mask output_size pads_begin pads_end pyramid_scales rates sizes stride strides
"""
_REAL_LISTS: Final = """
anchors aspect_ratio density deltas_weights fixed_ratio fixed_size height max_size min_size
ratio scale variance width
"""
_TYPE_NAMES: Final = """
convert_type count_element_type destination_type index_element_type output_type variable_type
"""


def _several(form: str) -> str:
    return rf"({form}(,{form})*)?"


FORMS: Final = {
    **dict.fromkeys(_INTEGERS.split(), (_DIGITS, "an integer")),
    **dict.fromkeys(_REALS.split(), (_REAL, "a number")),
    **dict.fromkeys(_INTEGER_LISTS.split(), (_several(_REAL), "integers")),
    **dict.fromkeys(_REAL_LISTS.split(), (_several(_REAL), "numbers")),
    **dict.fromkeys(_TYPE_NAMES.split(), (_TYPES, "an element type of the opsets, such as f32")),
    "auto_pad": (_PADS, _PADS.replace("|", ", ")),
}
"""Values of attributes of operations without a class here: name -> expression, in words."""


def refused_form(index: int, layer: Layer) -> Iterator[Report]:
    """Check the version: an extension may have any, an operation of an opset may not."""
    from deconv_ir.ops.opsets import OF_OPSET_6, OPERATIONS

    if layer.version == "extension" and layer.type in OF_EXTENSIONS:
        return
    if layer.version in ("extension", "experimental") and layer.type in OF_OPSET_6:
        return
    if layer.version in NO_OPSET and layer.type in OPERATIONS:
        yield Report(
            f"OpenVINO's reader refuses {layer.type} "
            + (f"of version {layer.version!r}" if layer.version is not None else "without version"),
            GraphLocation(layer=index, attribute="version", own=True),
            expected="an opset",
            actual=layer.version,
        )


def refused_attributes(index: int, layer: Layer) -> Iterator[Report]:
    """Check the spelling of words and element types, and search for missing attributes."""
    written = dict(layer.attributes)
    operation = type(layer.operation)
    known = {spec.name: spec for spec in attributes_of(operation)} if operation.versions else {}
    for name, value in written.items():
        allowed = _refused_value(layer, name, value, known.get(name))
        if allowed:
            # A word that is neither true nor false leaves the default as it is.
            verb = "ignores" if allowed == BOOLEAN else "refuses"
            yield Report(
                f"OpenVINO's reader {verb} {name}={value!r} of {layer.type}; it reads {allowed}",
                GraphLocation(layer=index, attribute=name),
                expected=allowed,
                actual=value,
            )
    lists = [name for name in EQUALLY_LONG.get(layer.type, ()) if written.get(name)]
    if len({written[name].count(",") for name in lists}) > 1:
        yield Report(
            f"OpenVINO's reader refuses {', '.join(lists)} of different lengths",
            GraphLocation(layer=index, attribute=min(lists, key=lambda n: written[n].count(","))),
        )
    required = REQUIRED.get(layer.type, ())
    if layer.type == "ShapeOf" and layer.version != "opset1":
        required = ("output_type",)
    for name in required:
        if name not in written:
            yield Report(
                f"OpenVINO's reader refuses {layer.type} without {name}",
                GraphLocation(layer=index, attribute=name),
            )


def _refused_value(layer: Layer, name: str, value: str, spec: AttributeSpec | None) -> str:
    """Return the accepted spelling of a value; empty if the value is accepted."""
    if spec is not None and spec.kind.allowed == "true or false":
        return BOOLEAN if value != value.strip() else ""
    if spec is None and find_operation(layer.type, layer.version) is not None:
        return ""  # no attribute of it, or one that cannot be read: other rules report both
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
    if spec is None:
        return _refused_by_form(layer, name, value)
    if name == "auto_pad" and layer.type in DECONVOLUTION:
        return ""  # auto-pad-refused
    allowed = spec.kind.allowed
    if layer.type == "Const" and name in ("offset", "size"):
        is_read = value.lstrip().isdigit() or dict(layer.attributes).get("element_type") == "string"
        return "" if is_read else "an unsigned integer without spaces after it"
    if allowed.startswith(("an element type", "one of ")):
        meant = spec.kind.format(spec.kind.parse(value))
        is_type = allowed.startswith("an element type")
        as_written = layer.type == "Const" and value in ("F16", "F32", "F64", "BOOLEAN")
        same = value.lower() in ((meant, "undefined") if is_type else (meant.lower(),))
        return "" if same and not as_written else meant
    return ""


def _numbers(text: str) -> list[float]:
    """Return the numbers of a list; other elements are left to other checks."""
    return [float(part) for part in text.split(",") if re.fullmatch(_REAL, part, re.IGNORECASE)]


def unmatched_variables(layers: Sequence[Layer]) -> Iterator[Report]:
    """Report Assigns to a variable that no ReadValue has."""
    read = {dict(layer.attributes).get("variable_id") for layer in layers if layer.type != "Assign"}
    for index, layer in enumerate(layers):
        name = dict(layer.attributes).get("variable_id")
        if layer.type == "Assign" and name not in read:
            yield Report(
                f"OpenVINO's reader refuses an Assign to {name!r}, which no ReadValue reads",
                GraphLocation(layer=index, attribute="variable_id"),
                actual=name,
            )


def _refused_by_form(layer: Layer, name: str, value: str) -> str:
    """Check an attribute of an operation without a class here, such as NonMaxSuppression."""
    from deconv_ir.ops.opsets import OPERATIONS

    if layer.type not in OPERATIONS or layer.operation.implemented:
        return ""
    words = WORDS.get(layer.type, {}).get(name)
    form, shown = (words, words.replace("|", ", ")) if words else FORMS.get(name, ("", ""))
    exact = layer.type == "ROIPooling"
    if form and not re.fullmatch(form, value, 0 if exact else re.IGNORECASE):
        return shown
    return ""
