"""The attributes of an old layer, with the tolerance of the readers of that time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from deconv_ir.errors import AttributeValueError, UnsupportedError
from deconv_ir.formats.openvino_legacy.layer import OldLayer
from deconv_ir.ir.shapes import MAX_EXTENT
from deconv_ir.ops.base import Kind

REQUIRED: Final = object()
"""The default of an attribute that a layer must have."""


def _parse_numbers(text: str) -> tuple[float, ...]:
    found = []
    for word in text.split(","):
        value = float(word) if word.isascii() and "_" not in word else math.nan
        if not math.isfinite(value):
            raise ValueError(text)
        # Whole numbers keep their precision.
        digits = word.strip().removeprefix("-")
        found.append(int(word) if digits.isdigit() and len(digits) <= 19 else value)
    return tuple(found)


_NUMBERS: Final = Kind(_parse_numbers, "numbers separated by commas")


class LayerAttributes:
    """Reads the attributes of a layer.

    Attributes
    ----------
    layer : OldLayer
    """

    layer: OldLayer

    def text(self, *names: str, default: str = "") -> str:
        """Return the first attribute of these names; white space around it means nothing."""
        for name in names:
            if name in self.layer.attributes:
                return self.layer.attributes[name].strip()
        return default

    def has(self, name: str) -> bool:
        """Whether an attribute is stated and not empty."""
        return bool(self.layer.attributes.get(name, "").strip())

    def parsed(self, kind: Kind, names: Sequence[str], default: Any) -> Any:
        """Return an attribute in a form; `default` if it is missing or empty."""
        for name in names:
            if self.has(name):
                value = self.layer.attributes[name]
                try:
                    return kind.parse(value)
                except ValueError:
                    raise self.fault(name, f"must be {kind.allowed}", value) from None
        if default is REQUIRED:
            raise AttributeValueError(
                f"attribute {names[0]!r} is missing",
                attribute=names[0],
                expected=str(kind.allowed),
                rule="attribute-missing",
            )
        return default

    def fault(self, name: str, what: str, value: object) -> AttributeValueError:
        """Return the error of an attribute."""
        shown = str(value)[:80]
        return AttributeValueError(
            f"attribute {name!r} {what}, found {shown!r}",
            attribute=name,
            actual=shown,
            rule="attribute-value",
        )

    def unsupported(self, what: str, attribute: str | None = None) -> UnsupportedError:
        """Return the error of a form that no current operation expresses."""
        error = UnsupportedError(what, attribute=attribute, rule="legacy-form")
        return error

    def integer(self, *names: str, default: Any = None, minimum: int | None = None) -> Any:
        """Return a whole number; old files may write it as 2.0."""
        found = self.number(*names, default=default)
        if found is default:
            return default
        if found != int(found) or abs(found) > MAX_EXTENT:
            raise self.fault(self._named(names), "must be a whole number", found)
        if minimum is not None and found < minimum:
            raise self.fault(self._named(names), f"must be at least {minimum}", int(found))
        return int(found)

    def _named(self, names: Sequence[str]) -> str:
        return next((name for name in names if self.has(name)), names[0])

    def number(self, *names: str, default: Any = None) -> Any:
        """Return a finite number."""
        found = self.parsed(_NUMBERS, names, default)
        if found is default:
            return default
        if len(found) != 1:
            raise self.fault(self._named(names), "must be one number", self.text(*names))
        return found[0]

    def integers(self, *names: str, default: Any = None, minimum: int | None = None) -> Any:
        """Return whole numbers separated by commas."""
        found = self.parsed(_NUMBERS, names, default)
        if found is default:
            return default
        for value in found:
            if value != int(value) or abs(value) > MAX_EXTENT:
                raise self.fault(self._named(names), "must be whole numbers", self.text(*names))
            if minimum is not None and value < minimum:
                raise self.fault(
                    self._named(names), f"must be numbers of at least {minimum}", self.text(*names)
                )
        return tuple(map(int, found))

    def numbers(self, *names: str, default: Any = None) -> Any:
        """Return finite numbers separated by commas."""
        return self.parsed(_NUMBERS, names, default)

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return a truth value: 0, 1, true or false, in any case."""
        text = self.text(*names).lower()
        if text in ("", "0", "1", "true", "false", "0.0", "1.0"):
            return default if not text else text in ("1", "true", "1.0")
        raise self.fault(self._named(names), "must be 0, 1, true or false", text)

    def axis(self, value: int, rank: int, name: str = "axis") -> int:
        """Return an axis counted from 0."""
        if not -rank <= value < rank:
            raise self.fault(name, f"must be an axis of {rank} dims", value)
        return value % rank
