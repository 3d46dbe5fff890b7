"""Seeded random problems: transposed convolutions, described by integers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Problem", "array", "openvino_problem", "problems"]

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One transposed convolution; tuples run over the spatial axes.

    `filters` and `outputs` are channels of one group: the input has
    ``groups * filters`` channels and the output ``groups * outputs``.
    """

    seed: int
    batch: int
    groups: int
    filters: int
    outputs: int
    extents: Ints
    kernel: Ints
    strides: Ints
    dilations: Ints
    pads_begin: Ints
    pads_end: Ints
    output_padding: Ints
    auto_pad: str = "explicit"
    output_shape: Ints | None = None

    def __str__(self) -> str:
        shape = "" if self.output_shape is None else "-shape"
        group = f"-g{self.groups}" if self.groups > 1 else ""
        return f"{len(self.extents)}d{group}-{self.auto_pad}{shape}-{self.seed}"

    @property
    def data_shape(self) -> Ints:
        """Shape of `data`: [N, C, spatial...]."""
        return (self.batch, self.groups * self.filters, *self.extents)

    @property
    def filter_shape(self) -> Ints:
        """Shape of `filter`: [C_in, C_out / groups, spatial...], as in torch and ONNX."""
        return (self.groups * self.filters, self.outputs, *self.kernel)

    @property
    def channels(self) -> int:
        """Channels of the output."""
        return self.groups * self.outputs

    @property
    def natural(self) -> Ints:
        """F of each axis: the output's extent before padding and output_padding."""
        return tuple(
            s * (x - 1) + (k - 1) * d + 1
            for x, k, s, d in zip(
                self.extents, self.kernel, self.strides, self.dilations, strict=True
            )
        )

    def tensors(self, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
        """Return random `data` and `filter` of this problem."""
        return (
            array(self.seed, self.data_shape, dtype),
            array(self.seed + 1, self.filter_shape, dtype),
        )


def array(seed: int, shape: Sequence[int], dtype: str = "float32") -> np.ndarray:
    """Return a random array: normal values, or small integers for an integer dtype."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return rng.integers(0 if kind.kind == "u" else -9, 10, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


_LARGEST_EXTENT = {1: 12, 2: 7, 3: 4}


def _draw(seed: int, spatial: int | None = None) -> Problem:
    """Draw sizes, strides, dilations and pads, such that no output extent is below 1."""
    rng = random.Random(seed)
    n = spatial or rng.choice((1, 2, 2, 3))

    def each(low: int, high: int) -> Ints:
        return tuple(rng.randint(low, high) for _ in range(n))

    problem = Problem(
        seed=seed,
        batch=rng.choice((1, 1, 2, 3)),
        groups=1,
        filters=rng.randint(1, 5),
        outputs=rng.randint(1, 5),
        extents=each(1, _LARGEST_EXTENT[n]),
        kernel=each(1, 4),
        strides=each(1, 4),
        dilations=each(1, 3),
        pads_begin=(0,) * n,
        pads_end=(0,) * n,
        output_padding=(0,) * n,
    )
    if rng.random() < 0.6:  # the pads may be larger than the kernel
        begin = tuple(rng.randint(0, min(f - 1, 5)) for f in problem.natural)
        end = tuple(
            rng.randint(0, min(f - 1 - b, 5)) for f, b in zip(problem.natural, begin, strict=True)
        )
        problem = replace(problem, pads_begin=begin, pads_end=end)
    if rng.random() < 0.5:
        # Up to one more than the stride: the documents set no upper limit.
        problem = replace(
            problem, output_padding=tuple(rng.randint(0, s + 1) for s in problem.strides)
        )
    if rng.random() < 0.4:
        problem = replace(problem, groups=rng.randint(2, 4))
        if rng.random() < 0.4:  # depthwise
            problem = replace(problem, filters=1, outputs=1)
    return problem


def openvino_problem(seed: int, spatial: int | None = None) -> Problem:
    """Draw a problem with the `auto_pad` and `output_shape` of the OpenVINO operations."""
    problem = _draw(seed, spatial)
    rng = random.Random(-seed - 1)
    problem = replace(
        problem, auto_pad=rng.choice(("explicit", "explicit", "same_upper", "same_lower", "valid"))
    )
    if rng.random() < 0.5:  # from one element to wider than the natural extent
        shape = tuple(rng.randint(1, f + 6) for f in problem.natural)
        problem = replace(problem, output_shape=shape)
    return problem


def problems(count: int, first: int = 0, spatial: int | None = None) -> list[Problem]:
    """Return `count` problems with pads and output_padding, without auto_pad and output_shape."""
    return [_draw(first + i, spatial) for i in range(count)]
