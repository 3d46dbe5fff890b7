"""Shapes that exceed the memory of any machine, and numbers at the limits of 64 bits."""

from __future__ import annotations

import itertools
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import IR, deconvolution_ir

import deconv_ir
from deconv_ir.ir.shapes import size_error
from hostile.children import MIB, bounded, environment, one_error_line, run


@pytest.mark.parametrize(
    ("shape", "bits", "fits"),
    [
        ((2**61 - 1,), 32, True),
        ((2**61,), 32, False),
        ((2**32, 2**31), 8, False),
        ((2**32, 2**31, 0), 8, False),  # NumPy refuses it too
        ((2**63 - 1,), 8, True),
        ((2**63 - 1,), 4, True),
        ((1,) * 64, 64, True),
        ((1,) * 65, 64, False),
        (None, 32, True),
    ],
)
def test_what_can_be_addressed(shape: tuple[int, ...] | None, bits: int, fits: bool) -> None:
    assert (size_error(shape, bits) is None) == fits


@pytest.mark.parametrize(
    "dims", list(itertools.product((0, 1, 2**31, 2**62, 2**63 - 1), repeat=2)), ids=str
)
def test_the_bound_is_that_of_arrays(dims: tuple[int, int]) -> None:
    """NumPy also refuses every shape that `size_error` rejects."""
    if size_error(dims, 32) is not None:
        with pytest.raises(ValueError, match=r"too big|Maximum allowed"):
            np.empty(dims, np.float32)


@pytest.mark.parametrize(
    ("shape", "filter_shape", "attributes", "words"),
    [
        ("1,2,3037000500,3037000500", (2, 3, 3, 3), {}, "more than the 2^63 - 1"),
        ("1,2,5,5", (2, 3, 3, 3), {"strides": "9223372036854775807,1"}, "more than the 2^63 - 1"),
        ("1,2,5,5", (2, 3, 3, 3), {"dilations": "1,9223372036854775807"}, "more than the 2^63 - 1"),
        (
            "1,2,5,5",
            (2, 3, 3, 3),
            {"output_padding": "4611686018427387904,0"},
            "more than the 2^63",
        ),
        ("1,2,5,5", (2, 3, 3, 3), {"pads_begin": "9223372036854775807,0"}, "negative extent"),
        ("1,2,5,5", (2, 3, 3, 3), {"pads_end": "-9223372036854775807,0"}, "'pads_end' must be"),
        ("1,2,5,5", (2, 3, 3, 3), {"strides": "9223372036854775808,1"}, "'strides' must be"),
        ("1,2,5,5", (2, 3, 3, 3), {"strides": "0,1"}, "'strides' must be"),
        ("9223372036854775807,2,1,1", (2, 3, 1, 1), {}, "more than the 2^63 - 1"),
        (",".join("1" * 70), (2, 3, 3, 3), {}, "rank 70"),
    ],
)
def test_overflow_is_an_error_of_its_own(
    shape: str,
    filter_shape: tuple[int, ...],
    attributes: dict[str, str],
    words: str,
    tmp_path: Path,
) -> None:
    defaults = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    path = deconvolution_ir(shape, filter_shape, defaults | attributes).save(tmp_path)
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path)
    assert words in str(caught.value)
    assert f"{path}:" in str(caught.value)


def test_a_tebibyte_of_output_is_refused_with_the_figure(tmp_path: Path) -> None:
    # 1 x 1 x 2^19 x 2^19 floats are a tebibyte; the input is one number.
    attributes = {
        "strides": "1,1",
        "dilations": "1,1",
        "pads_begin": "0,0",
        "pads_end": "0,0",
        "output_padding": "0,0",
    }
    ir = IR()
    x = ir.parameter("x", "1,1,1,1")
    w = ir.const(np.ones((1, 1, 1, 1), np.float32))
    wanted = ir.const(np.array([2**19, 2**19], np.int64))
    ir.result(ir.layer("ConvolutionBackpropData", [x, w, wanted], attributes, names="y"))
    path = ir.save(tmp_path)
    out = bounded(
        "import numpy as np, resource\n"
        f"model = deconv_ir.load({str(path)!r}, warn=False)\n"
        "try:\n"
        "    model.run([np.ones((1, 1, 1, 1), np.float32)])\n"
        "except deconv_ir.ResourceError as error:\n"
        "    print('ResourceError:', error)\n"
    )
    assert out.startswith("ResourceError: ")
    assert any(figure in out for figure in ("1.00 TiB", "1.0 TiB", "1099511627776", "1 TiB"))


