"""Old networks with dense results: segmentation, super-resolution, generators, poses, depth."""

from __future__ import annotations

import torch

from .old_builder import Builder, Value

F = torch.nn.functional


def fcn(b: Builder, act: str) -> list[Value]:
    """A segmentation network that crops its upsampled scores."""
    x = b.input(1, 3, 32, 40)
    one = b.pool(b.act(b.conv(x, 8), act))
    two = b.pool(b.act(b.scale(b.conv(one, 12)), act))
    score = b.up(b.conv(two, 5, 1), 5, 4, 2, 0, bias=False)
    score = b.add(b.crop(score, one, 1), b.conv(one, 5, 1))
    up = b.up(score, 5, 16, 8, 0, group=5, bias=False) if act == "elu" else b.up(score, 5)
    return [b.softmax(up)]


def unet(b: Builder, act: str) -> list[Value]:
    """An encoder and a decoder with skips."""
    x = b.input(1, 1, 32, 32)
    skips = []
    for channels in (6, 12):
        x = b.act(b.norm(b.conv(x, channels, bias=False)), act)
        skips.append(x)
        x = b.pool(x)
    x = b.act(b.conv(x, 16, dilation=2), act)
    for skip in reversed(skips):
        x = b.concat(b.up(x, skip.torch.shape[1], 2, 2, 0), skip)
        x = b.act(b.conv(x, skip.torch.shape[1]), act)
    return [b.act(b.conv(x, 2, 1), "sigmoid")]


def super_resolution(b: Builder, act: str) -> list[Value]:
    """Residual blocks, then a deconvolution or a pixel shuffle, beside an upsampled input."""
    given = b.input(1, 3, 12, 14)
    x = b.act(b.conv(given, 10, 5), act)
    for _ in range(2):
        x = b.add(x, b.conv(b.act(b.conv(x, 10), act), 10))
    x = b.up(x, 3) if act in ("relu", "leaky") else b.pixel_shuffle(b.conv(x, 12), 2)
    return [b.add(x, b.interp(given, 2) if act == "relu" else b.nearest(given, 2))]


def generator(b: Builder, act: str) -> list[Value]:
    """A DCGAN generator."""
    x = b.act(b.scale(b.linear(b.input(1, 16), 12 * 16)), act)
    x = b.reshape(x, 1, 12, 4, 4)
    for channels in (8, 6):
        x = b.act(b.scale(b.up(x, channels, bias=False)), act)
    return [b.act(b.up(x, 3, 5 if act == "leaky" else 4), "tanh")]


def human_pose(b: Builder, act: str) -> list[Value]:
    """Two stages of heat maps and part affinity fields, with depthwise convolutions."""
    x = b.act(b.conv(b.input(1, 3, 32, 24), 8, stride=2), act)
    x = b.act(b.conv(b.act(b.conv(x, 8, group=8), act), 12, 1), act)
    first = [b.conv(b.act(b.conv(x, 8), act), n, 1) for n in (5, 8)]
    x = b.concat(*first, x)
    return [b.conv(b.act(b.conv(x, 8, 7), act), n, 1) for n in (5, 8)]


def segnet(b: Builder, act: str) -> list[Value]:
    """An encoder and a decoder without skips, and the number of the best class."""
    x = b.input(1, 3, 16, 24)
    for channels in (6, 8):
        x = b.pool(b.act(b.norm(b.conv(x, channels)), act))
    for channels in (6, 4):
        x = b.act(b.conv(b.up(x, channels, 2, 2, 0), channels), act)
    best = x.torch.argmax(1, True).float()
    data = {"axis": 1, "top_k": 1, "out_max_val": 0}
    return [b.layer("ArgMax", [x], best, attributes=data)]


def linknet(b: Builder, act: str) -> list[Value]:
    """Blocks with sums, and decoders of a narrow deconvolution whose results are added."""
    x = b.act(b.scale(b.conv(b.input(1, 3, 24, 16), 8, stride=2, bias=False)), act)
    levels = [x]
    for channels in (8, 12):
        y = b.act(b.conv(x, channels, stride=2), act)
        x = b.act(b.add(b.conv(y, channels), b.conv(x, channels, 1, stride=2)), act)
        levels.append(x)
    for level in reversed(levels[:-1]):
        narrow = b.act(b.conv(x, 4, 1), act)
        up = b.act(b.up(narrow, 4), act)
        x = b.add(b.conv(up, level.torch.shape[1], 1), level)
    return [b.act(b.up(x, 2), "sigmoid")]


