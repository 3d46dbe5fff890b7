"""Operations of oneDNN Graph that are not operations of an OpenVINO opset."""

from __future__ import annotations

import importlib

from deconv_ir.ir.operation import Operation


def class_of(kind: str, module: str) -> type[Operation]:
    """Return the class for a kind, which one of the modules here declares."""
    importlib.import_module(f".{module}", __name__)
    from deconv_ir.ops.onednn.decomposition import KINDS

    return KINDS[kind]
