"""Torch tensors are accepted as inputs by DLPack: `Model.run` computes the same as torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.ir.dtypes import parse_element_type

from .runtimes import bfloat16, torch

pytestmark = pytest.mark.peers

TYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i32": torch.int32,
    "u8": torch.uint8,
    "boolean": torch.bool,
}


def model_of(folder: Path, element_type: str) -> deconv_ir.Model:
    """Build a model that swaps the two axes of its input."""
    ir = IR()
    precision = parse_element_type(element_type).ir_name
    x = ir.parameter("x", "?,?", element_type)
    order = ir.const(np.array([1, 0], np.int64))
    ir.result(ir.layer("Transpose", [x, order], names="y", precision=precision))
    return deconv_ir.load(ir.save(folder))


def bits(tensor: torch.Tensor) -> np.ndarray:
    """Return the elements as NumPy has them, or the bits of bf16, which NumPy lacks."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(bfloat16)
    return tensor.numpy()


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "offset"])
@pytest.mark.parametrize("element_type", TYPES)
def test_tensors_of_every_type_and_layout(element_type: str, layout: str, tmp_path: Path) -> None:
    whole = torch.randn(8, 10, generator=torch.manual_seed(3)) * 4
    whole = (whole.abs() if element_type == "u8" else whole).to(TYPES[element_type])
    x = {
        "contiguous": whole,
        "transposed": whole.T,
        "strided": whole[::3, 1::2],
        "offset": whole[2:, 3:],
    }[layout]
    before = bits(x.clone().contiguous())
    (found,) = model_of(tmp_path, element_type).run({"x": x}).values()
    assert found.dtype == before.dtype
    np.testing.assert_array_equal(found, before.T)
    np.testing.assert_array_equal(bits(x.contiguous()), before)


def test_a_bf16_deconvolution_of_tensors(tmp_path: Path) -> None:
    """Products accumulate in f32 and are rounded once: torch computes them in f64 here."""
    ir = IR()
    x = ir.parameter("x", "1,3,?,?", "bf16")
    generator = torch.manual_seed(5)
    filters = torch.randn(3, 4, 3, 3, generator=generator).to(torch.bfloat16)
    w = ir.const(bits(filters))
    ir.result(ir.layer("ConvolutionBackpropData", [x, w], {"strides": "2,2"}, precision="BF16"))
    data = torch.randn(1, 3, 5, 6, generator=generator).to(torch.bfloat16)
    (found,) = deconv_ir.load(ir.save(tmp_path)).run(data).values()
    expected = torch.nn.functional.conv_transpose2d(data.double(), filters.double(), stride=2)
    assert found.dtype == bfloat16
    # Half a unit in the last of 8 places, plus the error of f32 where sums cancel.
    np.testing.assert_allclose(found.astype(np.float64), expected.numpy(), rtol=2**-8, atol=1e-5)


def test_a_tensor_of_another_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(deconv_ir.InputError, match="takes f32, the array is bf16"):
        model_of(tmp_path, "f32").run(torch.zeros(2, 2, dtype=torch.bfloat16))


def test_a_tensor_that_requires_a_gradient(tmp_path: Path) -> None:
    """Torch refuses to export it, which is an input error and not a crash."""
    with pytest.raises(deconv_ir.InputError):
        model_of(tmp_path, "f32").run(torch.zeros(2, 2, requires_grad=True))
