"""The form of a layer: the parts of it that decide whether a release of OpenVINO compiles it.

`tools/check_targets.py` measures the parts of small networks, and `reasons` looks up those of a
file, so that both mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import Shape
from deconv_ir.ops import find_operation, opset_number
from deconv_ir.ops.base import Form, attributes_of
from deconv_ir.ops.opsets import OF_OPSET_2, OF_OPSET_6

if TYPE_CHECKING:
    from deconv_ir.ir.operation import Operation

_NAMED: Final = (Form.WORD, Form.BOOLEAN, Form.ELEMENT_TYPE)
"""Attributes whose values are parts; numbers are not."""


def versioned(type_name: str, version: str | None) -> str | None:
    """Return the operation that OpenVINO makes of a layer, as ``Pad-12``; None: unknown.

    Examples
    --------
    >>> from deconv_ir.linter.targets.forms import versioned
    >>> versioned("Pad", "opset13"), versioned("MVN", "opset1"), versioned("Own", "opset1")
    ('Pad-12', 'MVN-2', None)
    """
    if version in ("extension", "experimental") and type_name in OF_OPSET_6:
        version = "opset6"
    if version == "opset1" and type_name in OF_OPSET_2:
        version = "opset2"
    wanted = opset_number(version or "")
    found = find_operation(type_name, version) if wanted > 0 else None
    numbers = [n for v in (found.versions if found else ()) if 0 < (n := opset_number(v)) <= wanted]
    return f"{type_name}-{max(numbers)}" if numbers else None


def parts(
    operation: type[Operation],
    attributes: Mapping[str, str],
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    constant: Sequence[bool],
) -> tuple[str, ...]:
    """Return the parts of a layer: element types, constant inputs, rank, dynamic dims, attributes.

    Parameters
    ----------
    operation : type
        The operation's class.
    attributes : mapping
        As they are written.
    inputs, outputs : sequence of TensorInfo
    constant : sequence of bool
        For each input, whether it is a constant of the network.
    """
    if operation.body_names:
        return ()  # its bodies have parts, and the layer passes anything on
    elements = [str(info.element_type or "?") for info in inputs]
    marks = ["c" if fixed else "" for fixed in constant]
    types = [f"{name}{mark}" for name, mark in zip(elements, marks, strict=True)]
    shapes = [info.shape for info in (inputs or outputs)]
    changing = [str(i) for i, shape in enumerate(shapes) if not _is_static(shape)]
    if operation.required_inputs is None:  # any number of inputs
        elements, types, changing = sorted(set(elements)), sorted(set(types)), changing[:1]
    found = [f"elements={','.join(elements)}", f"types={','.join(types)}"] if inputs else []
    known = [len(shape) for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        found.append("shape=?")
    else:
        found.append(f"rank={max(known, default=0)}")
        if changing:
            found.append(f"dynamic={','.join(changing)}")
        if any(0 in shape for shape in shapes if shape is not None):
            found.append("shape=empty")
    return (*found, *_named(operation, attributes))


def _is_static(shape: Shape) -> bool:
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def _named(operation: type[Operation], attributes: Mapping[str, str]) -> list[str]:
    """Return the attributes whose values are words or element types."""
    found = []
    for spec in attributes_of(operation):
        allowed = spec.kind.values
        if spec.name not in attributes or allowed.form not in _NAMED or "0" in allowed.words:
            continue
        # As written: readers differ in the spellings that they accept.
        value = attributes[spec.name]
        words = value.replace(" ", "").split(",") if allowed.is_list else [value]
        found += [f"{spec.name}={word}" for word in dict.fromkeys(words)]
    return found
