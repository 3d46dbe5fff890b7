"""Formulas on the tensors of a decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deconv_ir.ir.dtypes import F32, ElementType
from deconv_ir.ops.onednn.decomposition import Decomposition, Ref


class Term:
    """A tensor of a decomposition; arithmetic on it adds steps, numbers become constants."""

    def __init__(self, steps: Decomposition, ref: Ref) -> None:
        self.steps = steps
        self.ref = ref

    def apply(self, type_name: str, *others: Term | float, **attributes: Any) -> Term:
        """Add an operation of an opset whose first input is this tensor."""
        refs = [self._ref(other) for other in others]
        return Term(self.steps, self.steps.add(type_name, self.ref, *refs, **attributes))

    def constant(self, values: Sequence[float], shape: Sequence[int] | None = None) -> Term:
        """Return a constant of the same element type, by default a list."""
        element_type = self.steps.infos[self.ref].element_type or F32
        return Term(self.steps, self.steps.constant(tuple(values), element_type, shape))

    def _ref(self, other: Term | float) -> Ref:
        return other.ref if isinstance(other, Term) else self.constant((other,), ()).ref

    def __add__(self, other: Term | float) -> Term:
        return self.apply("Add", other)

    def __sub__(self, other: Term | float) -> Term:
        return self.apply("Subtract", other)

    def __rsub__(self, other: float) -> Term:
        return self.constant((other,), ()) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.apply("Multiply", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.apply("Divide", other)

    def __rtruediv__(self, other: float) -> Term:
        return self.constant((other,), ()) / self

    def __gt__(self, other: Term | float) -> Term:
        return self.apply("Greater", other)

    def __lt__(self, other: Term | float) -> Term:
        return self.apply("Less", other)

    def __and__(self, other: Term) -> Term:
        return self.apply("LogicalAnd", other)

    def where(self, yes: Term | float, no: Term | float, like: Term) -> Term:
        """Choose by this condition; numbers get the element type of `like`."""
        return self.apply("Select", *(Term(self.steps, like._ref(value)) for value in (yes, no)))

    def reduce(self, how: str, axes: Sequence[int], *, keep: bool = False) -> Term:
        """Reduce along axes: ``Sum``, ``Mean`` or ``Max``."""
        along = Term(self.steps, self.steps.constant(tuple(axes)))
        return self.apply(f"Reduce{how}", along, keep_dims=keep)

    def cast(self, element_type: ElementType | None) -> Ref:
        """Round to an element type."""
        return self.steps.cast(self.ref, element_type)
