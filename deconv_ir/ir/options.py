"""Options whose values users give by name."""

from __future__ import annotations

import enum
from typing import Self

from deconv_ir.errors import InputError


class NamedOption(enum.Enum):
    """An option whose values have names."""

    @classmethod
    def of(cls, word: Self | str) -> Self:
        """Return the value of a name."""
        found = word if isinstance(word, str | cls) else type(word).__name__
        try:
            return cls(found)
        except ValueError:
            names = " or ".join(repr(value.value) for value in cls)
            raise InputError(f"{cls.__name__.lower()} must be {names}, found {found!r}") from None


class Semantics(NamedOption):
    """The rule for cases in which the documents and a runtime differ.

    SPEC follows the operation specifications.  OPENVINO follows the OpenVINO runtime in the
    operations of OpenVINO, ONEDNN the oneDNN library in those of oneDNN Graph; all others follow
    the specifications.  The README lists the cases.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir import Semantics, conv_transpose
    >>> x, w = np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]])
    >>> conv_transpose(x, w, strides=2, output_shape=[3], semantics=Semantics.SPEC)
    array([[[2., 4., 2.]]])
    >>> conv_transpose(x, w, strides=2, output_shape=[3], semantics=Semantics.OPENVINO)
    array([[[1., 2., 4.]]])
    """

    SPEC = "spec"
    OPENVINO = "openvino"
    ONEDNN = "onednn"


class Accuracy(NamedOption):
    """The algorithms from which a convolution may choose, and the precision of all layers.

    FAST includes algorithms that transform the data first (Winograd), within the
    error bounds of ``docs/numerics.md``.  DIRECT allows direct sums only.  FLOAT64 computes
    every layer of f32, f16 or bf16 in f64: constants are as they are stored, inputs as they are
    given, and outputs f64.  FLOAT64_ROUNDED rounds the outputs once, to their types.  BF16 is FAST,
    and may round what convolutions and matrix products of f32 multiply to bf16, where that is
    faster.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir import Accuracy, conv_transpose
    >>> x, w = np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]])
    >>> conv_transpose(x, w, strides=2, accuracy=Accuracy.DIRECT)
    array([[[1., 2., 4., 2., 3.]]])
    """

    FAST = "fast"
    DIRECT = "direct"
    FLOAT64 = "float64"
    FLOAT64_ROUNDED = "float64-rounded"
    BF16 = "bf16"

    @property
    def is_direct(self) -> bool:
        """Whether convolutions are summed directly."""
        return self not in (Accuracy.FAST, Accuracy.BF16)

    @property
    def is_float64(self) -> bool:
        """Whether layers are computed in f64."""
        return self in (Accuracy.FLOAT64, Accuracy.FLOAT64_ROUNDED)
