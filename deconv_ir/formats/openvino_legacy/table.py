"""The table of old layers: type -> the rule that converts it.

Source: OpenVINO 2020.3, "Intermediate Representation Notation Reference Catalog" (the documents of
2018 R1 to 2020.4), named "catalogue" in the rules; each rule names its section where that has
another name than the layer.
"""

from __future__ import annotations

from typing import Final

from deconv_ir.formats.openvino_legacy.conversion import Rule
from deconv_ir.formats.openvino_legacy.rules import (
    convolutions,
    detection,
    elementwise,
    iterators,
    normalization,
    recurrent,
    resampling,
    selection,
    shapes,
)

TABLE: Final[dict[str, Rule]] = {
    **convolutions.RULES,
    **detection.RULES,
    **elementwise.RULES,
    **iterators.RULES,
    **normalization.RULES,
    **recurrent.RULES,
    **resampling.RULES,
    **selection.RULES,
    **shapes.RULES,
}
_BY_LOWER_CASE: Final = {kind.lower(): rule for kind, rule in TABLE.items()}


def find_rule(kind: str) -> Rule | None:
    """Return the rule of a type; the Inference Engine compared types in any case."""
    return TABLE.get(kind) or _BY_LOWER_CASE.get(kind.lower())
