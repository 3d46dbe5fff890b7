"""A convolution or transposed convolution in the kernels' terms.

Names of axes, used in every file of this package::

    n  batch                 g  group
    i  input channel         o  output channel        (both counted in a group)
    x  input position        y  output position       k  kernel position
    t  position in the natural output, t = s*x + d*k = y + pad_begin
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.dtypes import Array


class Problem(NamedTuple):
    """A convolution without its extents: the part that can be prepared once."""

    groups: int
    channels_in: int
    channels_out: int
    """Channels of one group."""
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    """One entry for each spatial axis, as for kernel and strides."""
    forward: bool = False
    """Whether the problem is a convolution rather than a transposed one."""

    @property
    def axes(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def taps(self) -> int:
        """Number of kernel positions."""
        return math.prod(self.kernel)

    @classmethod
    def of_filter(
        cls,
        shape: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        groups: int,
        *,
        forward: bool = False,
    ) -> "Problem":
        """Return the problem of a filter ``[groups * in, out, *K]``.

        With `forward` the filter is that of a convolution, ``[groups * out, in, *K]``.  Raises
        `ValueError` if lengths or values do not fit together.
        """
        if len(shape) < 3:
            raise ValueError(f"filter must have rank 3 or greater, not shape {list(shape)}")
        kernel = tuple(int(k) for k in shape[2:])
        if min(kernel) < 1:
            raise ValueError(f"kernel extents must be positive, not {list(kernel)}")
        if groups < 1 or shape[0] % groups:
            name = "output" if forward else "input"
            raise ValueError(f"{shape[0]} {name} channels do not make {groups} groups")
        grouped, other = int(shape[0]) // groups, int(shape[1])
        return cls(
            int(groups),
            other if forward else grouped,
            grouped if forward else other,
            kernel,
            check_vector("strides", strides, len(kernel), 1),
            check_vector("dilations", dilations, len(kernel), 1),
            forward,
        )


def check_vector(
    name: str, values: Sequence[int], length: int, least: int | None = None
) -> tuple[int, ...]:
    """Return `values` as a tuple of ints.

    Raises `ValueError` if there are not `length` values, or a value is less than `least`.
    """
    result = tuple(int(v) for v in values)
    if len(result) != length:
        raise ValueError(f"{name} must have {length} entries, one a spatial axis, not {result}")
    if least is not None and any(v < least for v in result):
        raise ValueError(f"{name} must be at least {least}, not {result}")
    return result


@functools.lru_cache(maxsize=512)
def check_run(
    problem: Problem, shape: tuple[int, ...], pads_begin: tuple[int, ...], output: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Check the arguments of one run against the prepared problem.

    Returns pads, clipped to the range in which they matter, and output.  Raises `ValueError` if
    rank, channels or lengths do not fit.
    """
    if len(shape) != problem.axes + 2:
        raise ValueError(f"data must have rank {problem.axes + 2}, not shape {list(shape)}")
    channels = problem.groups * problem.channels_in
    if shape[1] != channels:
        raise ValueError(f"data must have {channels} channels, not {shape[1]}")
    extents = check_vector("output", output, problem.axes, 0)
    pads = check_vector("pads_begin", pads_begin, problem.axes)
    # No tap reaches the output beyond these bounds, and sums with them fit into 64 bits.
    bounds = (
        s * max(x, y) + d * k + x + y + 1
        for s, d, k, x, y in zip(
            problem.strides, problem.dilations, problem.kernel, shape[2:], extents, strict=True
        )
    )
    return tuple(max(-b, min(p, b)) for p, b in zip(pads, bounds, strict=True)), extents


def pick(array: Array, *index: Any) -> Array:
    """Return ``array[index]`` for an index whose length depends on the array's rank."""
    result: Array = array[index]
    return result


def accumulator_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which elements of a type are summed.

    Raises `UnsupportedError` for types without arithmetic, such as bool, complex and f8.
    """
    if dtype in (np.float32, np.float64):
        return dtype
    if dtype == np.float16 or dtype.name == "bfloat16":
        return np.dtype(np.float32)
    if dtype.kind in "iu" and dtype.type.__module__ == "numpy":
        return np.dtype(np.uint64)
    order = "" if dtype.isnative else " in the byte order of another machine"
    raise UnsupportedError(f"convolutions do not support element type {dtype.name}{order}")


def by_group(problem: Problem, array: Array) -> Array:
    """Return ``[N, groups * channels, *X]`` as a view ``[N, groups, channels, *X]``."""
    batch, channels, *extents = array.shape
    return array.reshape(batch, problem.groups, channels // problem.groups, *extents)


def one_by_channel(problem: Problem, scales: Array) -> Array | None:
    """Return ``[groups * out]`` of the scales of a filter; None if a channel has several."""
    sides = [problem.channels_out, problem.channels_in]
    grouped = scales.reshape(
        problem.groups, *(sides if problem.forward else sides[::-1]), *scales.shape[2:]
    )
    rows = grouped if problem.forward else grouped.swapaxes(1, 2)
    # A broadcast axis is read once.
    rows = rows[tuple(slice(None if step else 1) for step in rows.strides)]
    rows = rows.reshape(*rows.shape[:2], -1)
    if not (rows == rows[..., :1]).all():
        return None
    shape = problem.groups, problem.channels_out
    return np.ascontiguousarray(np.broadcast_to(rows[..., 0], shape), np.float64).reshape(-1)
