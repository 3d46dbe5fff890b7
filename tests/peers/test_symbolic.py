"""Expressions for dims of converted networks, compared with OpenVINO's shapes at random sizes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import deconv_ir

from .runtimes import ov

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class UNet(nn.Module):
    """Two levels, joined by concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(a, 4, 3, padding=1) for a in (3, 4, 4))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, 4, 2, 2) for a in (4, 8))

    def forward(self, x: Tensor) -> Tensor:
        first = self.layers[0](x)
        second = self.layers[1](F.max_pool2d(first, 2))
        y = self.up[0](self.layers[2](F.max_pool2d(second, 2)))
        return torch.cat([first, self.up[1](torch.cat([second, y], 1))], 1)


class Attention(nn.Module):
    """Self-attention with a mask of the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-1, -2) + mask[:, None, None, :]).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, 16))


class Windows(nn.Module):
    """Windows of 4 by 4 as tokens, as in Swin transformers."""

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        x = x.view(n, c, h // 4, 4, w // 4, 4)
        return x.permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 5, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, _) = self.lstm(x)
        return y, h


def resized(x: Tensor) -> tuple[Tensor, ...]:
    small = F.avg_pool2d(x, 3, 2, 1)
    half = F.interpolate(x, scale_factor=0.5, mode="nearest")
    up = F.interpolate(small, size=x.shape[2:], mode="bilinear")
    return F.interpolate(x, scale_factor=2.0), half, up + x, F.pixel_shuffle(x, 2), small


def cut(x: Tensor) -> tuple[Tensor, ...]:
    a, b = x.chunk(2, 2)
    return x[:, 1:, ::2, 1:-1], F.pad(x, (1, 2, 3, 0)), a, b, x.flatten(1), x.mean((2, 3))


def outer(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x @ y, torch.cat([x, y.transpose(1, 2)], 1), x[:, :, None] * y.transpose(1, 2)[:, None]


def pooled(x: Tensor) -> tuple[Tensor, ...]:
    return (
        F.max_pool2d(x, 3, 2, ceil_mode=True),
        F.avg_pool2d(x, 2, 2, ceil_mode=True),
        F.adaptive_avg_pool2d(x, (3, 5)),
        F.unfold(x, 3, padding=1, stride=2),
    )


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


class Case(NamedTuple):
    """A module, and the shapes of its inputs; -1: dynamic."""

    module: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    expected: str
    """The first output, worked out by hand."""


CASES = {
    "unet": Case(UNet, ((-1, 3, -1, -1),), "N 8 H W"),
    "attention": Case(Attention, ((-1, -1, 16), (-1, -1)), "N L 16"),
    "windows": Case(Windows, ((-1, 4, -1, -1),), "N*floor(H/4)*floor(W/4) 16 4"),
    "lstm": Case(Recurrent, ((-1, -1, 3),), "N L 10"),
    "resized": Case(lambda: Of(resized), ((-1, 4, -1, -1),), "N 4 2*H 2*W"),
    "cut": Case(lambda: Of(cut), ((-1, 4, -1, -1),), "N 3 ceil(H/2) W - 2"),
    "outer": Case(lambda: Of(outer), ((2, -1, -1), (2, -1, -1)), "2 C L2"),
    "pooled": Case(lambda: Of(pooled), ((-1, 2, -1, -1),), "N 2 floor(H/2) floor(W/2)"),
}


def value(dim: int | str, sizes: dict[str, int]) -> int:
    """Compute an expression exactly, with fractions in place of quotients."""
    if isinstance(dim, int):
        return dim
    from fractions import Fraction

    names = {name: Fraction(size) for name, size in sizes.items()}
    return int(eval(dim, {"floor": math.floor, "ceil": math.ceil}, names))


@pytest.mark.parametrize("name", CASES)
def test_expressions_are_openvinos_shapes(name: str, tmp_path: Path) -> None:
    """OpenVINO infers the same shapes at random sizes, and refuses sizes that do not fit."""
    case = CASES[name]
    example = tuple(torch.zeros([8 if d < 0 else d for d in shape]) for shape in case.shapes)
    converted = ov.convert_model(
        case.module().eval(),
        example_input=example if len(example) > 1 else example[0],
        input=[ov.PartialShape(list(shape)) for shape in case.shapes],
    )
    path = tmp_path / "model.xml"
    ov.save_model(converted, path, compress_to_fp16=False)
    found = deconv_ir.load(path, warn=False).symbolic_shapes()
    assert " ".join(map(str, next(iter(found.outputs.values())) or ())) == case.expected
    assert not any("d1" in str(shape) for shape in found.outputs.values())
    draw, fitted = random.Random(name), 0
    names = sorted({d for s in found.inputs.values() for d in s or () if isinstance(d, str)})
    for number in range(12):
        step = 8 if number % 3 else 1
        sizes = {n: draw.randint(1, 5) * step + (4 if step == 1 else 0) for n in names}
        given = [[value(d, sizes) for d in shape or ()] for shape in found.inputs.values()]
        model = ov.Core().read_model(path)
        try:
            model.reshape({i: ov.PartialShape(s) for i, s in enumerate(given)})
            theirs = [tuple(p.get_partial_shape().to_shape()) for p in model.outputs]
        except RuntimeError:
            assert found.conditions, sizes
            assert step == 1, "multiples of 8 fit"
            continue
        fitted += 1
        if min(min(shape) for shape in theirs if shape):
            mine = [tuple(value(d, sizes) for d in s or ()) for s in found.outputs.values()]
            assert mine == theirs, sizes
    assert fitted > 6