def fsrcnn(b: Builder, act: str) -> list[Value]:
    """A super-resolution network that ends with one deconvolution of kernel 9 and stride 3."""
    x = b.act(b.conv(b.input(1, 1, 10, 12), 8, 5), "prelu")
    x = b.act(b.conv(x, 4, 1), "prelu")
    for _ in range(2):
        x = b.act(b.conv(x, 4), "prelu")
    return [b.up(b.act(b.conv(x, 8, 1), act), 1, 9, 3, 3)]


def style(b: Builder, act: str) -> list[Value]:
    """A style network: reflected borders, normalized instances, and results of 0 to 255."""
    x = b.input(1, 3, 12, 16)
    data = {"pads_begin": "0,0,2,2", "pads_end": "0,0,2,2", "pad_mode": "reflect"}
    x = b.layer("Pad", [x], F.pad(x.torch, (2, 2, 2, 2), "reflect"), attributes=data)

    def instance(value: Value) -> Value:
        result = F.instance_norm(value.torch, eps=1e-5)
        known = {"across_channels": 0, "normalize_variance": 1, "eps": 1e-5}
        return b.layer("MVN", [value], result, attributes=known)

    x = b.act(b.scale(instance(b.conv(x, 8, 5, pad=0))), act)
    down = b.act(instance(b.conv(x, 12, stride=2)), act)
    down = b.add(down, instance(b.conv(b.act(b.conv(down, 12), act), 12)))
    x = b.act(instance(b.conv(b.nearest(down, 2), 8)), act)
    return [b.power(b.act(b.conv(x, 3, 5), "tanh"), 127.5, 127.5)]


def autoencoder(b: Builder, act: str) -> list[Value]:
    """Eight numbers for an image, and the image made from them."""
    x = b.act(b.conv(b.input(2, 1, 16, 16), 4, stride=2), act)
    code = b.linear(b.act(b.conv(x, 6, stride=2), act), 8)
    x = b.reshape(b.act(b.linear(code, 6 * 16), act), 2, 6, 4, 4)
    x = b.up(b.act(b.up(x, 4), act), 1)
    return [b.act(x, "sigmoid")]


def pix2pix(b: Builder, act: str) -> list[Value]:
    """A U-shaped generator of strided convolutions and deconvolutions."""
    x = b.input(1, 3, 16, 16)
    downs = []
    for channels in (6, 8, 10):
        x = b.act(b.scale(b.conv(x, channels, 4, 2, 1, bias=False)), "leaky")
        downs.append(x)
    for down in reversed(downs[:-1]):
        x = b.concat(b.act(b.scale(b.up(x, down.torch.shape[1])), act), down)
    return [b.act(b.up(x, 3), "tanh")]


def deeplab(b: Builder, act: str) -> list[Value]:
    """Parallel dilated convolutions and the mean of the image, scaled up bilinearly."""
    x = b.act(b.conv(b.input(1, 3, 32, 32), 8, stride=2), act)
    x = b.act(b.conv(x, 8, stride=2), act)
    parts = [b.act(b.conv(x, 4, 3 if d > 1 else 1, dilation=d), act) for d in (1, 2, 3)]
    parts.append(b.interp(b.act(b.conv(b.mean(x), 4, 1), act), 8))
    return [b.softmax(b.interp(b.conv(b.concat(*parts), 5, 1), 4))]


def pspnet(b: Builder, act: str) -> list[Value]:
    """A pyramid of averages of several sizes beside the features."""
    x = b.act(b.conv(b.input(1, 3, 24, 24), 8, stride=2), act)
    levels = [b.interp(b.conv(b.pool(x, size, size, "avg"), 2, 1), size) for size in (2, 3, 4, 6)]
    return [b.act(b.conv(b.concat(x, *levels), 3), "sigmoid")]


