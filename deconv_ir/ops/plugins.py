"""Operations of other packages: registered directly, or found as entry points."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from deconv_ir import entry_points
from deconv_ir.errors import InputError, UnsupportedError, one_line
from deconv_ir.ir.operation import Operation
from deconv_ir.ops._index import MODULES
from deconv_ir.ops.base import REGISTRY, declare

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "deconv_ir.operations"
"""Group of entry points; each has the name of the layer type that it registers."""

_Class = TypeVar("_Class", bound=type[Operation])


def register(
    type_name: str,
    *versions: str,
    inputs: tuple[str, ...] = (),
    required: int | None = None,
    variadic: bool = False,
) -> Callable[[_Class], _Class]:
    """Register a class of another package for a type of layer.

    Parameters
    ----------
    type_name : str
        `type` of the layer.
    *versions : str
        `version` of the layer, oldest first, such as ``extension``; empty: any.
    inputs : tuple of str
        Names of its inputs.
    required : int, optional
        Number of required inputs; all, by default.
    variadic : bool
        Allow one or more inputs, all with the first name.

    Returns
    -------
    callable
        Decorates a subclass of `Operation`.

    Raises
    ------
    InputError
        An operation of that type and version exists, or the class is not an `Operation`.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Context, Operation, find_operation, register
    >>> @register("Twice", "extension", inputs=("data",))
    ... class Twice(Operation):
    ...     def infer(self, inputs, context):
    ...         return (inputs[0],)
    ...     def execute(self, inputs, context):
    ...         return (2 * inputs[0],)
    >>> find_operation("Twice")().execute([np.ones(3)], Context())
    (array([2., 2., 2.]),)
    """
    for text in (type_name, *versions):
        if not isinstance(text, str) or (text == type_name and not text):
            raise InputError(f"type and versions of an operation must be text, found {text!r}")

    def add(cls: _Class) -> _Class:
        if not (isinstance(cls, type) and issubclass(cls, Operation)):
            raise InputError(f"operation {type_name}: {cls!r} is not a subclass of Operation")
        if type_name in MODULES:
            importlib.import_module(f".{MODULES[type_name]}", __package__)
        for version in versions or ("",):
            there = REGISTRY.get(type_name, {}).get(version)
            # Code may be run again, as in a notebook.
            if there is not None and _name(there) != _name(cls):
                named = f"{type_name} ({version})" if version else type_name
                raise InputError(f"operation {named} is already registered, by {_name(there)}")
        return declare(type_name, *versions, inputs=inputs, required=required, variadic=variadic)(
            cls
        )

    return add


def _name(cls: type[Operation]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


@functools.cache
def installed() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages, by type of layer."""
    return {found.name: found for found in entry_points.installed(GROUP)}


def load_plugin(type_name: str) -> None:
    """Import the installed package that registers a type, if any."""
    found = installed().get(type_name)
    if found is None:
        return
    try:
        _load(found)
    except Exception as error:  # code of another package can raise any error
        raise UnsupportedError(
            f"operation {type_name}: the entry point {found.value!r} cannot be loaded: "
            f"{one_line(f'{type(error).__name__}: {error}')}",
            rule="unsupported-operation",
        ) from error
    if type_name not in REGISTRY:
        raise UnsupportedError(
            f"operation {type_name}: the entry point {found.value!r} does not register it",
            rule="unsupported-operation",
        )


def _load(entry_point: EntryPoint) -> Any:
    return entry_point.load()
