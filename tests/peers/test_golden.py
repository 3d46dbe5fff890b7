"""The golden arrays of samples/spec/ have the same bits as results of OpenVINO and torch.

Golden sums are integers, exact in every order of summation, so no tolerance is needed.
docs/spec-examples.md lists the examples that a peer does not support; the list is held here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from .faults import meet
from .runtimes import ov, run, torch

pytestmark = pytest.mark.peers

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples" / "spec"
GUIDE = ROOT / "docs" / "spec-examples.md"


class Golden(NamedTuple):
    """One example with arrays."""

    operation: str
    folder: Path
    entry: dict[str, Any]

    def array(self, file: str) -> np.ndarray:
        """Read one of the arrays."""
        array = np.load(SAMPLES / self.folder.parent.name / file)
        return array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array

    def input(self, index: int) -> np.ndarray:
        """Read an input."""
        return self.array(self.entry["inputs"][index]["file"])

    def output(self, profile: str) -> dict[str, Any]:
        """Return the entry of an output, by default the one that holds for every profile."""
        outputs = self.entry["outputs"]
        return next((o for o in outputs if o["profile"] == profile), outputs[0])

    def listed(self, name: str, count: int, neutral: int) -> list[int]:
        """Return the numbers of an attribute, one for each spatial axis."""
        text = self.entry["attributes"].get(name)
        return [int(n) for n in text.split(",")][:count] if text else [neutral] * count

    @property
    def element_type(self) -> str:
        """Element type of data and output."""
        return self.entry["inputs"][0]["element_type"]


def every() -> Iterator[Golden]:
    for manifest in sorted(SAMPLES.glob("*/manifest.json")):
        stated = json.loads(manifest.read_text())
        for entry in stated["examples"]:
            if entry["arrays"]:
                yield Golden(stated["operation"], manifest.parent / entry["name"], entry)


GOLDEN = [pytest.param(g, id=f"{g.operation}-{g.entry['name']}") for g in every()]
OPENVINO = [p for p in GOLDEN if p.values[0].operation.endswith("ConvolutionBackpropData")]
TORCH = {"f32", "f64", "f16", "bf16", "i64"}
"""Element types for which torch has a deconvolution on the CPU."""


def test_golden_cases_are_found() -> None:
    assert len(GOLDEN) > 100
    assert len(OPENVINO) > 60


@pytest.mark.parametrize("golden", OPENVINO)
def test_openvino_gives_the_golden_output(golden: Golden) -> None:
    """The runtime's profile is used if the two differ; otherwise there is only one."""
    data = golden.input(0)
    if golden.operation.startswith("Group") and golden.input(1).shape[0] == 1:
        with pytest.raises(RuntimeError):
            run(golden.folder / "model.xml", {"data": data})
        meet("group-of-one", "refused")
        return
    (result,) = run(golden.folder / "model.xml", {"data": data})
    expected = golden.array(golden.output("openvino")["file"])
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected)
    if len(golden.entry["outputs"]) > 1:
        assert not np.array_equal(result, golden.array(golden.output("spec")["file"]))


@pytest.mark.parametrize("golden", [p for p in GOLDEN if p not in OPENVINO])
def test_openvino_does_not_know_the_other_operations(golden: Golden) -> None:
    with pytest.raises(RuntimeError):
        ov.Core().read_model(golden.folder / "model.xml")


def canonical(golden: Golden) -> tuple[Any, Any, int]:
    """Transpose data and filter to torch's layout; return the number of groups, too."""
    data, filter_ = golden.input(0), golden.input(1)
    attributes = golden.entry["attributes"]
    groups = int(attributes.get("groups", 1))
    if golden.operation == "GroupConvolutionBackpropData":
        groups = filter_.shape[0]
        filter_ = filter_.reshape(-1, *filter_.shape[2:])
    elif not golden.operation.endswith("BackpropData"):
        if attributes.get("data_format", "NXC") == "NXC":
            data = np.moveaxis(data, -1, 1)
        formats = attributes.get("filter_format", attributes.get("weights_format", "XOI"))
        if formats in ("XOI", "XIO"):
            filter_ = np.moveaxis(filter_, (-1, -2), (0, 1))
    return tensor(data), tensor(filter_), groups


