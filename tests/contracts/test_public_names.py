"""Every class named by a public signature or field is public too."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import deconv_ir
import deconv_ir.operations
from deconv_ir.operations import Operation

CLASSES = {
    node.name
    for path in Path(deconv_ir.__file__).parent.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
}
MODULES = (deconv_ir, deconv_ir.operations)
PUBLIC = {name for module in MODULES for name in module.__all__}


def of_function(function: object) -> list[str]:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    annotations = [p.annotation for p in signature.parameters.values()]
    return [str(a) for a in [*annotations, signature.return_annotation] if isinstance(a, str)]


def of_class(cls: type) -> Iterator[tuple[str, list[str]]]:
    bases = [base for base in cls.__mro__ if base.__module__.startswith("deconv_ir")]
    fields = [a for base in bases for a in vars(base).get("__annotations__", {}).values()]
    written = [getattr(a, "__forward_arg__", a) for a in fields]
    yield cls.__name__, [a for a in written if isinstance(a, str) and "ClassVar" not in a]
    if issubclass(cls, Operation) and cls is not Operation:
        return  # its methods are those of Operation
    for member, value in vars(cls).items():
        if member.startswith("_") and member != "__init__":
            continue
        if isinstance(value, property):
            value = value.fget
        elif isinstance(value, functools.cached_property):
            value = value.func
        if inspect.isfunction(value):
            yield f"{cls.__name__}.{member}", of_function(value)


def annotations() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the dotted name, the defining module, and the annotations as written."""
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield name, value.__module__, of_function(value)
            elif inspect.isclass(value):
                for member, written in of_class(value):
                    yield member, value.__module__, written


def test_classes_in_annotations_are_public() -> None:
    for _, module, written in annotations():
        names = {
            node.id
            for annotation in written
            for node in ast.walk(ast.parse(annotation))
            if isinstance(node, ast.Name)
        }
        # A type variable or an alias may have the same name as a class in another module.
        here = vars(sys.modules[module])
        classes = {n for n in names & CLASSES if inspect.isclass(here.get(n, object))}
        assert classes <= PUBLIC


def test_the_sections_of_all_name_each_once() -> None:
    for module in MODULES:
        assert len(module.__all__) == len(set(module.__all__))
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            assert getattr(module, name) is not None
