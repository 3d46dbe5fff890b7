"""Published networks with deconvolutions, at their published widths, in torch with seeded weights.

Layers that do nothing in inference (dropout) are left out.
Batch normalisation is kept where the publications have it; converters fold it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from tests.peers.architectures import Network

__all__ = ["PUBLISHED"]


def block(a: int, b: int, k: int = 3, stride: int = 1, act: Callable[[], nn.Module] = nn.ReLU,
          groups: int = 1) -> nn.Sequential:  # fmt: skip
    """Build a convolution, batch normalisation and an activation."""
    return nn.Sequential(
        nn.Conv2d(a, b, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(b), act()
    )


def up_block(a: int, b: int, k: int, stride: int, pad: int, extra: int = 0) -> nn.Sequential:
    """Build a deconvolution, batch normalisation and ReLU."""
    return nn.Sequential(
        nn.ConvTranspose2d(a, b, k, stride, pad, extra, bias=False), nn.BatchNorm2d(b), nn.ReLU()
    )


class Residual(nn.Module):
    """A branch added to its input, or to a projection of it, then ReLU."""

    def __init__(self, branch: nn.Module, skip: nn.Module | None = None) -> None:
        super().__init__()
        self.branch, self.skip = branch, skip or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.branch(x) + self.skip(x))


def bottleneck(a: int, b: int, stride: int) -> nn.Module:
    branch = nn.Sequential(
        block(a, b, 1), block(b, b, 3, stride), block(b, 4 * b, 1, act=nn.Identity)
    )
    skip = block(a, 4 * b, 1, stride, nn.Identity) if stride > 1 or a != 4 * b else None
    return Residual(branch, skip)


def basic(a: int, b: int, stride: int) -> nn.Module:
    branch = nn.Sequential(block(a, b, 3, stride), block(b, b, act=nn.Identity))
    return Residual(branch, block(a, b, 1, stride, nn.Identity) if a != b else None)


def pose(_: int) -> nn.Module:
    """SimpleBaseline on ResNet-50 (Xiao et al., 2018)."""
    layers: list[nn.Module] = [block(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    for _ in range(3):
        layers.append(up_block(channels, 256, 4, 2, 1))
        channels = 256
    return nn.Sequential(*layers, nn.Conv2d(256, 17, 1))


class LinkNet(nn.Module):
    """LinkNet on ResNet-18 (Chaurasia, Culurciello, 2017)."""

    def __init__(self, _: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(block(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        widths = (64, 64, 128, 256, 512)
        self.down = nn.ModuleList(
            [nn.Sequential(basic(a, b, 1 + (a != b)), basic(b, b, 1))
             for a, b in pairwise(widths)]
        )  # fmt: skip
        self.up = nn.ModuleList(
            [nn.Sequential(block(b, b // 4, 1), up_block(b // 4, b // 4, 3, s, 1, s - 1),
                           block(b // 4, a, 1))
             for a, b, s in ((256, 512, 2), (128, 256, 2), (64, 128, 2), (64, 64, 1))]
        )  # fmt: skip
        self.head = nn.Sequential(
            up_block(64, 32, 3, 2, 1, 1), block(32, 32), nn.ConvTranspose2d(32, 21, 2, 2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [self.stem(x)]
        for stage in self.down:
            found.append(stage(found[-1]))
        y = found[-1]
        for stage, skip in zip(self.up, (found[3], found[2], found[1], found[0]), strict=True):
            y = stage(y) + skip
        return self.head(y)


class UNet(nn.Module):
    """U-Net of 64 channels (Ronneberger et al., 2015), padded; 3-D U-Net (Çiçek et al., 2016)."""

    def __init__(self, dims: int, width: int, depth: int, classes: int, _: int) -> None:
        super().__init__()
        conv, norm, up, pool = (
            (nn.Conv2d, nn.BatchNorm2d, nn.ConvTranspose2d, nn.MaxPool2d)
            if dims == 2
            else (nn.Conv3d, nn.BatchNorm3d, nn.ConvTranspose3d, nn.MaxPool3d)
        )
        self.pool = pool(2)

        def double(a: int, m: int, b: int) -> nn.Sequential:
            return nn.Sequential(
                conv(a, m, 3, padding=1), norm(m), nn.ReLU(),
                conv(m, b, 3, padding=1), norm(b), nn.ReLU(),
            )  # fmt: skip

        # In three dimensions the first of two convolutions has half of the channels.
        half = 1 if dims == 2 else 2
        ws = [width << i for i in range(depth)]
        ins = [3 if dims == 2 else 1, *ws]
        self.down = nn.ModuleList([double(a, b // half, b) for a, b in zip(ins, ws, strict=False)])
        pairs = list(zip(ws[::-1], ws[-2::-1], strict=False))
        self.up = nn.ModuleList([up(a, b if dims == 2 else a, 2, 2) for a, b in pairs])
        self.merge = nn.ModuleList([double((b if dims == 2 else a) + b, b, b) for a, b in pairs])
        self.head = conv(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [self.down[0](x)]
        for stage in list(self.down)[1:]:
            found.append(stage(self.pool(found[-1])))
        y = found.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            y = merge(torch.cat([found.pop(), up(y)], 1))
        return self.head(y)


class Pix2Pix(nn.Module):
    """The 256 x 256 generator (Isola et al., 2017)."""

    def __init__(self, _: int) -> None:
        super().__init__()
        widths = (3, 64, 128, 256, 512, 512, 512, 512, 512)
        self.down = nn.ModuleList()
        for i, (a, b) in enumerate(pairwise(widths)):
            norm = nn.Identity() if i in (0, 7) else nn.BatchNorm2d(b)
            self.down.append(nn.Sequential(nn.Conv2d(a, b, 4, 2, 1), norm))
        ups = ((512, 512), (1024, 512), (1024, 512), (1024, 512), (1024, 256), (512, 128),
               (256, 64))  # fmt: skip
        self.up = nn.ModuleList(
            [nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b)) for a, b in ups]
        )
        self.last = nn.ConvTranspose2d(128, 3, 4, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [self.down[0](x)]
        for stage in list(self.down)[1:]:
            found.append(stage(functional.leaky_relu(found[-1], 0.2)))
        y = found.pop()
        for stage in self.up:
            y = torch.cat([stage(functional.relu(y)), found.pop()], 1)
        return torch.tanh(self.last(functional.relu(y)))


class Mirrored(nn.Module):
    """x + F(x) with reflected borders and instance normalisation."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c), nn.ReLU(),
            nn.ReflectionPad2d(1), nn.Conv2d(c, c, 3), nn.InstanceNorm2d(c),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.branch(x)


