"""What the models of cycles know of the processor, beside what Linux says of it."""

from pathlib import Path

import numpy as np
import pytest

from deconv_ir.kernels import Deconvolution
from deconv_ir.kernels.compiled import compiled_module

CPUINFO = Path("/proc/cpuinfo")
ISAS = compiled_module().isas() if compiled_module() else []

pytestmark = pytest.mark.skipif(
    "avx512" not in ISAS or not CPUINFO.exists(), reason="no AVX-512, or no Linux to tell"
)


def processor() -> dict[str, str]:
    """Return what is said of the first core."""
    lines = CPUINFO.read_text().partition("\n\n")[0].splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}


def cycles(isa: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the cycles that a layer of products, and hardly anything else, is said to take."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    weights = np.ones((96, 96, 5, 5), np.float32)
    kernel = Deconvolution(weights, strides=(1, 1), dilations=(1, 1), path="direct")
    data, out = (np.empty((1, 96, 64, 96), np.float32) for _ in range(2))
    told = kernel._compiled.describe(data, (2, 2), kernel.scratch_bytes, out)
    return float(told["cycles"])


def test_vectors_of_64_bytes_take_two_steps_where_they_are_halved(monkeypatch):
    told = processor()
    # A Zen 4 (family 25), and the build whose long vectors are made of halves.
    zen4 = told.get("vendor_id") == "AuthenticAMD" and told.get("cpu family") == "25"
    lowered = "avx512f" not in told.get("flags", "").split()
    if not zen4 and not lowered:
        pytest.skip("nothing is written down of this processor")
    ratio = cycles("avx512", monkeypatch) / cycles("avx2", monkeypatch)
    assert 0.85 < ratio < 1.15  # 0.5 where a long vector takes as long as a short one
