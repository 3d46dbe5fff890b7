"""Attributes without a meaning that OpenVINO's own tools wrote.

Model Optimizer wrote every attribute of an operation's class, and of the framework's layer that it
came from; Post-training Optimization Tool and NNCF saved such files again.  OpenVINO ignores them.
Source: OpenVINO repository, `tools/mo/openvino/tools/mo/ops` (`backend_attrs` of each operation)
and `xml_deserialize_util.cpp` (attributes of any layer); IRs of Open Model Zoo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

ANY: Final = ""
_ZEROS: Final = r"0(, ?0)*|"
_ONES: Final = r"1(, ?1)*|"


def _any(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), ANY)


OF_EVERY_LAYER: Final = frozenset({"PrimitivesPriority", "alt_width", "originalLayersNames"})

_CONVOLUTION: Final = {"output_padding": _ZEROS, "pad_value": _ZEROS, "mode": ANY, "group": _ONES}
_POOLING: Final = _any("exclude-pad pool-method axis index_element_type") | {"dilations": _ONES}
_PRIORS: Final = _any("img_size img_h img_w step_h step_w flip scale_all_sizes")
_SEQUENCE: Final = _any("axis format linear_before_reset")

LEFTOVERS: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(
        ("Convolution", "GroupConvolution", "BinaryConvolution", "DeformableConvolution"),
        _CONVOLUTION,
    ),
    **dict.fromkeys(("MaxPool", "AvgPool"), _POOLING),
    **dict.fromkeys(("PriorBox", "PriorBoxClustered"), _PRIORS),
    **dict.fromkeys(("RNNSequence", "GRUSequence", "LSTMSequence"), _SEQUENCE),
    "DetectionOutput": _any(
        "eta height height_scale interp_mode label_map_file name_size_file num_classes"
        " num_orient_classes num_test_image output_directory output_format output_name_prefix"
        " pad_mode pad_value prob resize_mode save_file visualize visualize_threshold width"
        " width_scale"
    ),
    "LRN": _any("region local-size"),
    "PReLU": _any("channel_shared filler_type filler_value"),
    "Proposal": _any("for_deformable coordinates_offset initial_clip"),
    **dict.fromkeys(
        ("PSROIPooling", "DeformablePSROIPooling"),
        _any("no_trans part_size pooled_height pooled_width sample_per_part trans_std"),
    ),
    "RegionYolo": _any("bias_match jitter rescore thresh"),
    "Split": _any("axis"),
}
"""Type -> attribute -> expression of the values that mean nothing (`ANY`: each value)."""


def is_leftover(type_name: str, name: str, value: str) -> bool:
    """Whether a tool of OpenVINO wrote such an attribute, and its value changes nothing."""
    if name in OF_EVERY_LAYER:
        return True
    pattern = LEFTOVERS.get(type_name, {}).get(name)
    if pattern is None:
        return False
    return pattern == ANY or re.fullmatch(pattern, value.strip()) is not None