def tensor(array: np.ndarray) -> Any:
    """Make a torch tensor of an array; torch and NumPy do not share a bf16 type."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(array))


def from_torch(found: Any) -> np.ndarray:
    """Make an array of a torch tensor."""
    if found.dtype == torch.bfloat16:
        return found.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return found.numpy()


def window(full: np.ndarray, begins: list[int], extents: tuple[int, ...]) -> np.ndarray:
    """``output[y] = full[y + pad_begin]`` where that index exists, else 0 (semantics)."""
    result = np.zeros((*full.shape[:2], *extents), full.dtype)
    for y in np.ndindex(*extents):
        at = tuple(i + b for i, b in zip(y, begins, strict=True))
        if all(0 <= i < n for i, n in zip(at, full.shape[2:], strict=True)):
            result[(..., *y)] = full[(..., *at)]
    return result


@pytest.mark.parametrize(
    ("golden", "profile"),
    [
        pytest.param(p.values[0], o["profile"], id=f"{p.id}-{o['profile']}")
        for p in GOLDEN
        if p.values[0].element_type in TORCH
        for o in p.values[0].entry["outputs"]
    ],
)
def test_torch_gives_the_golden_output(golden: Golden, profile: str) -> None:
    """Torch computes without pads; the manifest's pads_begin and shape select the output."""
    data, filter_, groups = canonical(golden)
    output = golden.output(profile)
    spatial = data.ndim - 2
    convolve = getattr(torch.nn.functional, f"conv_transpose{spatial}d")
    full = convolve(
        data,
        filter_,
        stride=golden.listed("strides", spatial, 1),
        dilation=golden.listed("dilations", spatial, 1),
        groups=groups,
    )
    expected = golden.array(output["file"])
    channels_last = not golden.operation.endswith("BackpropData") and (
        golden.entry["attributes"].get("data_format", "NXC") == "NXC"
    )
    extents = expected.shape[1:-1] if channels_last else expected.shape[2:]
    result = window(from_torch(full), output["pads_begin"], extents)
    if golden.operation == "ConvTranspose" and len(golden.entry["inputs"]) > 2:
        result = result + golden.input(2).reshape(-1, *(1,) * spatial)
    if channels_last:
        result = np.moveaxis(result, 1, -1)
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected)


def torch_takes(golden: Golden) -> bool:
    """Return whether torch's own padding and output_padding can express the example."""
    output = golden.entry["outputs"][0]
    data, filter_, _ = canonical(golden)
    spatial = data.ndim - 2
    strides = golden.listed("strides", spatial, 1)
    dilations = golden.listed("dilations", spatial, 1)
    expected = output["shape"]
    ncx = golden.operation.endswith("BackpropData") or (
        golden.entry["attributes"].get("data_format", "NXC") == "NCX"
    )
    extents = expected[2:] if ncx else expected[1:-1]
    for x, k, s, d, begin, y in zip(
        data.shape[2:],
        filter_.shape[2:],
        strides,
        dilations,
        output["pads_begin"],
        extents,
        strict=True,
    ):
        natural = s * (x - 1) + (k - 1) * d + 1
        # One pad serves both sides; output_padding adds the rest at the end.
        if begin < 0 or not 0 <= y - (natural - 2 * begin) < max(s, d):
            return False
    return True


@pytest.mark.parametrize(
    "golden", [p for p in GOLDEN if p.values[0].element_type in TORCH and torch_takes(p.values[0])]
)
def test_torch_gives_the_golden_output_by_its_own_padding(golden: Golden) -> None:
    data, filter_, groups = canonical(golden)
    output = golden.entry["outputs"][0]
    spatial = data.ndim - 2
    expected = golden.array(output["file"])
    channels_last = not golden.operation.endswith("BackpropData") and (
        golden.entry["attributes"].get("data_format", "NXC") == "NXC"
    )
    extents = expected.shape[1:-1] if channels_last else expected.shape[2:]
    strides = golden.listed("strides", spatial, 1)
    dilations = golden.listed("dilations", spatial, 1)
    natural = [
        s * (x - 1) + (k - 1) * d + 1
        for x, k, s, d in zip(data.shape[2:], filter_.shape[2:], strides, dilations, strict=True)
    ]
    pads = output["pads_begin"]
    bias = None
    if golden.operation == "ConvTranspose" and len(golden.entry["inputs"]) > 2:
        bias = tensor(golden.input(2))
    result = getattr(torch.nn.functional, f"conv_transpose{spatial}d")(
        data,
        filter_,
        bias,
        stride=strides,
        padding=pads,
        output_padding=[y - n + 2 * p for y, n, p in zip(extents, natural, pads, strict=True)],
        groups=groups,
        dilation=dilations,
    )
    found = from_torch(result)
    assert np.array_equal(np.moveaxis(found, 1, -1) if channels_last else found, expected)


@pytest.mark.parametrize("golden", [p for p in GOLDEN if p.values[0].element_type not in TORCH])
def test_torch_has_no_deconvolution_of_other_integers_on_the_cpu(golden: Golden) -> None:
    data, filter_, groups = canonical(golden)
    convolve = getattr(torch.nn.functional, f"conv_transpose{data.ndim - 2}d")
    with pytest.raises(RuntimeError):
        convolve(data, filter_, groups=groups)


def support() -> Counter[str]:
    """Count the examples for the table in the guide."""
    counts: Counter[str] = Counter()
    for golden in every():
        counts["examples"] += 1
        openvino = golden.operation.endswith("ConvolutionBackpropData")
        counts["not in OpenVINO"] += not openvino
        group_of_one = golden.operation.startswith("Group") and golden.input(1).shape[0] == 1
        counts["refused by OpenVINO"] += group_of_one
        counts["profiles differ"] += len(golden.entry["outputs"]) > 1
        if golden.element_type not in TORCH:
            counts["no deconvolution of the type in torch"] += 1
        else:
            counts["pads that torch cannot state"] += not torch_takes(golden)
    return counts


def test_the_table_in_the_guide() -> None:
    text = GUIDE.read_text()
    stated = re.findall(r"^\| ([^|]+?) \| .* \| (\d+) of (\d+) \|$", text, re.MULTILINE)
    counts = support()
    total = counts.pop("examples")
    assert {name: (int(n), int(of)) for name, n, of in stated} == {
        name: (n, total) for name, n in counts.items()
    }
