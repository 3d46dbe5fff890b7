"""accuracy='direct' turns Winograd off: the bits are those of direct sums."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support import IR, invoke

import deconv_ir
from deconv_ir.kernels import pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module

needs_compiled = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
STRIDES = (2, 2)
GENERATOR = np.random.default_rng(5)
DATA = GENERATOR.standard_normal((1, 64, 96, 96), np.float32)
FILTER = GENERATOR.standard_normal((64, 32, 4, 4), np.float32)
EXTENTS = (194, 194)  # 2*(96 - 1) + 4


def sums_of(algorithm: str) -> NDArray[np.float32]:
    kernel = pack_deconvolution(FILTER, strides=STRIDES, dilations=(1, 1), algorithm=algorithm)
    return np.asarray(kernel.run(DATA, (0, 0), EXTENTS))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # A machine on which the cost model chooses Winograd for this layer, on any test machine.
    monkeypatch.setenv("DECONV_IR_MACHINE", "zen3")
    monkeypatch.chdir(tmp_path)
    ir = IR()
    x = ir.parameter("x", ",".join(map(str, DATA.shape)))
    attributes = {
        "strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0",
        "output_padding": "0,0", "auto_pad": "explicit",
    }  # fmt: skip
    ir.result(ir.layer("ConvolutionBackpropData", [x, ir.const(FILTER)], attributes, name="y"))
    ir.save(tmp_path)
    np.save("x.npy", DATA)
    return tmp_path


@needs_compiled
def test_direct_sums_differ_from_winograd_for_this_model(here: Path) -> None:
    """The following tests rely on this difference."""
    assert sums_of("direct").tobytes() != sums_of("compiled").tobytes()


@needs_compiled
def test_load(here: Path) -> None:
    direct = deconv_ir.load("model.xml", accuracy="direct")
    for model in (direct, pickle.loads(pickle.dumps(direct)), copy.deepcopy(direct)):
        (found,) = model.run(DATA).values()
        assert found.tobytes() == sums_of("direct").tobytes()
    (found,) = direct.layer("y").run(DATA).values()
    assert found.tobytes() == sums_of("direct").tobytes()
    (fast,) = deconv_ir.load("model.xml").run(DATA).values()
    assert fast.tobytes() != sums_of("direct").tobytes()


@needs_compiled
def test_conv_transpose(here: Path) -> None:
    found = deconv_ir.conv_transpose(DATA, FILTER, strides=2, accuracy="direct")
    assert found.tobytes() == sums_of("direct").tobytes()


@needs_compiled
def test_deconv_run(here: Path) -> None:
    for accuracy in ("direct", "fast"):
        arguments = ["model.xml", "--input", "x.npy", "--output", "y.npy", "--force"]
        done = invoke(*arguments, "--accuracy", accuracy)
        assert done.exit_code == 0, done.output
        is_direct = np.load("y.npy").tobytes() == sums_of("direct").tobytes()
        assert is_direct == (accuracy == "direct")


@pytest.mark.parametrize("algorithm", ["numpy", "im2col", "gemm_col2im"])
def test_without_the_compiled_kernel_it_changes_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECONV_IR_KERNEL", algorithm)
    fast = deconv_ir.conv_transpose(DATA, FILTER, strides=2)
    direct = deconv_ir.conv_transpose(DATA, FILTER, strides=2, accuracy="direct")
    assert direct.tobytes() == fast.tobytes()


@pytest.mark.parametrize("wrong", ["exact", "", "DIRECT", None, 1])
def test_unknown_names_are_refused(wrong: str, here: Path) -> None:
    with pytest.raises(
        deconv_ir.InputError, match="accuracy must be 'fast' or 'direct' or 'float64'"
    ):
        deconv_ir.load("model.xml", accuracy=wrong)
    with pytest.raises(
        deconv_ir.InputError, match="accuracy must be 'fast' or 'direct' or 'float64'"
    ):
        deconv_ir.conv_transpose(DATA, FILTER, accuracy=wrong)