def test_memory_that_the_process_may_not_have(tmp_path: Path) -> None:
    """The machine has the memory, but `ulimit -v` does not allow it."""
    ir = IR()
    x = ir.parameter("x", "1,1,1,1")
    w = ir.const(np.ones((1, 1, 1, 1), np.float32))
    wanted = ir.const(np.array([2**14, 2**14], np.int64))
    ones = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    ir.result(ir.layer("ConvolutionBackpropData", [x, w, wanted], ones, names="y"))
    ir.save(tmp_path)
    np.save(tmp_path / "x.npy", np.ones((1, 1, 1, 1), np.float32))
    bound = 800 * MIB  # of address space; the result has a GiB
    code, _, error = run(
        *("run", "model.xml", "--input", "x.npy", "--output", "y.npy"),
        *("--semantics", "openvino", "--memory-limit", "100GiB"),
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (bound, bound)),
    )
    assert code == 2
    last = error.splitlines(keepends=True)[-1]  # after a warning on the semantics
    message = one_error_line(last)
    assert re.search(r"the model needs 1(\.\d+)? GiB of memory, and an allocation failed", message)
    assert re.search(r"; [\d.]+ MiB is available", message)
    assert not (tmp_path / "y.npy").exists()


def test_memory_that_is_short_anywhere_else() -> None:
    """The error is one line, with a reason of our own where Python gives none."""
    code = (
        "import click\n"
        "from deconv_cli.shared.common import run_command\n"
        "@click.command()\n"
        "def command():\n"
        "    bytearray(1 << 60)\n"
        "run_command(command)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert one_error_line(done.stderr) == "error: out of memory: the files that are read do not fit"


@pytest.mark.parametrize("stride", [10**9, 2**31, 2**40])
def test_strides_far_beyond_the_output(stride: int, tmp_path: Path) -> None:
    """The input has one row, so the stride has no effect and no cost."""
    attributes = {"strides": f"{stride},{stride}", "dilations": "1,1"}
    attributes |= {"pads_begin": "0,0", "pads_end": "0,0"}
    path = deconvolution_ir("1,2,1,1", (2, 3, 3, 3), attributes).save(tmp_path)
    model = deconv_ir.load(path)
    x = np.array([1.0, -2.0], np.float32).reshape(1, 2, 1, 1)
    filter_ = np.random.default_rng(0).standard_normal((2, 3, 3, 3)).astype(np.float32)
    expected = np.einsum("i,iokl->okl", x.ravel(), filter_)[None]
    np.testing.assert_allclose(model.run([x])["y"], expected, rtol=1e-5, atol=1e-6)


def test_a_stride_of_a_billion_that_acts_is_refused_with_the_figure(tmp_path: Path) -> None:
    attributes = {"strides": "1000000000,1000000000", "dilations": "1,1"}
    attributes |= {"pads_begin": "0,0", "pads_end": "0,0"}
    path = deconvolution_ir("1,2,2,2", (2, 3, 3, 3), attributes).save(tmp_path)
    out = bounded(
        "import numpy as np\n"
        f"deconv_ir.load({str(path)!r}).run([np.ones((1, 2, 2, 2), np.float32)])"
    )
    assert out.startswith("DeconvError: ")
    assert "iB" in out or "bytes" in out


@pytest.mark.parametrize("kernel", [7, 100, 1000])
def test_kernels_larger_than_the_input(kernel: int, tmp_path: Path) -> None:
    """Padding crops the output to 1 x 1, so each tap meets one input element."""
    pads = f"{kernel - 1},0"
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": pads, "pads_end": "0,0"}
    path = deconvolution_ir("1,1,1,3", (1, 1, kernel, 1), attributes).save(tmp_path)
    x = np.array([[[[1.0, 2.0, 3.0]]]], np.float32)
    filter_ = np.random.default_rng(0).standard_normal((1, 1, kernel, 1)).astype(np.float32)
    found = deconv_ir.load(path).run([x])["y"]
    np.testing.assert_allclose(found, filter_[0, 0, -1] * x, rtol=1e-6)


@pytest.mark.parametrize("dilation", [10**9, 2**40])
def test_dilations_that_leave_one_tap(dilation: int, tmp_path: Path) -> None:
    span = dilation  # (K - 1) * d
    attributes = {"strides": "1,1", "dilations": f"{dilation},1"}
    attributes |= {"pads_begin": "0,0", "pads_end": f"{span},0"}
    path = deconvolution_ir("1,1,2,2", (1, 1, 2, 1), attributes).save(tmp_path)
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    filter_ = np.random.default_rng(0).standard_normal((1, 1, 2, 1)).astype(np.float32)
    found = deconv_ir.load(path).run([x])["y"]
    np.testing.assert_allclose(found, filter_[0, 0, 0, 0] * x, rtol=1e-6)