def cyclegan(_: int) -> nn.Module:
    """The generator with nine blocks (Zhu et al., 2017)."""

    def up(a: int, b: int) -> list[nn.Module]:
        return [nn.ConvTranspose2d(a, b, 3, 2, 1, 1), nn.InstanceNorm2d(b), nn.ReLU()]

    def down(a: int, b: int) -> list[nn.Module]:
        return [nn.Conv2d(a, b, 3, 2, 1), nn.InstanceNorm2d(b), nn.ReLU()]

    return nn.Sequential(
        nn.ReflectionPad2d(3), nn.Conv2d(3, 64, 7), nn.InstanceNorm2d(64), nn.ReLU(),
        *down(64, 128), *down(128, 256), *(Mirrored(256) for _ in range(9)),
        *up(256, 128), *up(128, 64), nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh(),
    )  # fmt: skip


class Dilated(nn.Module):
    """The residual block of HiFi-GAN: growing dilation, each convolution followed by another."""

    def __init__(self, c: int, k: int) -> None:
        super().__init__()
        self.pairs = nn.ModuleList(
            [nn.Sequential(
                nn.LeakyReLU(0.1), nn.Conv1d(c, c, k, 1, d * (k - 1) // 2, d),
                nn.LeakyReLU(0.1), nn.Conv1d(c, c, k, 1, (k - 1) // 2),
            ) for d in (1, 3, 5)]
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for pair in self.pairs:
            x = x + pair(x)
        return x


class HiFiGAN(nn.Module):
    """HiFi-GAN (Kong et al., 2020): v1 of 512 channels, v2 of 128."""

    def __init__(self, channels: int, _: int) -> None:
        super().__init__()
        c = channels
        self.pre = nn.Conv1d(80, c, 7, padding=3)
        self.up, self.blocks = nn.ModuleList(), nn.ModuleList()
        for k, s in ((16, 8), (16, 8), (4, 2), (4, 2)):
            self.up.append(nn.ConvTranspose1d(c, c // 2, k, s, (k - s) // 2))
            c //= 2
            self.blocks.append(nn.ModuleList([Dilated(c, r) for r in (3, 7, 11)]))
        self.post = nn.Conv1d(c, 1, 7, padding=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pre(x)
        for up, blocks in zip(self.up, self.blocks, strict=True):
            x = up(functional.leaky_relu(x, 0.1))
            total = blocks[0](x)
            for stage in list(blocks)[1:]:
                total = total + stage(x)
            x = total / 3
        return torch.tanh(self.post(functional.leaky_relu(x)))


class Factorised(nn.Module):
    """ERFNet's non-bottleneck block of one-dimensional convolutions."""

    def __init__(self, c: int, d: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(c, c, (3, 1), padding=(1, 0)), nn.ReLU(),
            nn.Conv2d(c, c, (1, 3), padding=(0, 1)), nn.BatchNorm2d(c), nn.ReLU(),
            nn.Conv2d(c, c, (3, 1), padding=(d, 0), dilation=(d, 1)), nn.ReLU(),
            nn.Conv2d(c, c, (1, 3), padding=(0, d), dilation=(1, d)), nn.BatchNorm2d(c),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(x + self.branch(x))


class Downsampler(nn.Module):
    """A strided convolution beside a pooling."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.conv, self.pool = nn.Conv2d(a, b - a, 3, 2, 1), nn.MaxPool2d(2, 2)
        self.norm = nn.BatchNorm2d(b)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.norm(torch.cat([self.conv(x), self.pool(x)], 1)))


def erfnet(_: int) -> nn.Module:
    """ERFNet (Romera et al., 2018)."""
    return nn.Sequential(
        Downsampler(3, 16), Downsampler(16, 64), *(Factorised(64, 1) for _ in range(5)),
        Downsampler(64, 128), *(Factorised(128, d) for d in (2, 4, 8, 16) * 2),
        up_block(128, 64, 3, 2, 1, 1), Factorised(64, 1), Factorised(64, 1),
        up_block(64, 16, 3, 2, 1, 1), Factorised(16, 1), Factorised(16, 1),
        nn.ConvTranspose2d(16, 20, 2, 2),
    )  # fmt: skip


class Squeeze(nn.Module):
    """Squeeze and excite."""

    def __init__(self, c: int) -> None:
        super().__init__()
        inner = max(8, (c // 4 + 4) // 8 * 8)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, inner, 1), nn.ReLU(), nn.Conv2d(inner, c, 1),
            nn.Hardsigmoid(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


class Inverted(nn.Module):
    """MobileNetV3's inverted residual."""

    def __init__(self, a: int, m: int, b: int, k: int, stride: int, se: bool, hs: bool) -> None:
        super().__init__()
        act = nn.Hardswish if hs else nn.ReLU
        self.skips = stride == 1 and a == b
        self.branch = nn.Sequential(
            block(a, m, 1, act=act), block(m, m, k, stride, act, groups=m),
            Squeeze(m) if se else nn.Identity(), block(m, b, 1, act=nn.Identity),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.branch(x) if self.skips else self.branch(x)


def mobilenet(_: int) -> nn.Module:
    """MobileNetV3-Large's encoder (Howard et al., 2019), then deconvolutions."""
    rows = (
        (16, 16, 16, 3, 1, 0, 0), (16, 64, 24, 3, 2, 0, 0), (24, 72, 24, 3, 1, 0, 0),
        (24, 72, 40, 5, 2, 1, 0), (40, 120, 40, 5, 1, 1, 0), (40, 120, 40, 5, 1, 1, 0),
        (40, 240, 80, 3, 2, 0, 1), (80, 200, 80, 3, 1, 0, 1), (80, 184, 80, 3, 1, 0, 1),
        (80, 184, 80, 3, 1, 0, 1), (80, 480, 112, 3, 1, 1, 1), (112, 672, 112, 3, 1, 1, 1),
        (112, 672, 160, 5, 2, 1, 1), (160, 960, 160, 5, 1, 1, 1), (160, 960, 160, 5, 1, 1, 1),
    )  # fmt: skip
    return nn.Sequential(
        block(3, 16, 3, 2, nn.Hardswish),
        *(Inverted(*row[:5], bool(row[5]), bool(row[6])) for row in rows),
        up_block(160, 128, 4, 2, 1), up_block(128, 64, 4, 2, 1), up_block(64, 32, 4, 2, 1),
        nn.Conv2d(32, 21, 1),
    )  # fmt: skip


class Codec(nn.Module):
    """A decoder like EnCodec's (Défossez et al., 2022), with two LSTMs of 512 units."""

    def __init__(self, _: int) -> None:
        super().__init__()
        self.pre, self.lstm = nn.Conv1d(128, 512, 7), nn.LSTM(512, 512, 2)
        self.up, self.branches = nn.ModuleList(), nn.ModuleList()
        c = 512
        for s in (8, 5, 4, 2):
            self.up.append(nn.ConvTranspose1d(c, c // 2, 2 * s, s))
            c //= 2
            self.branches.append(nn.ModuleList([nn.Conv1d(c, c // 2, 3), nn.Conv1d(c // 2, c, 1)]))
        self.post = nn.Conv1d(c, 1, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pre(functional.pad(x, (6, 0), mode="reflect"))
        y = x.permute(2, 0, 1)
        x = (self.lstm(y)[0] + y).permute(1, 2, 0)
        for up, (a, b), s in zip(self.up, self.branches, (8, 5, 4, 2), strict=True):
            x = up(functional.elu(x))[..., :-s]
            inner = a(functional.pad(functional.elu(x), (2, 0), mode="reflect"))
            x = x + b(functional.elu(inner))
        return self.post(functional.pad(functional.elu(x), (6, 0), mode="reflect"))


def fsrcnn(_: int) -> nn.Module:
    """FSRCNN(56, 12, 4) for a factor of 3 (Dong et al., 2016)."""
    inner = (layer for _ in range(4) for layer in (nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(12)))
    return nn.Sequential(
        nn.Conv2d(1, 56, 5, padding=2), nn.PReLU(56), nn.Conv2d(56, 12, 1), nn.PReLU(12), *inner,
        nn.Conv2d(12, 56, 1), nn.PReLU(56), nn.ConvTranspose2d(56, 1, 9, 3, 4, output_padding=2),
    )  # fmt: skip


class NormalisedBlock(nn.Module):
    """GroupNorm, SiLU and a convolution, twice, added to the input."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.GroupNorm(32, a, 1e-6), nn.SiLU(), nn.Conv2d(a, b, 3, padding=1),
            nn.GroupNorm(32, b, 1e-6), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1),
        )  # fmt: skip
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.skip(x) + self.branch(x)


def vae(_: int) -> nn.Module:
    """A decoder like that of latent diffusion (Rombach et al., 2022), with deconvolutions."""
    layers: list[nn.Module] = [nn.Conv2d(4, 256, 3, padding=1)]
    a = 256
    for b in (256, 128, 64):
        layers += [NormalisedBlock(a, b), NormalisedBlock(b, b), nn.ConvTranspose2d(b, b, 4, 2, 1)]
        a = b
    return nn.Sequential(
        *layers, nn.GroupNorm(32, a, 1e-6), nn.SiLU(), nn.Conv2d(a, 3, 3, padding=1)
    )


class TransformerBlock(nn.Module):
    """Self-attention and two linear layers, each after a LayerNorm and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.wide = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        parts = self.qkv(self.norm(x)).reshape(n, length, 3, self.heads, width // self.heads)
        y = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4).unbind(0))
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.wide(x)


class ViTPose(nn.Module):
    """ViTPose-S with its classic decoder of two deconvolutions (Xu et al., 2022)."""

    def __init__(self, _: int) -> None:
        super().__init__()
        width, heads = 384, 12
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.position = nn.Parameter(0.02 * torch.randn(1, 192, width))
        self.blocks = nn.Sequential(*[TransformerBlock(width, heads) for _ in range(12)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Sequential(
            up_block(width, 256, 4, 2, 1), up_block(256, 256, 4, 2, 1), nn.Conv2d(256, 17, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.patches(x).flatten(2).transpose(1, 2) + self.position)
        return self.head(self.norm(x).transpose(1, 2).reshape(1, -1, 16, 12))


class Modulated(nn.Module):
    """A convolution whose filter is scaled by a style, or a deconvolution and a blur."""

    def __init__(
        self, a: int, b: int, k: int, *, up: bool = False, demodulates: bool = True
    ) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(b, a, k, k) / (a * k * k) ** 0.5)
        self.style, self.bias = nn.Linear(512, a), nn.Parameter(torch.zeros(1, b, 1, 1))
        self.up, self.demodulates = up, demodulates
        line = torch.tensor([1.0, 3.0, 3.0, 1.0])
        self.register_buffer("blur", (torch.outer(line, line) / 16).expand(b, 1, 4, 4).clone())

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        w = self.weights * (self.style(style) + 1).reshape(1, -1, 1, 1)
        if self.demodulates:
            w = w * torch.rsqrt((w * w).sum((1, 2, 3), keepdim=True) + 1e-8)
        if not self.up:
            return functional.conv2d(x, w, padding=w.shape[-1] // 2) + self.bias
        y = functional.conv_transpose2d(x, w.transpose(0, 1), stride=2)
        return functional.conv2d(y, self.blur, padding=1, groups=len(w)) + self.bias


class StyleGAN2(nn.Module):
    """The synthesis network of StyleGAN2 up to 64x64, of 256 channels (Karras et al., 2020)."""

    def __init__(self, _: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, 256, 4, 4))
        pairs = pairwise((256, 256, 256, 256, 128))
        self.first = Modulated(256, 256, 3)
        self.stages = nn.ModuleList(
            [nn.ModuleList([Modulated(a, b, 3, up=True), Modulated(b, b, 3),
                            Modulated(b, 3, 1, demodulates=False)]) for a, b in pairs]
        )  # fmt: skip

    def forward(self, style: torch.Tensor) -> torch.Tensor:
        x = functional.leaky_relu(self.first(self.start, style), 0.2)
        image = torch.zeros(1, 3, 4, 4)
        for up, plain, colours in self.stages:
            x = functional.leaky_relu(up(x, style), 0.2)
            x = functional.leaky_relu(plain(x, style), 0.2)
            image = functional.interpolate(image, scale_factor=2.0, mode="bilinear")
            image = image + colours(x, style)
        return image


def _network(name: str, build: Callable[[int], nn.Module], *shape: int) -> Network:
    return Network(name, build, (shape,), ((),), 1, (shape,))


PUBLISHED = (
    _network("resnet50-pose", pose, 1, 3, 256, 192),
    _network("linknet-resnet18", LinkNet, 1, 3, 256, 256),
    _network("unet-64", partial(UNet, 2, 64, 5, 2), 1, 3, 256, 256),
    _network("unet-3d-64", partial(UNet, 3, 64, 4, 3), 1, 1, 32, 32, 32),
    _network("pix2pix-256", Pix2Pix, 1, 3, 256, 256),
    _network("cyclegan-9", cyclegan, 1, 3, 128, 128),
    _network("hifi-gan-v1", partial(HiFiGAN, 512), 1, 80, 32),
    _network("hifi-gan-v2", partial(HiFiGAN, 128), 1, 80, 64),
    _network("erfnet-20", erfnet, 1, 3, 256, 512),
    _network("mobilenet-v3", mobilenet, 1, 3, 256, 256),
    _network("codec-lstm", Codec, 1, 128, 75),
    _network("fsrcnn-x3", fsrcnn, 1, 1, 120, 160),
    _network("vae-decoder", vae, 1, 4, 32, 32),
    _network("vitpose-s", ViTPose, 1, 3, 256, 192),
    _network("stylegan2-64", StyleGAN2, 1, 512),
)
"""Their shapes are those of the publications; there is no smaller size."""
