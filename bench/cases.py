"""The layers that the benchmarks measure: named layers, and random layers of the same kinds."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["NAMED", "Case", "random_cases"]


@dataclass(frozen=True, slots=True)
class Case:
    """One transposed convolution.

    Attributes
    ----------
    data : tuple of int
        ``[N, groups * in, *X]``.
    filter : tuple of int
        ``[groups * in, out, *K]``.
    """

    name: str
    data: tuple[int, ...]
    filter: tuple[int, ...]
    groups: int
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    output_padding: tuple[int, ...]

    @property
    def output(self) -> tuple[int, ...]:
        """Spatial extents of the result."""
        return tuple(
            s * (x - 1) + d * (k - 1) + 1 - 2 * p + extra
            for s, x, d, k, p, extra in zip(
                self.strides,
                self.data[2:],
                self.dilations,
                self.filter[2:],
                self.pads,
                self.output_padding,
                strict=True,
            )
        )

    @property
    def operations(self) -> float:
        """Floating-point operations: two for every data element, output channel and tap."""
        result = 2.0 * self.filter[1]
        for extent in self.data + self.filter[2:]:
            result *= extent
        return result

    @property
    def bytes(self) -> float:
        """Bytes that must be read and written once, in f32."""
        total = 0.0
        for shape in (self.data, self.filter, (self.data[0], self.out_channels, *self.output)):
            size = 4.0
            for extent in shape:
                size *= extent
            total += size
        return total

    @property
    def out_channels(self) -> int:
        """Channels of the result, all groups together."""
        return self.groups * self.filter[1]


def _case(
    name: str,
    data: tuple[int, ...],
    weights: tuple[int, ...],
    groups: int,
    stride: int,
    pad: int,
    dilation: int = 1,
    output_padding: int = 0,
) -> Case:
    axes = len(data) - 2
    return Case(
        name,
        data,
        weights,
        groups,
        (stride,) * axes,
        (pad,) * axes,
        (dilation,) * axes,
        (output_padding,) * axes,
    )


NAMED: tuple[Case, ...] = (
    _case("spec1", (1, 20, 224, 224), (20, 10, 3, 3), 1, 2, 1),
    _case("dcgan1", (8, 1024, 4, 4), (1024, 512, 4, 4), 1, 2, 1),
    _case("dcgan3", (8, 256, 16, 16), (256, 128, 4, 4), 1, 2, 1),
    _case("dcgan4", (8, 128, 32, 32), (128, 3, 4, 4), 1, 2, 1),
    _case("pose", (1, 256, 32, 24), (256, 256, 4, 4), 1, 2, 1),
    _case("unet2x2", (1, 512, 64, 64), (512, 256, 2, 2), 1, 2, 0),
    _case("unet2x2b", (1, 128, 256, 256), (128, 64, 2, 2), 1, 2, 0),
    _case("fsrcnn", (1, 56, 180, 320), (56, 1, 9, 9), 1, 4, 4, output_padding=3),
    _case("fcn32", (1, 21, 16, 16), (21, 21, 64, 64), 1, 32, 16),
    _case("k3s2", (1, 64, 112, 112), (64, 64, 3, 3), 1, 2, 1, output_padding=1),
    _case("k3s1", (1, 64, 112, 112), (64, 64, 3, 3), 1, 1, 1),
    _case("k3s1d2", (1, 64, 112, 112), (64, 64, 3, 3), 1, 1, 2, dilation=2),
    _case("hifigan", (1, 512, 800), (512, 256, 16), 1, 8, 4),
    _case("hifigan3", (1, 128, 25600), (128, 64, 4), 1, 2, 1),
    _case("unet3d", (1, 128, 24, 24, 24), (128, 64, 2, 2, 2), 1, 2, 0),
    _case("k4s2_3d", (1, 64, 16, 16, 16), (64, 32, 4, 4, 4), 1, 2, 1),
    _case("dw4s2", (1, 256, 64, 64), (256, 1, 4, 4), 256, 2, 1),
    _case("grp4", (1, 128, 64, 64), (128, 32, 3, 3), 4, 2, 1, output_padding=1),
)

# Per family: spatial axes, kernels with stride and pad, extents, channels in
# and out, whether groups may be more than 1.
_FAMILIES = {
    "gan": (2, [(4, 2, 1), (5, 2, 2)], (4, 48), (32, 512), (3, 256)),
    "unet": (2, [(2, 2, 0), (3, 2, 1), (4, 4, 0)], (16, 200), (16, 384), (8, 192)),
    "same": (2, [(3, 1, 1), (5, 1, 2)], (14, 128), (16, 256), (8, 192)),
    "upscale": (2, [(9, 3, 4), (8, 4, 2), (16, 8, 4)], (24, 240), (8, 64), (1, 4)),
    "speech": (1, [(4, 2, 1), (16, 8, 4), (11, 5, 3)], (200, 20000), (16, 512), (8, 256)),
    "volume": (3, [(2, 2, 0), (3, 2, 1), (4, 2, 1)], (8, 32), (8, 96), (4, 64)),
    "depthwise": (2, [(3, 2, 1), (4, 2, 1), (3, 1, 1)], (16, 120), (1, 1), (1, 1)),
}


def random_cases(seed: int, count: int) -> list[Case]:
    """Draw `count` layers of the kinds that networks have, of 0.05 to 8 GFLOP."""
    rng = random.Random(seed)

    def size(low: int, high: int) -> int:
        """Draw evenly in the logarithm."""
        return round(low * (high / low) ** rng.random())

    cases: list[Case] = []
    names = list(_FAMILIES)
    while len(cases) < count:
        family = names[len(cases) % len(names)]
        axes, kernels, extents, inputs, outputs = _FAMILIES[family]
        kernel, stride, pad = rng.choice(kernels)
        depthwise = family == "depthwise"
        groups = size(32, 512) if depthwise else rng.choice([1, 1, 1, 2, 4])
        batch = rng.choice([1, 1, 2, 8])
        data = tuple(size(*extents) for _ in range(axes))
        case = _case(
            f"{family}{len(cases)}",
            (batch, groups * size(*inputs), *data),
            (0, size(*outputs)) + (kernel,) * axes,
            groups,
            stride,
            pad,
            output_padding=rng.randrange(stride),
        )
        case = Case(
            case.name,
            case.data,
            (case.data[1], *case.filter[1:]),
            groups,
            case.strides,
            case.pads,
            case.dilations,
            case.output_padding,
        )
        low = 0.005e9 if depthwise else 0.05e9
        if low <= case.operations <= 8e9 and case.bytes < 400e6:
            cases.append(case)
    return cases
