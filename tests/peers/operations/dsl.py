"""Short names for the tables of cases."""

from __future__ import annotations

from typing import Any

from .harness import BF16, Case, Constant, Parameter, ov

__all__ = ["BF16", "Case", "c", "f32", "i64", "node", "o", "ov", "p", "s64"]


class _Opsets:
    """`o[8].gather`: the function of an opset."""

    def __getitem__(self, version: int) -> Any:
        import importlib

        return importlib.import_module(f"openvino.opset{version}")


o = _Opsets()


def node(kind: str, version: int, inputs: Any, **attributes: Any) -> Any:
    """Make an operation by type and opset, if the opset's function lacks a feature."""
    from openvino.utils.node_factory import NodeFactory

    return NodeFactory(f"opset{version}").create(kind, list(inputs), attributes)


def p(element_type: str, *shape: int, **how: Any) -> Parameter:
    return Parameter(element_type, shape, **how)


def f32(*shape: int, **how: Any) -> Parameter:
    return Parameter("f32", shape, **how)


def c(values: Any, element_type: str = "f32") -> Constant:
    return Constant(element_type, values)


def i64(*values: int) -> Constant:
    """A constant list of i64."""
    return Constant("i64", list(values))


def s64(value: int) -> Constant:
    """A constant scalar of i64."""
    return Constant("i64", value)