def denoiser(b: Builder, act: str) -> list[Value]:
    """The noise of an image is subtracted: a sum with the factors 1 and -1."""
    given = b.input(1, 1, 14, 12)
    x = b.act(b.conv(given, 8), act)
    for _ in range(3):
        x = b.act(b.norm(b.conv(x, 8, bias=False)), act)
    noise = b.conv(x, 1)
    data = {"operation": "sum", "coeff": "1,-1"}
    return [b.layer("Eltwise", [given, noise], given.torch - noise.torch, attributes=data)]


def flow(b: Builder, act: str) -> list[Value]:
    """Two images, and a flow at two scales: the coarse one, deconvolved, helps the fine one."""
    both = b.concat(b.input(1, 3, 16, 24, name="first"), b.input(1, 3, 16, 24, name="second"))
    fine = b.act(b.conv(both, 8, 5, 2), act)
    x = b.act(b.conv(fine, 12, stride=2), act)
    coarse = b.conv(x, 2)
    x = b.concat(fine, b.act(b.up(x, 6), act), b.up(coarse, 2, bias=False))
    return [b.power(b.conv(x, 2), 20.0, 0.0)]


def gated(b: Builder, act: str) -> list[Value]:
    """Halves of the channels: tanh of one times the logistic function of the other."""
    x = b.conv(b.input(1, 2, 9, 11), 8)
    for _ in range(2):
        left, right = b.slices(b.conv(x, 16), 8, 8)
        x = b.add(x, b.mul(b.act(left, "tanh"), b.act(right, "sigmoid")))
    return [b.act(b.conv(x, 3, 1), act)]


def pyramid(b: Builder, act: str) -> list[Value]:
    """Features of three scales, merged from the coarsest down; a head on each."""
    x = b.act(b.conv(b.input(1, 3, 32, 32), 6, stride=2), act)
    levels = []
    for channels in (8, 10, 12):
        x = b.act(b.conv(x, channels, stride=2), act)
        levels.append(x)
    merged = b.conv(levels[-1], 6, 1)
    heads = [b.conv(merged, 4)]
    for level in reversed(levels[:-1]):
        merged = b.add(b.nearest(merged, 2), b.conv(level, 6, 1))
        heads.append(b.conv(merged, 4))
    return heads


def vnet(b: Builder, act: str) -> list[Value]:
    """A volume: strided convolution of three axes, deconvolution, and a sum."""
    x = b.input(1, 2, 6, 8, 8)
    zeros, two = {"pads_begin": "0,0,0", "pads_end": "0,0,0"}, {"kernel": "2,2,2"}
    w, bias = b.weights(6, 2, 2, 2, 2), b.weights(6)
    result = F.conv3d(x.torch, b.stored(w), b.stored(bias), 2)
    data = {**two, **zeros, "strides": "2,2,2", "output": 6}
    down = b.layer(
        "Convolution", [x], result, attributes=data, blobs={"weights": w, "biases": bias}
    )
    down = b.act(down, "leaky" if act == "prelu" else act)
    w = b.weights(6, 2, 2, 2, 2)
    result = F.conv_transpose3d(down.torch, b.stored(w), stride=2)
    data = {**two, **zeros, "strides": "2,2,2", "output": 2}
    up = b.layer("Deconvolution", [down], result, attributes=data, blobs={"weights": w})
    return [b.softmax(b.add(up, x))]


def depth(b: Builder, act: str) -> list[Value]:
    """Up-projection: two branches of an upsampled tensor, and a crop to an odd size."""
    x = b.act(b.conv(b.input(1, 3, 18, 22), 8, stride=2), act)
    like = b.conv(x, 4, 1)
    up = b.nearest(b.act(b.conv(x, 10, stride=2), act), 2)
    left = b.conv(b.act(b.conv(up, 4, 5), act), 4)
    x = b.act(b.add(left, b.conv(up, 4, 5)), act)
    return [b.power(b.add(b.crop(x, like, 1), like), 0.5, 2.0, 2)]


DECODERS = (
    *(fcn, unet, super_resolution, generator, human_pose, segnet, linknet, fsrcnn, style),
    *(autoencoder, pix2pix, deeplab, pspnet, denoiser, flow, gated, pyramid, vnet, depth),
)
LATE = (style, autoencoder, deeplab, pspnet, gated, pyramid, vnet, depth, super_resolution)
"""Models with layers that version 2 does not have, or spells in no known way."""
