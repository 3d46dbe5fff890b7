"""Decoders that people have, small: few channels, seeded weights, in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

__all__ = ["NETWORKS", "Network"]


@dataclass(frozen=True)
class Network:
    """A module and what it takes.

    Attributes
    ----------
    shapes : tuple
        Shape of each input.
    dynamic : tuple
        Per input, the axes that may vary in the dynamic variant.
    """

    name: str
    build: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    dynamic: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return self.name

    def module(self) -> nn.Module:
        """Build it, with seeded weights and running statistics."""
        torch.manual_seed(0)
        module = self.build().eval()
        with torch.no_grad():
            for layer in module.modules():
                if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
                    layer.running_mean.uniform_(-0.3, 0.3)
                    layer.running_var.uniform_(0.5, 1.5)
        return module

    def inputs(self, seed: int = 1) -> list[torch.Tensor]:
        """Make seeded inputs."""
        torch.manual_seed(seed)
        return [torch.randn(shape) for shape in self.shapes]


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


def dcgan() -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose2d(10, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        up2(16, 8), up2(8, 4), nn.ConvTranspose2d(4, 3, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, dims: int) -> None:
        super().__init__()
        conv = nn.Conv2d if dims == 2 else nn.Conv3d
        norm = nn.BatchNorm2d if dims == 2 else nn.InstanceNorm3d
        up = nn.ConvTranspose2d if dims == 2 else nn.ConvTranspose3d
        self.pool = nn.MaxPool2d(2) if dims == 2 else nn.MaxPool3d(2)

        def block(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(conv(a, b, 3, padding=1), norm(b), nn.LeakyReLU(0.1))

        self.a, self.b, self.c = block(2, 4), block(4, 8), block(8, 8)
        self.up_b, self.up_a = up(8, 8, 2, 2), up(8, 4, 2, 2)
        self.d, self.e, self.head = block(16, 8), block(8, 4), conv(4, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        b = self.b(self.pool(a))
        c = self.c(self.pool(b))
        b = self.d(torch.cat([self.up_b(c), b], 1))
        a = self.e(torch.cat([self.up_a(b), a], 1))
        return torch.softmax(self.head(a), 1)


class FCN(nn.Module):
    """FCN-8s (with skips, cropped to size) or FCN-32s (one large step)."""

    def __init__(self, skips: bool) -> None:
        super().__init__()
        self.skips = skips
        self.stages = nn.ModuleList(
            [nn.Sequential(block2(a, b, norm=False), nn.MaxPool2d(2, ceil_mode=True))
             for a, b in ((3, 4), (4, 4), (4, 6), (6, 6), (6, 8))]
        )  # fmt: skip
        self.score = nn.Conv2d(8, 3, 1)
        self.score4, self.score3 = nn.Conv2d(6, 3, 1), nn.Conv2d(6, 3, 1)
        self.up_a = nn.ConvTranspose2d(3, 3, 4, 2, bias=False)
        self.up_b = nn.ConvTranspose2d(3, 3, 4, 2, bias=False)
        stride = 8 if skips else 32
        self.up = nn.ConvTranspose2d(3, 3, 2 * stride, stride, bias=False)

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


def simple_baseline() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        block2(8, 12), up2(12, 8), up2(8, 8), nn.Conv2d(8, 5, 1),
    )  # fmt: skip


def fsrcnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.PReLU(12), nn.Conv2d(12, 4, 1), nn.PReLU(4),
        nn.Conv2d(4, 4, 3, padding=1), nn.PReLU(4), nn.Conv2d(4, 12, 1), nn.PReLU(12),
        nn.ConvTranspose2d(12, 1, 9, 3, 4, output_padding=2),
    )  # fmt: skip


class Pix2Pix(nn.Module):
    """U-Net generator: strided convolutions down, deconvolutions with InstanceNorm up."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(a, b, 4, 2, 1) for a, b in ((3, 4), (4, 8), (8, 8))])
        self.norm = nn.InstanceNorm2d(8, affine=True)
        self.up = nn.ModuleList(
            [nn.ConvTranspose2d(a, b, 4, 2, 1) for a, b in ((8, 8), (16, 4), (8, 3))]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down[0](x)
        b = self.norm(self.down[1](functional.leaky_relu(a, 0.2)))
        c = self.down[2](functional.leaky_relu(b, 0.2))
        y = self.norm(self.up[0](functional.relu(c)))
        y = self.up[1](functional.relu(torch.cat([y, b], 1)))
        return torch.tanh(self.up[2](functional.relu(torch.cat([y, a], 1))))


class CycleGAN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(3, 4, 7), nn.InstanceNorm2d(4))
        self.down = nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.InstanceNorm2d(8), nn.ReLU())
        self.residual = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8), nn.ReLU(),
            nn.ReflectionPad2d(1), nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8),
        )  # fmt: skip
        self.up = nn.Sequential(
            nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(4), nn.ReLU(),
            nn.ReflectionPad2d(3), nn.Conv2d(4, 3, 7), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(functional.relu(self.head(x)))
        return self.up(y + self.residual(y))


class ConvVAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ELU(), nn.Flatten())
        self.mean, self.spread = nn.Linear(4 * 49, 6), nn.Linear(4 * 49, 6)
        self.expand = nn.Linear(6, 4 * 49)
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1), nn.SELU(),
            nn.Conv2d(4, 1, 3, padding=1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.encode(x)
        mean = self.mean(y)
        z = mean + torch.exp(0.5 * self.spread(y)) * noise
        return self.decode(self.expand(z).view(-1, 4, 7, 7)), mean


class HiFiGAN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pre = nn.Conv1d(8, 8, 7, padding=3)
        self.up = nn.ModuleList(
            [nn.ConvTranspose1d(8, 8, 16, 8, 4), nn.ConvTranspose1d(8, 8, 4, 2, 1)]
        )
        self.blocks = nn.ModuleList(
            [nn.Conv1d(8, 8, k, padding=d * (k - 1) // 2, dilation=d)
             for k, d in ((3, 1), (3, 3), (5, 1), (5, 5))]
        )  # fmt: skip
        self.post = nn.Conv1d(8, 1, 7, padding=3)

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
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(10, 16 * 8)
        self.up = nn.Sequential(
            nn.ReLU(), nn.ConvTranspose1d(8, 8, 25, 4, 11, output_padding=1),
            nn.ReLU(), nn.ConvTranspose1d(8, 1, 25, 4, 11, output_padding=1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.up(self.dense(z).view(-1, 8, 16))


class Demucs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv1d(2, 8, 8, 4), nn.ReLU(), nn.Conv1d(8, 16, 1), nn.GLU(1)
        )
        self.lstm = nn.LSTM(8, 8, 2, bidirectional=True)
        self.linear = nn.Linear(16, 8)
        self.decode = nn.Sequential(
            nn.Conv1d(8, 16, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(8, 4, 8, 4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skip = self.encode(x)
        y, _ = self.lstm(skip.permute(2, 0, 1))
        y = self.linear(y).permute(1, 2, 0)
        return self.decode(y + skip)


class EnCodec(nn.Module):
    """Decoder with causal deconvolutions: what stands out at the end is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.pre = nn.Conv1d(8, 8, 7)
        self.lstm = nn.LSTM(8, 8, 1)
        self.up = nn.ModuleList([nn.ConvTranspose1d(8, 4, 8, 4), nn.ConvTranspose1d(4, 4, 4, 2)])
        self.post = nn.Conv1d(4, 1, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pre(functional.pad(x, (6, 0), mode="reflect"))
        y = x.permute(2, 0, 1)
        x = (self.lstm(y)[0] + y).permute(1, 2, 0)
        for up, cut in zip(self.up, (4, 2), strict=True):
            x = up(functional.elu(x))[..., :-cut]
        return self.post(functional.pad(functional.elu(x), (6, 0), mode="reflect"))


def mask_head() -> nn.Module:
    return nn.Sequential(
        block2(8, 8, norm=False), block2(8, 8, norm=False), nn.ConvTranspose2d(8, 8, 2, 2),
        nn.ReLU(), nn.Conv2d(8, 4, 1), nn.Sigmoid(),
    )  # fmt: skip


class DeepLab(nn.Module):
    """Dilated convolutions side by side, pooled context, a depthwise deconvolution."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [nn.Conv2d(6, 4, 3, padding=d, dilation=d) for d in (1, 2, 3)]
        )
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(6, 4, 1), nn.Hardswish())
        self.mix = nn.Sequential(nn.Conv2d(16, 4, 1), nn.BatchNorm2d(4), nn.ReLU6())
        self.depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.up = nn.ConvTranspose2d(4, 4, 4, 2, 1, groups=4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        context = functional.interpolate(
            self.pooled(x), size=x.shape[2:], mode="bilinear", align_corners=False
        )
        y = self.mix(torch.cat([*(functional.gelu(b(x)) for b in self.branches), context], 1))
        return self.up(self.depthwise(y))


class LinkNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.GroupNorm(2, 4), nn.SiLU())
        self.b = nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.GroupNorm(4, 8), nn.SiLU())
        self.up_b = nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1)
        self.up_a = nn.ConvTranspose2d(4, 2, 3, 2, 1, output_padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        return self.up_a(functional.relu(self.up_b(self.b(a)) + a))


class ERFNet(nn.Module):
    """Factorised convolutions, and a downsampler of a convolution beside a pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.pool = nn.Conv2d(3, 5, 3, 2, 1), nn.MaxPool2d(2, 2)
        self.norm = nn.BatchNorm2d(8, eps=1e-3)
        self.factors = nn.Sequential(
            nn.Conv2d(8, 8, (3, 1), padding=(1, 0)), nn.ReLU(),
            nn.Conv2d(8, 8, (1, 3), padding=(0, 2), dilation=(1, 2)),
        )  # fmt: skip
        self.up = nn.ConvTranspose2d(8, 4, 2, 2, bias=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm(torch.cat([self.conv(x), self.pool(x)], 1)))
        return self.up(functional.relu(y + self.factors(y)))


class LapSRN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.LeakyReLU(0.2))
        self.up = nn.ConvTranspose2d(6, 6, 4, 2, 1)
        self.image = nn.ConvTranspose2d(1, 1, 4, 2, 1, bias=False)
        self.residual = nn.Conv2d(6, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        feature = functional.leaky_relu(self.up(self.features(x)), 0.2)
        half = self.image(x) + self.residual(feature)
        feature = functional.leaky_relu(self.up(feature), 0.2)
        return half, self.image(half) + self.residual(feature)


class DBPN(nn.Module):
    """Up- and down-projection: deconvolution, convolution back, and the error up again."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, 6, 3, padding=1)
        self.up1, self.up2 = nn.ConvTranspose2d(6, 6, 6, 2, 2), nn.ConvTranspose2d(6, 6, 6, 2, 2)
        self.down = nn.Conv2d(6, 6, 6, 2, 2)
        self.act, self.tail = nn.PReLU(), nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.head(x)
        high = self.act(self.up1(y))
        high = high + self.act(self.up2(self.act(self.down(high)) - y))
        return self.tail(high)


class StyleDecoder(nn.Module):
    """Modulated deconvolution: styles scale the channels, PixelShuffle doubles at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.style = nn.Linear(5, 6)
        self.up = nn.ConvTranspose2d(6, 8, 3, 2, 1, 1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        style = self.style(z)[:, :, None, None]
        y = self.up(x * style)
        y = y * torch.rsqrt(torch.mean(y * y, dim=1, keepdim=True) + 1e-8)
        return self.shuffle(functional.softplus(y))


class Snake(nn.Module):
    """BigVGAN's periodic activation before a deconvolution, and a mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(1, 6, 1) + 0.5)
        self.up = nn.ConvTranspose1d(6, 4, 8, 4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + torch.sin(self.alpha * x).pow(2) / self.alpha
        y = self.up(x)
        return y - y.mean(-1, keepdim=True)


IMAGE, SIZE = (0, 2, 3), (2, 3)
NETWORKS = (
    Network("dcgan", dcgan, ((1, 10, 1, 1),), ((0,),)),
    Network("unet-2d", lambda: UNet(2), ((1, 2, 16, 24),), (IMAGE,)),
    Network("unet-3d", lambda: UNet(3), ((1, 2, 8, 8, 12),), ((2, 3, 4),)),
    Network("fcn-8s", lambda: FCN(True), ((1, 3, 64, 96),), (SIZE,)),
    Network("fcn-32s", lambda: FCN(False), ((1, 3, 64, 96),), (SIZE,)),
    Network("simple-baseline", simple_baseline, ((1, 3, 32, 24),), (IMAGE,)),
    Network("fsrcnn", fsrcnn, ((1, 1, 12, 10),), (IMAGE,)),
    Network("pix2pix", Pix2Pix, ((1, 3, 32, 32),), (SIZE,)),
    Network("cyclegan", CycleGAN, ((1, 3, 16, 16),), (SIZE,)),
    Network("conv-vae", ConvVAE, ((2, 1, 14, 14), (2, 6)), ((0,), (0,))),
    Network("hifi-gan", HiFiGAN, ((1, 8, 9),), ((2,),)),
    Network("wavegan", WaveGAN, ((2, 10),), ((0,),)),
    Network("demucs", Demucs, ((1, 2, 48),), ((2,),)),
    Network("encodec", EnCodec, ((1, 8, 12),), ((2,),)),
    Network("mask-rcnn-head", mask_head, ((3, 8, 7, 7),), ((0,),)),
    Network("deeplab", DeepLab, ((1, 6, 9, 11),), (SIZE,)),
    Network("linknet", LinkNet, ((1, 3, 16, 16),), (SIZE,)),
    Network("erfnet", ERFNet, ((1, 3, 16, 12),), (IMAGE,)),
    Network("lapsrn", LapSRN, ((1, 1, 9, 8),), (IMAGE,)),
    Network("dbpn", DBPN, ((1, 3, 8, 10),), (IMAGE,)),
    Network("style-decoder", StyleDecoder, ((1, 6, 4, 4), (1, 5)), (SIZE, ())),
    Network("snake", Snake, ((1, 6, 10),), ((2,),)),
)
