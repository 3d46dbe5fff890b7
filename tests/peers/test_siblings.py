"""Networks of blocks that repeat, as OpenVINO converts them: no layer is unlike its siblings.

Blocks differ where networks of these kinds do: strides, dilations, shifts, directions, the first
and the last one.  A boolean that is flipped in the middle is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

from .runtimes import ov

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Written(nn.Module):  # type: ignore[misc]
    """Layers and a function that applies them."""

    def __init__(self, layers: Any, forward: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.apply_to = forward

    def forward(self, x: Any) -> Any:
        return self.apply_to(self.layers, x)


def encoder(*, norm_first: bool) -> Any:
    torch.backends.mha.set_fastpath_enabled(False)  # one operation, which is not converted
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first)
    return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)


def shifted_windows(layers: Any, x: Any) -> Any:
    """Every second block sees its windows shifted."""
    for number, layer in enumerate(layers):
        y = torch.roll(x, -2, 1) if number % 2 else x
        y = layer(y.reshape(-1, 4, 16)).reshape(1, -1, 16)
        x = torch.roll(y, 2, 1) if number % 2 else y
    return x


def causal(layers: Any, x: Any) -> Any:
    for query, key, value in zip(layers[::3], layers[1::3], layers[2::3], strict=True):
        q, k, v = (f(x).view(1, -1, 2, 8).transpose(1, 2) for f in (query, key, value))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(1, 2).reshape(1, -1, 16)
    return x @ layers[0].weight.T


def mobile_net() -> Any:
    """Blocks without a branch, one of which has strides 2."""
    blocks = []
    for strides in (1, 1, 1, 2, 1, 1):
        blocks += [nn.Conv2d(8, 8, 3, strides, 1, groups=8), nn.ReLU6(), nn.Conv2d(8, 8, 1)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))


def dense(layers: Any, x: Any) -> Any:
    for layer in layers:
        x = torch.cat([x, layer(x)], 1)
    return x


def decoder(layers: Any, x: Any) -> Any:
    """The last of the upsamplings is bilinear."""
    for number, layer in enumerate(layers):
        x = torch.relu(layer(x))
        if number < len(layers) - 1:
            x = functional.interpolate(x, scale_factor=2)
    return functional.interpolate(x, scale_factor=2, mode="bilinear")


def dilated(layers: Any, x: Any) -> Any:
    for layer in layers:
        a, b = layer(x).chunk(2, 1)
        x = x + a.tanh() * b.sigmoid()
    return x


def directions(layers: Any, x: Any) -> Any:
    """One of the GRUs runs from the end."""
    for number, layer in enumerate(layers):
        x = layer(x.flip(1))[0].flip(1) if number == 2 else layer(x)[0]
    return x


def one_order(layers: Any, x: Any) -> Any:
    """The last product has its weights in the other order."""
    for layer in layers:
        x = torch.relu(layer(x))
    return x @ layers[0].weight


def pooled(layers: Any, x: Any) -> Any:
    """Squeeze and excite; one block averages without the padding."""
    for number, layer in enumerate(layers):
        x = x * torch.sigmoid(layer(x.mean((2, 3), keepdim=True)))
        x = functional.avg_pool2d(x, 3, 1, 1, count_include_pad=number < 5)
    return x


Build = Callable[[], Any]
SEQUENCE, IMAGE = (1, 16, 16), (1, 8, 16, 16)
NETWORKS: dict[str, tuple[Build, tuple[int, ...]]] = {
    "encoder, norm first": (partial(encoder, norm_first=True), SEQUENCE),
    "encoder, norm last": (partial(encoder, norm_first=False), SEQUENCE),
    "shifted windows": (
        lambda: Written(encoder(norm_first=True).layers, shifted_windows),
        SEQUENCE,
    ),
    "causal attention": (
        lambda: Written([nn.Linear(16, 16) for _ in range(18)], causal),
        SEQUENCE,
    ),
    "strides of one block": (mobile_net, IMAGE),
    "dense blocks": (
        lambda: Written([nn.Conv2d(8 + 4 * i, 4, 3, 1, 1) for i in range(6)], dense),
        IMAGE,
    ),
    "bilinear last": (
        lambda: Written([nn.Conv2d(8, 8, 3, 1, 1) for _ in range(5)], decoder),
        (1, 8, 2, 2),
    ),
    "dilations": (
        lambda: Written([nn.Conv1d(16, 32, 3, 1, d, d) for d in (1, 1, 1, 1, 2)], dilated),
        SEQUENCE,
    ),
    "directions": (
        lambda: Written([nn.GRU(16, 16, batch_first=True) for _ in range(6)], directions),
        SEQUENCE,
    ),
    "orders of weights": (
        lambda: Written([nn.Linear(16, 16) for _ in range(6)], one_order),
        SEQUENCE,
    ),
    "padding of the last pool": (
        lambda: Written([nn.Conv2d(8, 8, 1) for _ in range(6)], pooled),
        IMAGE,
    ),
}


def findings(text: str, path: Path, *codes: str) -> list[int | None]:
    """Return the lines of the findings of some rules."""
    options = choose(severity="info" if codes else "warning", select=codes)
    result = check_bytes(text.encode(), "m.xml", options, path.with_suffix(".bin"))
    return [finding.line for finding in result.findings]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", NETWORKS)
def test_intact_networks_have_no_odd_sibling(name: str, dynamic: bool, tmp_path: Path) -> None:
    build, shape = NETWORKS[name]
    torch.manual_seed(0)
    model = ov.convert_model(build().eval(), example_input=torch.randn(shape))
    if not dynamic:
        model.reshape(list(shape))
    ov.save_model(model, tmp_path / "m.xml")
    assert findings((tmp_path / "m.xml").read_text(), tmp_path / "m.xml", "IR809") == []


def test_flipped_booleans(tmp_path: Path) -> None:
    """Each one of a middle block that fits has a finding in its line."""
    path = tmp_path / "m.xml"
    torch.manual_seed(0)
    model = ov.convert_model(encoder(norm_first=True).eval(), example_input=torch.randn(SEQUENCE))
    model.reshape(list(SEQUENCE))
    ov.save_model(model, path)
    text = path.read_text()
    names = "transpose_a|transpose_b|normalize_variance"
    flips = list(re.finditer(rf'(?:{names})="(true|false)"', text))
    fits = 0
    for match in flips[len(flips) // 3 : len(flips) // 2]:
        value = "false" if match[1] == "true" else "true"
        flipped = text[: match.start(1)] + value + text[match.end(1) :]
        if not findings(flipped, path):
            fits += 1
            line = text.count("\n", 0, match.start()) + 1
            assert findings(flipped, path, "IR809") == [line]
    assert fits >= 5
