"""Options with few values, which users give by name."""

from __future__ import annotations

import enum
from typing import Self

from deconv_ir.errors import InputError


class Option(enum.Enum):
    """An option whose values have names."""

    @classmethod
    def of(cls, word: Self | str) -> Self:
        """Return the value of a name.

        Raises
        ------
        InputError
            The name is unknown.
        """
        found = word if isinstance(word, str | cls) else type(word).__name__
        try:
            return cls(found)
        except ValueError:
            names = " or ".join(repr(value.value) for value in cls)
            raise InputError(f"{cls.__name__.lower()} must be {names}, found {found!r}") from None


class Semantics(Option):
    """Whose rule decides where the documents and the OpenVINO runtime differ."""

    SPEC = "spec"
    OPENVINO = "openvino"


class Accuracy(Option):
    """Which algorithms a convolution may choose from.

    FAST: also those that transform the data first (Winograd), within the bounds
    of ``docs/numerics.md``.  DIRECT: direct sums alone.
    """

    FAST = "fast"
    DIRECT = "direct"
