"""Common decoder architectures in torch, with seeded weights.

Each is built `width` times as wide as in the tests, which take few channels;
`bench/networks.py` times them at a width and a size used in practice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

__all__ = ["NETWORKS", "Network"]


@dataclass(frozen=True)
class Network:
    """A module and its inputs.

    Attributes
    ----------
    build : callable
        Takes the width.
    shapes : tuple
        Shape of each input, at width 1.
    dynamic : tuple
        Per input, the axes that may vary in the dynamic variant.
    width : int
        A width used in practice.
    full : tuple
        Shape of each input at that width.
    """

    name: str
    build: Callable[[int], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    dynamic: tuple[tuple[int, ...], ...]
    width: int
    full: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return self.name

    def module(self, *, full: bool = False) -> nn.Module:
        """Build the module, with seeded weights and running statistics."""
        torch.manual_seed(0)
        module = self.build(self.width if full else 1).eval()
        with torch.no_grad():
            for layer in module.modules():
                if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
                    layer.running_mean.uniform_(-0.3, 0.3)
                    layer.running_var.uniform_(0.5, 1.5)
        return module

    def inputs(self, seed: int = 1, *, full: bool = False) -> list[torch.Tensor]:
        """Make seeded inputs."""
        torch.manual_seed(seed)
        return [torch.randn(shape) for shape in (self.full if full else self.shapes)]


def block2(a: int, b: int, norm: bool = True) -> nn.Sequential:
    layers = [
        nn.Conv2d(a, b, 3, padding=1),
        nn.BatchNorm2d(b) if norm else nn.Identity(),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers)


def up2(a: int, b: int) -> nn.Sequential:
    return nn.Sequential(
        nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU()
    )


def dcgan(w: int) -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose2d(10 * w, 16 * w, 4, 1, 0, bias=False), nn.BatchNorm2d(16 * w),
        nn.ReLU(True), up2(16 * w, 8 * w), up2(8 * w, 4 * w),
        nn.ConvTranspose2d(4 * w, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, dims: int, w: int) -> None:
        super().__init__()
        conv = nn.Conv2d if dims == 2 else nn.Conv3d
        norm = nn.BatchNorm2d if dims == 2 else nn.InstanceNorm3d
        up = nn.ConvTranspose2d if dims == 2 else nn.ConvTranspose3d
        self.pool = nn.MaxPool2d(2) if dims == 2 else nn.MaxPool3d(2)

        def block(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(conv(a, b, 3, padding=1), norm(b), nn.LeakyReLU(0.1))

        self.a, self.b, self.c = block(2, 4 * w), block(4 * w, 8 * w), block(8 * w, 8 * w)
        self.up_b, self.up_a = up(8 * w, 8 * w, 2, 2), up(8 * w, 4 * w, 2, 2)
        self.d, self.e = block(16 * w, 8 * w), block(8 * w, 4 * w)
        self.head = conv(4 * w, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        b = self.b(self.pool(a))
        c = self.c(self.pool(b))
        b = self.d(torch.cat([self.up_b(c), b], 1))
        a = self.e(torch.cat([self.up_a(b), a], 1))
        return torch.softmax(self.head(a), 1)


class FCN(nn.Module):
    """FCN-8s (with skips, cropped to size) or FCN-32s (one large step)."""

    def __init__(self, skips: bool, w: int) -> None:
        super().__init__()
        self.skips = skips
        channels, n = (3, 4 * w, 4 * w, 6 * w, 6 * w, 8 * w), min(3 * w, 21)
        self.stages = nn.ModuleList(
            [nn.Sequential(block2(a, b, norm=False), nn.MaxPool2d(2, ceil_mode=True))
             for a, b in pairwise(channels)]
        )  # fmt: skip
        self.score = nn.Conv2d(8 * w, n, 1)
        self.score4, self.score3 = nn.Conv2d(6 * w, n, 1), nn.Conv2d(6 * w, n, 1)
        self.up_a = nn.ConvTranspose2d(n, n, 4, 2, bias=False)
        self.up_b = nn.ConvTranspose2d(n, n, 4, 2, bias=False)
        stride = 8 if skips else 32
        self.up = nn.ConvTranspose2d(n, n, 2 * stride, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = []
        y = x
        for stage in self.stages:
            y = stage(y)
            found.append(y)
        y = self.score(y)
        if self.skips:
            y = crop(self.up_a(y), self.score4(found[3]), 1)
            y = crop(self.up_b(y), self.score3(found[2]), 1)
        y = self.up(y)
        return y[:, :, 4 : 4 + x.shape[2], 4 : 4 + x.shape[3]]


def crop(y: torch.Tensor, skip: torch.Tensor, at: int) -> torch.Tensor:
    return y[:, :, at : at + skip.shape[2], at : at + skip.shape[3]] + skip


def simple_baseline(w: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8 * w, 7, 2, 3), nn.BatchNorm2d(8 * w), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        block2(8 * w, 12 * w), up2(12 * w, 8 * w), up2(8 * w, 8 * w),
        nn.Conv2d(8 * w, min(5 * w, 17), 1),
    )  # fmt: skip


def fsrcnn(w: int) -> nn.Module:
    d, s = 12 * w, 4 * w
    return nn.Sequential(
        nn.Conv2d(1, d, 5, padding=2), nn.PReLU(d), nn.Conv2d(d, s, 1), nn.PReLU(s),
        nn.Conv2d(s, s, 3, padding=1), nn.PReLU(s), nn.Conv2d(s, d, 1), nn.PReLU(d),
        nn.ConvTranspose2d(d, 1, 9, 3, 4, output_padding=2),
    )  # fmt: skip


class Pix2Pix(nn.Module):
    """U-Net generator: strided convolutions down, deconvolutions with InstanceNorm up."""

    def __init__(self, w: int) -> None:
        super().__init__()
        down, up = (3, 4 * w, 8 * w, 8 * w), ((8 * w, 8 * w), (16 * w, 4 * w), (8 * w, 3))
        self.down = nn.ModuleList([nn.Conv2d(a, b, 4, 2, 1) for a, b in pairwise(down)])
        self.norm = nn.InstanceNorm2d(8 * w, affine=True)
        self.up = nn.ModuleList([nn.ConvTranspose2d(a, b, 4, 2, 1) for a, b in up])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down[0](x)
        b = self.norm(self.down[1](functional.leaky_relu(a, 0.2)))
        c = self.down[2](functional.leaky_relu(b, 0.2))
        y = self.norm(self.up[0](functional.relu(c)))
        y = self.up[1](functional.relu(torch.cat([y, b], 1)))
        return torch.tanh(self.up[2](functional.relu(torch.cat([y, a], 1))))


class CycleGAN(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        a, b = 4 * w, 8 * w
        self.head = nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(3, a, 7), nn.InstanceNorm2d(a))
        self.down = nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.InstanceNorm2d(b), nn.ReLU())
        self.residual = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(b, b, 3), nn.InstanceNorm2d(b), nn.ReLU(),
            nn.ReflectionPad2d(1), nn.Conv2d(b, b, 3), nn.InstanceNorm2d(b),
        )  # fmt: skip
        self.up = nn.Sequential(
            nn.ConvTranspose2d(b, a, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(a), nn.ReLU(),
            nn.ReflectionPad2d(3), nn.Conv2d(a, 3, 7), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(functional.relu(self.head(x)))
        return self.up(y + self.residual(y))


class ConvVAE(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        self.channels = c = 4 * w
        self.encode = nn.Sequential(nn.Conv2d(1, c, 3, 2, 1), nn.ELU(), nn.Flatten())
        self.mean, self.spread = nn.Linear(c * 49, 6), nn.Linear(c * 49, 6)
        self.expand = nn.Linear(6, c * 49)
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(c, c, 3, 2, 1, output_padding=1), nn.SELU(),
            nn.Conv2d(c, 1, 3, padding=1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.encode(x)
        mean = self.mean(y)
        z = mean + torch.exp(0.5 * self.spread(y)) * noise
        return self.decode(self.expand(z).view(-1, self.channels, 7, 7)), mean


class HiFiGAN(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        c = 8 * w
        self.pre = nn.Conv1d(c, c, 7, padding=3)
        self.up = nn.ModuleList(
            [nn.ConvTranspose1d(c, c, 16, 8, 4), nn.ConvTranspose1d(c, c, 4, 2, 1)]
        )
        self.blocks = nn.ModuleList(
            [nn.Conv1d(c, c, k, padding=d * (k - 1) // 2, dilation=d)
             for k, d in ((3, 1), (3, 3), (5, 1), (5, 5))]
        )  # fmt: skip
        self.post = nn.Conv1d(c, 1, 7, padding=3)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        x = self.pre(mel)
        for i, up in enumerate(self.up):
            x = up(functional.leaky_relu(x, 0.1))
            total = 0
            for block in self.blocks[2 * i : 2 * i + 2]:
                total = total + x + block(functional.leaky_relu(x, 0.1))
            x = total / 2
        return torch.tanh(self.post(functional.leaky_relu(x)))


class WaveGAN(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        self.channels = c = 8 * w
        self.dense = nn.Linear(10, 16 * c)
        self.up = nn.Sequential(
            nn.ReLU(), nn.ConvTranspose1d(c, c, 25, 4, 11, output_padding=1),
            nn.ReLU(), nn.ConvTranspose1d(c, 1, 25, 4, 11, output_padding=1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.up(self.dense(z).view(-1, self.channels, 16))


class Demucs(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        c = 8 * w
        self.encode = nn.Sequential(
            nn.Conv1d(2, c, 8, 4), nn.ReLU(), nn.Conv1d(c, 2 * c, 1), nn.GLU(1)
        )
        self.lstm = nn.LSTM(c, c, 2, bidirectional=True)
        self.linear = nn.Linear(2 * c, c)
        self.decode = nn.Sequential(
            nn.Conv1d(c, 2 * c, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(c, 4, 8, 4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = self.encode(x)
        y, _ = self.lstm(skip.permute(2, 0, 1))
        y = self.linear(y).permute(1, 2, 0)
        return self.decode(y + skip)


class EnCodec(nn.Module):
    """Decoder with causal deconvolutions, whose excess output at the end is cut off."""

    def __init__(self, w: int) -> None:
        super().__init__()
        a, b = 8 * w, 4 * w
        self.pre = nn.Conv1d(a, a, 7)
        self.lstm = nn.LSTM(a, a, 1)
        self.up = nn.ModuleList([nn.ConvTranspose1d(a, b, 8, 4), nn.ConvTranspose1d(b, b, 4, 2)])
        self.post = nn.Conv1d(b, 1, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pre(functional.pad(x, (6, 0), mode="reflect"))
        y = x.permute(2, 0, 1)
        x = (self.lstm(y)[0] + y).permute(1, 2, 0)
        for up, cut in zip(self.up, (4, 2), strict=True):
            x = up(functional.elu(x))[..., :-cut]
        return self.post(functional.pad(functional.elu(x), (6, 0), mode="reflect"))


def mask_head(w: int) -> nn.Module:
    c = 8 * w
    return nn.Sequential(
        block2(c, c, norm=False), block2(c, c, norm=False), nn.ConvTranspose2d(c, c, 2, 2),
        nn.ReLU(), nn.Conv2d(c, 4, 1), nn.Sigmoid(),
    )  # fmt: skip


class DeepLab(nn.Module):
    """Dilated convolutions side by side, pooled context, a depthwise deconvolution."""

    def __init__(self, w: int) -> None:
        super().__init__()
        a, b = 6 * w, 4 * w
        self.branches = nn.ModuleList(
            [nn.Conv2d(a, b, 3, padding=d, dilation=d) for d in (1, 2, 3)]
        )
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(a, b, 1), nn.Hardswish())
        self.mix = nn.Sequential(nn.Conv2d(4 * b, b, 1), nn.BatchNorm2d(b), nn.ReLU6())
        self.depthwise = nn.Conv2d(b, b, 3, padding=1, groups=b)
        self.up = nn.ConvTranspose2d(b, b, 4, 2, 1, groups=b, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        context = functional.interpolate(
            self.pooled(x), size=x.shape[2:], mode="bilinear", align_corners=False
        )
        y = self.mix(torch.cat([*(functional.gelu(b(x)) for b in self.branches), context], 1))
        return self.up(self.depthwise(y))


class LinkNet(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        a, b = 4 * w, 8 * w
        self.a = nn.Sequential(nn.Conv2d(3, a, 3, 2, 1), nn.GroupNorm(2, a), nn.SiLU())
        self.b = nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.GroupNorm(4, b), nn.SiLU())
        self.up_b = nn.ConvTranspose2d(b, a, 3, 2, 1, output_padding=1)
        self.up_a = nn.ConvTranspose2d(a, 2, 3, 2, 1, output_padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        return self.up_a(functional.relu(self.up_b(self.b(a)) + a))


class ERFNet(nn.Module):
    """Factorised convolutions, and a downsampler of a convolution beside a pooling."""

    def __init__(self, w: int) -> None:
        super().__init__()
        c = 8 * w
        self.conv, self.pool = nn.Conv2d(3, c - 3, 3, 2, 1), nn.MaxPool2d(2, 2)
        self.norm = nn.BatchNorm2d(c, eps=1e-3)
        self.factors = nn.Sequential(
            nn.Conv2d(c, c, (3, 1), padding=(1, 0)), nn.ReLU(),
            nn.Conv2d(c, c, (1, 3), padding=(0, 2), dilation=(1, 2)),
        )  # fmt: skip
        self.up = nn.ConvTranspose2d(c, 4, 2, 2, bias=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm(torch.cat([self.conv(x), self.pool(x)], 1)))
        return self.up(functional.relu(y + self.factors(y)))


class LapSRN(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        c = 6 * w
        self.features = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.LeakyReLU(0.2))
        self.up = nn.ConvTranspose2d(c, c, 4, 2, 1)
        self.image = nn.ConvTranspose2d(1, 1, 4, 2, 1, bias=False)
        self.residual = nn.Conv2d(c, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        feature = functional.leaky_relu(self.up(self.features(x)), 0.2)
        half = self.image(x) + self.residual(feature)
        feature = functional.leaky_relu(self.up(feature), 0.2)
        return half, self.image(half) + self.residual(feature)


class DBPN(nn.Module):
    """Up- and down-projection: deconvolution, convolution back, and the error up again."""

    def __init__(self, w: int) -> None:
        super().__init__()
        c = 6 * w
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.up1, self.up2 = nn.ConvTranspose2d(c, c, 6, 2, 2), nn.ConvTranspose2d(c, c, 6, 2, 2)
        self.down = nn.Conv2d(c, c, 6, 2, 2)
        self.act, self.tail = nn.PReLU(), nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.head(x)
        high = self.act(self.up1(y))
        high = high + self.act(self.up2(self.act(self.down(high)) - y))
        return self.tail(high)


class StyleDecoder(nn.Module):
    """Modulated deconvolution: styles scale the channels, PixelShuffle doubles at the end."""

    def __init__(self, w: int) -> None:
        super().__init__()
        self.style = nn.Linear(5, 6 * w)
        self.up = nn.ConvTranspose2d(6 * w, 8 * w, 3, 2, 1, 1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        style = self.style(z)[:, :, None, None]
        y = self.up(x * style)
        y = y * torch.rsqrt(torch.mean(y * y, dim=1, keepdim=True) + 1e-8)
        return self.shuffle(functional.softplus(y))


class Snake(nn.Module):
    """BigVGAN's periodic activation before a deconvolution, and a mean over time."""

    def __init__(self, w: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(1, 6 * w, 1) + 0.5)
        self.up = nn.ConvTranspose1d(6 * w, 4 * w, 8, 4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + torch.sin(self.alpha * x).pow(2) / self.alpha
        y = self.up(x)
        return y - y.mean(-1, keepdim=True)


IMAGE, SIZE = (0, 2, 3), (2, 3)
# name, build, shapes, dynamic axes; a width and the shapes at that width
NETWORKS = (
    Network("dcgan", dcgan, ((1, 10, 1, 1),), ((0,),), 32, ((1, 320, 1, 1),)),
    Network("unet-2d", partial(UNet, 2), ((1, 2, 16, 24),), (IMAGE,), 8, ((1, 2, 192, 256),)),
    Network(
        "unet-3d", partial(UNet, 3), ((1, 2, 8, 8, 12),), ((2, 3, 4),), 4, ((1, 2, 32, 48, 48),)
    ),
    Network("fcn-8s", partial(FCN, True), ((1, 3, 64, 96),), (SIZE,), 12, ((1, 3, 192, 256),)),
    Network("fcn-32s", partial(FCN, False), ((1, 3, 64, 96),), (SIZE,), 12, ((1, 3, 192, 256),)),
    Network(
        "simple-baseline", simple_baseline, ((1, 3, 32, 24),), (IMAGE,), 16, ((1, 3, 256, 192),)
    ),
    Network("fsrcnn", fsrcnn, ((1, 1, 12, 10),), (IMAGE,), 4, ((1, 1, 120, 160),)),
    Network("pix2pix", Pix2Pix, ((1, 3, 32, 32),), (SIZE,), 16, ((1, 3, 256, 256),)),
    Network("cyclegan", CycleGAN, ((1, 3, 16, 16),), (SIZE,), 8, ((1, 3, 128, 128),)),
    Network(
        "conv-vae", ConvVAE, ((2, 1, 14, 14), (2, 6)), ((0,), (0,)), 16, ((8, 1, 14, 14), (8, 6))
    ),
    Network("hifi-gan", HiFiGAN, ((1, 8, 9),), ((2,),), 16, ((1, 128, 128),)),
    Network("wavegan", WaveGAN, ((2, 10),), ((0,),), 16, ((8, 10),)),
    Network("demucs", Demucs, ((1, 2, 48),), ((2,),), 8, ((1, 2, 2048),)),
    Network("encodec", EnCodec, ((1, 8, 12),), ((2,),), 16, ((1, 128, 150),)),
    Network("mask-rcnn-head", mask_head, ((3, 8, 7, 7),), ((0,),), 32, ((4, 256, 14, 14),)),
    Network("deeplab", DeepLab, ((1, 6, 9, 11),), (SIZE,), 16, ((1, 96, 33, 33),)),
    Network("linknet", LinkNet, ((1, 3, 16, 16),), (SIZE,), 16, ((1, 3, 256, 256),)),
    Network("erfnet", ERFNet, ((1, 3, 16, 12),), (IMAGE,), 8, ((1, 3, 192, 256),)),
    Network("lapsrn", LapSRN, ((1, 1, 9, 8),), (IMAGE,), 8, ((1, 1, 64, 64),)),
    Network("dbpn", DBPN, ((1, 3, 8, 10),), (IMAGE,), 8, ((1, 3, 48, 48),)),
    Network(
        "style-decoder",
        StyleDecoder,
        ((1, 6, 4, 4), (1, 5)),
        (SIZE, ()),
        16,
        ((1, 96, 32, 32), (1, 5)),
    ),
    Network("snake", Snake, ((1, 6, 10),), ((2,),), 32, ((1, 192, 256),)),
)
