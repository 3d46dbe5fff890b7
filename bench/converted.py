"""Small networks of many kinds, made by torch with random weights and converted.

They are those below, those of tests/peers/architectures.py (--full: at the size used in practice),
and those of published.py.

python bench/converted.py out/converted
python bench/verdicts.py out/converted
python bench/converted.py out/deep deep && python bench/verdicts.py out/deep --time

Each network is converted by OpenVINO (NAME.xml) and, if torch can, to ONNX and from there
(NAME-onnx.onnx, NAME-onnx.xml).  Its inputs are NAME-0.npy, NAME-1.npy ..., and torch's outputs
NAME.torch-0.npy ...
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - torch's own name

sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.published import PUBLISHED
from tests.peers.architectures import NETWORKS as ARCHITECTURES
from tests.peers.architectures import Network as Architecture

Network = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Function(nn.Module):
    """Layers, and a function that joins them."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Call the function with the module and the inputs."""
        return self.function(self, *inputs)


def image(channels: int = 3, size: int = 32) -> torch.Tensor:
    """Return a random image."""
    return torch.randn(1, channels, size, size)


def tokens() -> torch.Tensor:
    """Return random token embeddings [1, 12, 32]."""
    return torch.randn(1, 12, 32)


def conv(i: int, o: int, k: int = 3, s: int = 1, **more: Any) -> nn.Conv2d:
    """Return a convolution that keeps the extent, up to the stride."""
    return nn.Conv2d(i, o, k, s, k // 2, **more)


def block(i: int, o: int, act: nn.Module | None = None, **more: Any) -> nn.Sequential:
    """Return convolution, normalisation with statistics, activation."""
    norm = nn.BatchNorm2d(o)
    norm.running_mean.normal_(0, 0.1)  # type: ignore[union-attr, operator]
    norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr, operator]
    return nn.Sequential(conv(i, o, **more), norm, act or nn.ReLU())


