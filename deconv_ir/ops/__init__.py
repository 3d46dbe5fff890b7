"""Operations: one file for each, or for a family of one-liners.

Files are imported when a model needs them; `_index.py`, written by `make regen`, maps types to
files.
"""

from __future__ import annotations

import functools
import importlib

from deconv_ir.ir.operation import Operation
from deconv_ir.ops._index import MODULES
from deconv_ir.ops.base import REGISTRY

__all__ = ["all_operations", "find_operation", "standard_type"]

_EXACT = ("Const", "Result")
"""Types that OpenVINO's reader compares as they are written."""


def find_operation(type_name: str, version: str | None = None) -> type[Operation] | None:
    """Return the class of a layer type; None if the type is unknown.

    Parameters
    ----------
    type_name : str
        `type` of the layer.
    version : str, optional
        `version` of the layer; None or empty: the newest.  For an opset without a version of the
        type, the newest earlier version is used, as in OpenVINO's reader.

    Examples
    --------
    >>> from deconv_ir.operations import ConvTranspose, find_operation
    >>> find_operation("ConvTranspose") is ConvTranspose
    True
    >>> find_operation("Interpolate", "opset1") is find_operation("Interpolate", "opset11")
    False
    >>> find_operation("Unknown") is None
    True
    """
    if type_name not in REGISTRY:
        module = MODULES.get(type_name)
        if module is not None:
            importlib.import_module(f".{module}", __name__)
        else:
            from deconv_ir.ops.plugins import load_plugin

            load_plugin(type_name)
    versions = REGISTRY.get(type_name)
    if versions is None:
        return None
    if not version:
        return next(reversed(versions.values()))
    if version in versions or "" in versions:
        return versions.get(version) or versions[""]
    if version in ("extension", "experimental"):
        from deconv_ir.ops.opsets import OF_OPSET_6

        version = "opset6" if type_name in OF_OPSET_6 else version
    if version == "opset1":
        from deconv_ir.ops.opsets import OF_OPSET_2

        version = "opset2" if type_name in OF_OPSET_2 else version
    wanted = opset_number(version)
    older = [v for v in versions if 0 <= opset_number(v) <= wanted]
    return versions[max(older, key=opset_number)] if older else None


def standard_type(type_name: str, version: str | None = None) -> str:
    """Return a layer's type in the case in which it is registered.

    Like OpenVINO's reader, types of opsets are found in any case: Model Optimizer wrote ``Relu``
    and ``ELU``.

    Examples
    --------
    >>> from deconv_ir.ops import standard_type
    >>> standard_type("relu", "opset1"), standard_type("relu", "extension")
    ('ReLU', 'relu')
    """
    if (
        type_name in MODULES
        or type_name in REGISTRY
        or not (version or "opset").startswith("opset")
    ):
        return type_name
    return _types_by_lower_case().get(type_name.lower(), type_name)


@functools.cache
def _types_by_lower_case() -> dict[str, str]:
    return {type_name.lower(): type_name for type_name in MODULES if type_name not in _EXACT}


def opset_number(version: str) -> int:
    """Return the number of an opset as OpenVINO writes it; -1: not the name of one, as opset01."""
    digits = version.removeprefix("opset")
    written = digits != version and digits.isascii() and digits.isdecimal()
    return int(digits) if written and not digits.startswith("0") else -1


def all_operations() -> tuple[type[Operation], ...]:
    """Return the classes of all operations, by type, then version.

    Examples
    --------
    >>> from deconv_ir.operations import ConvTranspose, all_operations
    >>> ConvTranspose in all_operations()
    True
    """
    for module in set(MODULES.values()):
        importlib.import_module(f".{module}", __name__)
    return tuple(
        dict.fromkeys(cls for type_name in sorted(REGISTRY) for cls in REGISTRY[type_name].values())
    )
