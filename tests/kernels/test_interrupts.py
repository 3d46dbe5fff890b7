"""A signal ends a run of the compiled kernel between two tiles, without computing the rest."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from deconv_ir.kernels import naive, pack_deconvolution
from deconv_ir.kernels.native import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

pytestmark = [
    pytest.mark.skipif(compiled_module() is None, reason="the compiled kernel was not built"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers"),
]
# Marks a result that has not been computed: no sum of ones is negative.
UNTOUCHED = -99
# Hundreds of tiles, a trillion operations: the timer goes off long before the last.
SHAPE, FILTER = (1, 512, 256, 256), (512, 512, 5, 5)

CHILD = f"""
import signal
import numpy as np
from deconv_ir.kernels import pack_deconvolution
# Shells start jobs in the background with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
weights = np.ones({FILTER}, np.int8)
kernel = pack_deconvolution(weights, strides=(1, 1), dilations=(1, 1), algorithm="direct")
data, out = np.ones({SHAPE}, np.int8), np.full({SHAPE}, {UNTOUCHED}, np.int8)
kernel.run(data[:, :, :8, :8], (2, 2), (8, 8))
try:
    print("begins", flush=True)
    kernel.run(data, (2, 2), {SHAPE[2:]}, out)
except KeyboardInterrupt:
    print("tiles left:", (out == {UNTOUCHED}).any(axis=(0, 1)).any(), flush=True)
    raise
"""


@pytest.fixture
def after() -> Iterator[Callable[[float, Callable[[], object]], None]]:
    """Return a function that calls another from a signal handler after some seconds."""
    old = signal.getsignal(signal.SIGALRM)

    def arm(seconds: float, function: Callable[[], object]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: function())
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield arm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def test_ctrl_c_ends_a_process_that_computes() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        child.send_signal(signal.SIGINT)
        told, error = child.communicate(timeout=300)
    finally:
        child.kill()
    assert told == "tiles left: True\n"
    assert error.rstrip().endswith("KeyboardInterrupt")
    assert child.returncode == -signal.SIGINT


def small() -> None:
    """Compare a layer of several tiles, on the pool if it is free, with loops."""
    rng = np.random.default_rng(0)
    data = rng.integers(-8, 9, (3, 20, 17, 19)).astype(np.float32)
    weights = rng.integers(-8, 9, (20, 30, 4, 4)).astype(np.float32)
    arguments = {"strides": (2, 2), "dilations": (1, 1)}
    expected = naive(data, weights, groups=1, pads_begin=(1, 1), output=(34, 38), **arguments)
    for algorithm in ("direct", "winograd"):
        found = pack_deconvolution(weights, algorithm=algorithm, **arguments).run(
            data, (1, 1), (34, 38)
        )
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("used", [1, 2, 5])
@pytest.mark.parametrize(("algorithm", "element"), [("direct", "int8"), ("winograd", "float32")])
def test_the_pool_can_be_used_after_an_interruption(after, algorithm, element, used):
    set_threads(used)
    kernel = pack_deconvolution(
        np.ones(FILTER, element), strides=(1, 1), dilations=(1, 1), algorithm=algorithm
    )
    data, out = np.ones(SHAPE, element), np.full(SHAPE, UNTOUCHED, element)
    kernel.run(data[:, :, :8, :8], (2, 2), (8, 8))  # packs the filter

    def interrupt() -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        after(0.1, interrupt)
        with pytest.raises(KeyboardInterrupt):
            kernel.run(data, (2, 2), SHAPE[2:], out)
        assert (out == UNTOUCHED).any()
        small()


@pytest.mark.parametrize("used", [1, 3])
def test_a_handler_that_computes_and_returns(after, used):
    """Runs within the handler leave scratchpad and threads of the interrupted run alone."""
    set_threads(used)
    calls: list[int] = []

    def compute() -> None:
        small()
        calls.append(1)

    data, weights = np.ones((1, 64, 256, 256), np.float32), np.ones((64, 64, 9, 9), np.float32)
    kernel = pack_deconvolution(weights, strides=(1, 1), dilations=(1, 1), algorithm="direct")
    after(0.05, compute)
    found = kernel.run(data, (4, 4), (256, 256))
    assert calls
    assert (found[:, :, 4:-4, 4:-4] == 64 * 81).all()
    assert (found[:, :, 0, 0] == 64 * 25).all()