def encoder(**options: Any) -> Network:
    """Return a transformer's encoder of two layers."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (tokens(),)


def attention_is_causal() -> Network:
    """Return scaled dot-product attention with a mask, as in decoders."""

    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).reshape(1, 12, 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(1, 12, 32))

    return Function(run, qkv=nn.Linear(32, 96), out=nn.Linear(32, 32)), (tokens(),)


def rotary() -> Network:
    """Return RMS norm, rotary embedding and a gated product, as in language models."""
    angles = torch.arange(12)[:, None] / 10000 ** (torch.arange(0, 32, 2) / 32)

    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        even, odd = y[..., ::2], y[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        y = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    layers = {"gate": nn.Linear(32, 64), "up": nn.Linear(32, 64), "down": nn.Linear(64, 32)}
    return Function(run, **layers), (tokens(),)


def recurrent(module: type[nn.RNNBase], **options: Any) -> Network:
    """Return two recurrent layers."""
    return Function(lambda self, x: self.rnn(x)[0], rnn=module(32, 24, 2, **options)), (tokens(),)


def gan() -> Network:
    """Return a generator of transposed convolutions."""
    sizes = [(32, 32, 4, 1, 0), (32, 16, 4, 2, 1), (16, 8, 4, 2, 1), (8, 3, 4, 2, 1)]
    layers = [nn.ConvTranspose2d(i, o, k, s, p) for i, o, k, s, p in sizes]
    acts = [nn.LeakyReLU(0.2), nn.ELU(), nn.SELU(), nn.Tanh()]
    pairs = [one for pair in zip(layers, acts, strict=True) for one in pair]
    return nn.Sequential(*pairs), (torch.randn(1, 32, 1, 1),)


def separable(a: int, b: int, stride: int = 1) -> nn.Sequential:
    """Return a depthwise convolution, then one of 1 x 1, each with normalisation and ReLU."""
    return nn.Sequential(
        nn.Conv2d(a, a, 3, stride, 1, groups=a), nn.BatchNorm2d(a), nn.ReLU(),
        nn.Conv2d(a, b, 1), nn.BatchNorm2d(b), nn.ReLU(),
    )  # fmt: skip


def depthwise_decoder() -> Network:
    """Return an encoder of separable convolutions and a decoder of depthwise deconvolutions."""
    up = (
        nn.Sequential(
            nn.ConvTranspose2d(c, c, 4, 2, 1, groups=c), nn.BatchNorm2d(c), nn.ReLU(),
            nn.Conv2d(c, c // 2, 1), nn.ReLU(),
        )
        for c in (256, 128, 64, 32)
    )  # fmt: skip
    return sequence(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(),
        separable(32, 64, 2), separable(64, 128, 2), separable(128, 256, 2), separable(256, 256),
        *up, nn.Conv2d(16, 3, 3, padding=1),
        x=image(size=256),
    )  # fmt: skip


def detector() -> Network:
    """Return two heads on a pyramid: boxes of anchors, scores, the best ones."""

    def run(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        small = self.a(x)
        large = F.interpolate(self.b(small), scale_factor=2.0, mode="nearest") + small
        scores = self.score(large).flatten(2).sigmoid()
        boxes = self.box(large).flatten(2)
        best, at = scores.amax(1).topk(10)
        centre = torch.gather(boxes, 2, at[:, None].expand(-1, 4, -1))
        return best, torch.cat((centre[:, :2] - centre[:, 2:].exp() / 2, centre[:, 2:].exp()), 1)

    heads = {"score": conv(16, 5), "box": conv(16, 4)}
    return Function(run, a=block(3, 16), b=block(16, 16, s=2), **heads), (image(),)


def vocoder() -> Network:
    """Return transposed convolutions on one axis with residual dilated ones."""
    up = nn.Sequential(nn.ConvTranspose1d(20, 16, 8, 4, 2), nn.LeakyReLU(0.1))
    wide = nn.Conv1d(16, 16, 3, padding=3, dilation=3)

    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        y = y + self.wide(F.leaky_relu(y, 0.1))
        return torch.tanh(self.last(y + torch.sin(y) ** 2))

    return Function(run, up=up, wide=wide, last=nn.Conv1d(16, 1, 7, padding=3)), (
        torch.randn(1, 20, 40),
    )


def fake_quantized(symmetric: bool) -> Network:
    """Return convolutions whose data and weights are quantised, as int8 models have them."""
    low, high, zero = (-128, 127, 0) if symmetric else (0, 255, 77)

    def quantize(x: torch.Tensor, scale: float) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(x, scale, zero, low, high)

    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = F.conv2d(quantize(x, 0.03), self.a.weight, self.a.bias, padding=1)
        y = quantize(torch.relu(y), 0.02)
        return self.up(y)

    up = nn.ConvTranspose2d(8, 4, 4, 2, 1)
    return Function(run, a=conv(3, 8), up=up), (image(),)


def narrow(dtype: torch.dtype) -> Network:
    """Return layers whose weights are stored in 16 bits, and computed in f32."""
    first, second = torch.randn(16, 3, 3, 3).to(dtype), torch.randn(16, 8, 2, 2).to(dtype)

    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = F.hardswish(F.conv2d(x, self.first.float(), padding=1) / 5)
        return F.conv_transpose2d(y, self.second.float(), stride=2)

    module = Function(run)
    module.register_buffer("first", first)
    module.register_buffer("second", second)
    return module, (image(),)


class Looping(nn.Module):
    """A loop over rows with an If in it, which torch scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last state."""
        state = torch.zeros_like(x[:, 0])
        for k in range(x.shape[1]):
            state = torch.tanh(self.step(state) + x[:, k])
            if bool(state.sum() > 0):
                state = state * 0.5
        return state


def looping() -> Network:
    """Return a scripted module, whose loop becomes a Loop with an If."""
    return torch.jit.script(Looping()), (tokens(),)


def sequence(*layers: nn.Module, x: torch.Tensor | None = None) -> Network:
    """Return layers one after the other, on an image."""
    return nn.Sequential(*layers), (image() if x is None else x,)


def style() -> Network:
    """Return a convolution whose weights depend on an input."""

    def run(self: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        scale = self.affine(w)[0, None, :, None, None] + 1
        weight = self.conv.weight * scale
        weight = weight * torch.rsqrt(weight.square().sum((1, 2, 3), keepdim=True) + 1e-8)
        y = F.conv2d(x, weight, padding=1)
        return F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)

    return Function(run, conv=conv(8, 12), affine=nn.Linear(10, 8)), (
        image(8, 16),
        torch.randn(1, 10),
    )


def warp() -> Network:
    """Return an image sampled at positions of a second input."""

    def run(_: Any, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return F.grid_sample(x, torch.tanh(grid), align_corners=False)

    return Function(run), (image(), torch.randn(1, 16, 16, 2))


def spectrum() -> Network:
    """Return magnitudes of frames, and their logarithm, as in front ends for speech."""
    window = torch.hann_window(32)
    angles = 2 * torch.pi * torch.outer(torch.arange(17), torch.arange(32)) / 32

    def run(_: Any, x: torch.Tensor) -> torch.Tensor:
        waves = [(wave * window)[:, None] for wave in (angles.cos(), angles.sin())]
        real, imaginary = (F.conv1d(x[:, None], wave, stride=16) for wave in waves)
        return torch.log(real**2 + imaginary**2 + 1e-5)

    return Function(run), (torch.randn(1, 400),)


def unet() -> Network:
    """Return a U-Net of two levels with group normalisation."""

    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        y = self.up(self.c(F.avg_pool2d(b, 2)))
        y = self.up2(torch.cat((y, b), 1))
        return self.last(torch.cat((y, a), 1)).softmax(1)

    def level(i: int, o: int) -> nn.Sequential:
        return nn.Sequential(conv(i, o), nn.GroupNorm(4, o), nn.SiLU())

    ups = {"up": nn.ConvTranspose2d(32, 16, 2, 2), "up2": nn.ConvTranspose2d(32, 8, 3, 2, 1, 1)}
    levels = {"a": level(3, 8), "b": level(8, 16), "c": level(16, 32)}
    return Function(run, **levels, **ups, last=conv(16, 6)), (image(),)


NETWORKS: dict[str, Callable[[], Network]] = {
    "encoder": encoder,
    "encoder-gelu": lambda: encoder(activation="gelu", norm_first=True),
    "causal-attention": attention_is_causal,
    "rotary": rotary,
    "lstm": lambda: recurrent(nn.LSTM, batch_first=True),
    "lstm-both-ways": lambda: recurrent(nn.LSTM, batch_first=True, bidirectional=True),
    "gru": lambda: recurrent(nn.GRU, batch_first=True),
    "rnn-relu": lambda: recurrent(nn.RNN, batch_first=True, nonlinearity="relu"),
    "looping": looping,
    "gan": gan,
    "detector": detector,
    "vocoder": vocoder,
    "spectrum": spectrum,
    "style": style,
    "warp": warp,
    "unet-groups": unet,
    "int8-symmetric": lambda: fake_quantized(True),
    "int8-zero-point": lambda: fake_quantized(False),
    "f16-weights": lambda: narrow(torch.float16),
    "bf16-weights": lambda: narrow(torch.bfloat16),
    "mobile": lambda: sequence(
        block(3, 16, nn.Hardswish(), s=2), block(16, 16, nn.ReLU6(), groups=16),
        conv(16, 24, 1), nn.Hardsigmoid(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10),
        nn.LogSoftmax(1),
    ),
    "shuffle": lambda: sequence(
        conv(3, 16, groups=1), nn.PixelUnshuffle(2), nn.ChannelShuffle(4), conv(64, 12),
        nn.PixelShuffle(2), nn.Softplus(), nn.Mish(),
    ),
    "dilated": lambda: sequence(
        block(3, 8), nn.Conv2d(8, 8, 3, padding=4, dilation=4), nn.InstanceNorm2d(8, affine=True),
        nn.PReLU(8), nn.ReflectionPad2d(3), conv(8, 8, 7), nn.ReplicationPad2d(2),
        nn.AvgPool2d(3, 2),
    ),
    "volume": lambda: sequence(
        nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2),
        nn.ConvTranspose3d(4, 2, 3, 2, 1, output_padding=1), x=torch.randn(1, 1, 8, 12, 12),
    ),
    "depthwise-decoder": depthwise_decoder,
    "cubic": lambda: sequence(
        conv(3, 6), nn.Upsample(scale_factor=1.7, mode="bicubic"), nn.Sigmoid(), conv(6, 3, 5),
        nn.Upsample(size=(40, 44), mode="bilinear", align_corners=True),
    ),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 8), nn.GLU()),
        (torch.randint(0, 50, (2, 9)),),
    ),
}  # fmt: skip


def made_of(network: Architecture, *, full: bool) -> Network:
    """Build a network at its small or its full size."""
    return network.module(full=full), tuple(network.inputs(full=full))


NETWORKS |= {n.name: functools.partial(made_of, n, full=False) for n in ARCHITECTURES}
NETWORKS |= {n.name: functools.partial(made_of, n, full=True) for n in PUBLISHED}


def write(name: str, folder: Path, *, full: bool = False) -> None:
    """Convert a network, and write its arrays."""
    import openvino

    torch.manual_seed(sum(map(ord, name)))
    small = {n.name: n for n in ARCHITECTURES}
    module, inputs = made_of(small[name], full=True) if full and name in small else NETWORKS[name]()
    module.eval()
    with torch.no_grad():
        found = module(*inputs)
        outputs = found if isinstance(found, tuple) else (found,)
        model = openvino.convert_model(
            module, example_input=inputs if len(inputs) > 1 else inputs[0]
        )
    shapes = [list(x.shape) for x in inputs]
    model.reshape(dict(zip((p.get_any_name() for p in model.inputs), shapes, strict=True)))
    openvino.save_model(model, folder / f"{name}.xml", compress_to_fp16=False)
    arrays = [x.numpy() for x in inputs]
    results = [y.numpy() for y in outputs]
    save(name, folder, arrays, results)
    exported = folder / f"{name}-onnx.onnx"
    try:
        torch.onnx.export(module, inputs, exported, dynamo=False, opset_version=17)
        model = openvino.convert_model(exported)
    except Exception as error:  # not all operations have a form in ONNX
        print(f"{name}: not exported to ONNX: {str(error).splitlines()[0][:100]}")
        exported.unlink(missing_ok=True)
        return
    openvino.save_model(model, exported.with_suffix(".xml"), compress_to_fp16=False)
    save(exported.stem, folder, arrays, results)


def write_deep(folder: Path, layers: int = 500) -> None:
    """Write blocks of convolution, bias, activation and clamp or addition, of 32 x 56 x 56."""
    import openvino
    import openvino.opset13 as ops

    rng = np.random.default_rng(0)
    x = before = at = ops.parameter([1, 32, 56, 56], np.float32, name="x")
    for k in range(layers // 4):
        weights = rng.standard_normal((32, 32, 3, 3), np.float32) * np.float32(0.06)
        ones = [1, 1]
        at = ops.convolution(at, ops.constant(weights), ones, ones, ones, ones, name=f"conv{k}")
        bias = rng.standard_normal((1, 32, 1, 1), np.float32) / 10
        at = ops.relu(ops.add(at, ops.constant(bias), name=f"bias{k}"), name=f"relu{k}")
        at = ops.add(at, before, name=f"sum{k}") if k % 4 == 3 else ops.clamp(at, -3, 3)
        before = at
    openvino.save_model(openvino.Model([at], [x]), folder / "deep.xml", compress_to_fp16=False)
    save("deep", folder, [rng.standard_normal((1, 32, 56, 56), np.float32)], [])


def save(name: str, folder: Path, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
    """Write the arrays of a network."""
    for ending, arrays in (("", inputs), (".torch", outputs)):
        for k, array in enumerate(arrays):
            np.save(folder / f"{name}{ending}-{k}.npy", array)


def main() -> None:
    """Write all networks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*NETWORKS, "deep", []])
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or NETWORKS:
        if name == "deep":
            write_deep(options.folder)
        else:
            write(name, options.folder, full=options.full)


if __name__ == "__main__":
    main()
