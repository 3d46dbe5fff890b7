"""IRs of one layer that OpenVINO's builder would refuse or change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from support import IR

from deconv_ir.ir.dtypes import parse_element_type

__all__ = ["single_layer"]


def single_layer(
    folder: Path,
    kind: str,
    inputs: Mapping[str, tuple[str, str]],
    attributes: Mapping[str, str] | None = None,
    output: str = "f32",
) -> Path:
    """Save a network of one layer.

    Parameters
    ----------
    folder : Path
    kind : str
        Type of the layer.
    inputs : mapping
        Name -> element type and shape, as a Parameter writes it: ``?,1..8``.
    attributes : mapping, optional
    output : str
        Element type that the output declares.
    """
    ir = IR()
    sources = [ir.parameter(name, shape, element) for name, (element, shape) in inputs.items()]
    precision = parse_element_type(output).ir_name
    ir.result(ir.layer(kind, sources, attributes, precision=precision))
    return ir.save(folder)
