"""Quantised layers: the levels of their data, the scales of their filter."""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

from deconv_ir.ir.dtypes import Array

# Distance of a number from a level, in steps, that changes no sum by a rounding error of f32.
_SAME = 1e-7

FOUR = 4
"""Channels whose codes are in an element."""


class CodeLayout(enum.Enum):
    """How the codes of a tensor are stored."""

    FOURS = "fours"
    """Those of four channels (axis 1) in an element of u32, as convolutions read them."""
    PLAIN = "plain"
    """Each in an element of i8, less 128, as products of matrices read them."""


def fours(start: int, stop: int, channels: int) -> tuple[int, int] | None:
    """Return the first and last element of channels; None if one holds others, too.

    Examples
    --------
    >>> from deconv_ir.ir.quantization import fours
    >>> fours(4, 10, 10), fours(4, 6, 10)
    ((1, 3), None)
    """
    if start % FOUR or (stop % FOUR and stop != channels):
        return None
    return start // FOUR, -(-stop // FOUR)


class Levels(NamedTuple):
    """The equal levels of a tensor: OpenVINO FakeQuantize-1, 'Detailed description'.

    Attributes
    ----------
    number : int
        From 2 to 256.
    low, high : tuple of float
        The input range, in order: one number, or one for each channel, as for the others.
    output_low, output_high : tuple of float
        The values of the first and the last level.

    Examples
    --------
    >>> from deconv_ir.operations import Levels
    >>> Levels(256, (-1.0,), (1.0,), (0.0,), (127.5,)).steps
    (0.5,)
    """

    number: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    output_low: tuple[float, ...]
    output_high: tuple[float, ...]

    @classmethod
    def of_bytes(cls, scale: float, zero_point: float, *, signed: bool) -> Levels:
        """Return the levels ``(byte - zero_point) * scale``."""
        first = -128 if signed else 0
        low, high = ((end - zero_point) * scale for end in (first, first + 255))
        return cls(256, (low,), (high,), (low,), (high,))

    @property
    def steps(self) -> tuple[float, ...]:
        """Differences of two levels."""
        ends = zip(self.output_low, self.output_high, strict=True)
        return tuple((high - low) / (self.number - 1) for low, high in ends)

    @property
    def is_single(self) -> bool:
        """Whether all channels have the same levels."""
        return len(self.low) == 1

    def code_of(self, number: float) -> int | None:
        """Return the code of a level of all channels; None if a number is on none."""
        if not self.is_single or not math.isfinite(number):
            return None
        place = (number - self.output_low[0]) / self.steps[0]
        code = round(place)
        return code if abs(place - code) <= _SAME and 0 <= code < self.number else None

    @property
    def of_results(self) -> Levels:
        """The levels of values that lie on them."""
        return self._replace(low=self.output_low, high=self.output_high)


class WeightLevels(NamedTuple):
    """The levels of weights: ``scales * (code - zero_points)``, but for rounding.

    Attributes
    ----------
    scales, zero_points : ndarray
        f64, broadcast to the weights.  Zero points need not be integers.
    lowest : int
        Codes are integers from this to ``lowest + 255``.
    rounded : bool
        Whether weights are rounded to f32; if not, they are on the levels, or have none.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import WeightLevels
    >>> WeightLevels(np.array(0.5), np.array(128.0), lowest=0).zero_points  # of u8
    array(128.)
    """

    scales: Array
    zero_points: Array
    lowest: int = -128
    rounded: bool = True


class LayerQuantization(NamedTuple):
    """A layer whose data and filter are quantised.

    Attributes
    ----------
    levels : Levels
        Of the data.
    weights : WeightLevels
        Of the filter.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Context, ConvolutionBackpropData, Epilogue
    >>> from deconv_ir.operations import LayerQuantization, Levels, WeightLevels
    >>> levels = Levels(256, (0.0,), (255.0,), (0.0,), (255.0,))
    >>> up = ConvolutionBackpropData(
    ...     strides=(1,), dilations=(1,), pads_begin=(0,), pads_end=(0,)
    ... )
    >>> filter = np.array([[[0.5]]], np.float32)  # one code of scale 0.5
    >>> found = LayerQuantization(levels, WeightLevels(np.array([[[0.5]]]), np.zeros((1, 1, 1))))
    >>> kernel = up.prepare_quantized([None, filter], found, Epilogue(None), Context())
    >>> kernel([np.array([[[1.4, 300.0]]], np.float32), None])[0].tolist()
    [[[0.5, 127.5]]]
    """

    levels: Levels
    weights: WeightLevels
