"""Arrays and numbers that a kernel must check; also run under the sanitizers."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import in_turn

from deconv_ir.errors import UnsupportedError
from deconv_ir.kernels import (
    empty,
    get_threads,
    naive,
    naive_convolution,
    pack_convolution,
    pack_deconvolution,
    set_threads,
)
from deconv_ir.kernels.runtime import parallel
from deconv_ir.kernels.runtime.extension import compiled_module

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


STATIC = {"strides": (2, 1), "dilations": (1, 2), "groups": 2}
PADS = (1, 2)
OUTPUT = {pack_deconvolution: (9, 8), pack_convolution: (3, 4)}
ORACLE = {pack_deconvolution: naive, pack_convolution: naive_convolution}
ALGORITHMS = {
    pack_deconvolution: ["compiled", "direct", "winograd", "im2col", "gemm_col2im"],
    pack_convolution: ["compiled", "direct", "winograd", "im2col"],
}
BOTH = [(kind, algorithm) for kind, algorithms in ALGORITHMS.items() for algorithm in algorithms]
FAR = 2**63 - 1


class KernelCase:
    """A kernel with valid arguments, and the expected result."""

    def __init__(self, kind: Any, algorithm: str, dtype: str = "float32") -> None:
        if algorithm in ("compiled", "direct", "winograd") and compiled_module() is None:
            pytest.skip("the compiled kernel was not built here")
        draw = np.random.default_rng(7)

        def array(*shape: int) -> Array:
            return draw.integers(-8, 9, shape).astype(dtype)

        self.kind, self.algorithm, self.output = kind, algorithm, OUTPUT[kind]
        self.data, self.filter, self.bias = array(2, 4, 5, 6), array(4, 2, 3, 2), array(4)
        self.expected: Array = ORACLE[kind](
            self.data, self.filter, pads_begin=PADS, output=self.output, bias=self.bias, **STATIC
        )

    def make(self, **changed: Any) -> Any:
        arguments = {"bias": self.bias, "algorithm": self.algorithm, **STATIC, **changed}
        return self.kind(arguments.pop("filter", self.filter), **arguments)

    def run(self, **changed: Any) -> Array:
        data, out = changed.pop("data", self.data), changed.pop("out", None)
        found: Array = self.make(**changed).run(data, PADS, self.output, out)
        return found


@pytest.fixture(params=BOTH, ids=lambda v: f"{ORACLE[v[0]].__name__}-{v[1]}")
def case(request: pytest.FixtureRequest) -> KernelCase:
    return KernelCase(*request.param)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    yield
    set_threads(None)


def unaligned(array: Array) -> Array:
    memory = bytearray(array.nbytes + 1)
    moved = np.ndarray(array.shape, array.dtype, memory, offset=1)
    moved[...] = array
    assert moved.size == 0 or moved.itemsize == 1 or not moved.flags.aligned
    return moved


def reversed_strides(array: Array) -> Array:
    every = (slice(None, None, -1),) * array.ndim
    return array[every].copy()[every]


def with_gaps(array: Array) -> Array:
    wide = np.zeros([2 * n for n in array.shape], array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def transposed(array: Array) -> Array:
    return array.T.copy().T


def of_odd_strides(array: Array) -> Array:
    """Return elements of a packed record: their strides are not multiples of their size."""
    records = np.zeros(array.shape, [("tag", "u1"), ("value", array.dtype)])
    records["value"] = array
    return records["value"]


def read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = [unaligned, reversed_strides, with_gaps, transposed, of_odd_strides, read_only]


@pytest.mark.parametrize(
    ("row", "dtype"),
    in_turn(
        itertools.product(ALGORITHMS, ("data", "filter", "bias"), LAYOUTS),
        ["float32", "float64", "float16", "int8", "int64"],
        2,
    ),
)
def test_arrays_of_any_layout(row: tuple[Any, str, Callable[[Array], Array]], dtype: str) -> None:
    kind, argument, layout = row
    case = KernelCase(kind, "auto", dtype)
    changed = layout(getattr(case, argument))
    np.testing.assert_array_equal(case.run(**{argument: changed}), case.expected)


@pytest.mark.parametrize("layout", [unaligned, reversed_strides, with_gaps, transposed])
def test_results_of_any_layout(case: KernelCase, layout: Callable[[Array], Array]) -> None:
    out = layout(np.full_like(case.expected, 99))
    assert case.run(out=out) is out
    np.testing.assert_array_equal(out, case.expected)


def test_data_that_repeat_one_element(case: KernelCase) -> None:
    data = np.broadcast_to(np.float32(3), case.data.shape)
    assert data.strides == (0,) * 4
    expected = case.run(data=np.full(data.shape, np.float32(3)))
    np.testing.assert_array_equal(case.run(data=data), expected)


def test_a_result_that_must_not_be_written(case: KernelCase) -> None:
    out = read_only(np.full_like(case.expected, 99))
    with pytest.raises(ValueError, match="read-only"):
        case.run(out=out)
    assert (out == 99).all()


def test_a_result_that_overlaps_the_data(case: KernelCase) -> None:
    for distance in [0, 1, 40]:
        size = max(case.data.size, case.expected.size) + distance
        memory = np.zeros(size, np.float32)
        data = memory[: case.data.size].reshape(case.data.shape)
        out = memory[distance:][: case.expected.size].reshape(case.expected.shape)
        data[...] = case.data
        np.testing.assert_array_equal(case.run(out=out, data=data), case.expected)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"data": np.zeros((2, 5, 5, 6), np.float32)}, ValueError),
        ({"data": np.zeros((2, 4, 5), np.float32)}, ValueError),
        ({"data": np.zeros((2, 4, 5, 6), ">f4")}, TypeError),
        ({"data": np.zeros((2, 4, 5, 6), np.int32)}, TypeError),
        ({"filter": np.zeros((4, 2, 3, 2), ">f4")}, UnsupportedError),
        ({"filter": np.zeros((4, 2, 0, 2), np.float32)}, ValueError),
        ({"filter": np.zeros((3, 2, 3, 2), np.float32)}, ValueError),
        ({"bias": np.zeros(5, np.float32)}, ValueError),
        ({"bias": np.zeros(4, np.int32)}, TypeError),
        ({"strides": (0, 1)}, ValueError),
        ({"strides": (-1, 1)}, ValueError),
        ({"strides": (1,)}, ValueError),
        ({"dilations": (0, 1)}, ValueError),
        ({"dilations": (-FAR, 1)}, ValueError),
        ({"groups": 0}, ValueError),
        ({"groups": -2}, ValueError),
        ({"groups": 2**64}, ValueError),
        ({"out": np.zeros((2, 4, 9, 9), np.float32)}, ValueError),
        ({"out": np.zeros((2, 4, 9, 8), np.int32)}, ValueError),
        ({"out": np.zeros(0, np.float32)}, ValueError),
    ],
    ids=lambda v: str(v)[:40].replace("\n", ""),
)
def test_what_does_not_fit_is_refused(
    case: KernelCase, changed: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        case.run(**changed)


@pytest.mark.parametrize("name", ["strides", "dilations"])
def test_distances_without_bound(case: KernelCase, name: str) -> None:
    """Neither a second element nor a second tap is reached."""
    for number in [2**31, 2**40, FAR, 2**63, 2**70]:
        far = {name: (number, number)}
        expected = ORACLE[case.kind](
            case.data,
            case.filter,
            pads_begin=(0, 0),
            output=(1, 1),
            bias=case.bias,
            **(STATIC | far),
        )
        found = case.make(**far).run(case.data, (0, 0), (1, 1))
        np.testing.assert_array_equal(found, expected)


def test_pads_without_bound(case: KernelCase) -> None:
    for pad in [sign * n for sign in (1, -1) for n in (FAR, 2**63, 2**70)]:
        found: Array = case.make().run(case.data, (pad, 0), case.output)
        np.testing.assert_array_equal(
            found, np.broadcast_to(case.bias.reshape(4, 1, 1), found.shape)
        )


@pytest.mark.parametrize("axis", [2, 3])
def test_data_as_long_as_addresses_go(axis: int) -> None:
    """One element is broadcast to 2^58, with one output anywhere among them."""
    for pads in list(itertools.product((0, 2**58, -(2**58), 2**70), repeat=2)):
        shape = [1, 1, 1, 1]
        shape[axis] = 2**58
        data = np.broadcast_to(np.int8(1), shape)
        for stride in (1, 2**15):
            kernel = pack_convolution(
                np.ones((1, 1, 1, 1), np.int8), strides=(stride, 1), dilations=(1, 1)
            )
            inside = all(0 <= -pad < shape[i + 2] for i, pad in enumerate(pads))
            assert kernel.run(data, pads, (1, 1)).item() == inside


@pytest.mark.parametrize("output", [(2**31, 2**31), (FAR, 1), (2**62, 2**62), (2**64, 1)])
def test_results_beyond_addresses(case: KernelCase, output: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="larger than the address space"):
        case.make().plan(case.data.shape, PADS, output)
    with pytest.raises(ValueError, match="larger than the address space"):
        case.make().run(case.data, PADS, output)


def test_memory_beyond_addresses() -> None:
    for size in (2**60, 2**63 - 1, 2**63, 2**70):
        with pytest.raises((ValueError, MemoryError)):
            empty((size,), np.dtype(np.float32))


def test_scratch_of_any_size(case: KernelCase) -> None:
    for scratch in [-(2**70), -1, 0, 1, FAR, 2**70]:
        np.testing.assert_array_equal(case.run(scratch_bytes=scratch), case.expected)


def test_any_number_of_threads(case: KernelCase) -> None:
    for count in [1, 2, 255, 256, 257, 2**31, 2**63, 2**70]:
        set_threads(count)
        assert get_threads() == min(count, 256)
        np.testing.assert_array_equal(case.run(), case.expected)


@pytest.mark.parametrize("count", [0, -1, -(2**70)])
def test_no_threads_at_all(count: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        set_threads(count)


def test_threads_that_the_system_does_not_give(
    case: KernelCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    parallel.forget_threads()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    set_threads(4)
    np.testing.assert_array_equal(case.run(), case.expected)
    done: list[int] = []
    parallel.run_jobs(lambda: done.append, 10, 4)
    assert done == list(range(10))


def test_an_interrupted_call_leaves_nothing_to_the_next() -> None:
    """A late report of a worker is not taken for one of the next call's."""

    class Interruption(BaseException):
        """The exception raised by the signal handler."""

    def interrupt(*_: object) -> None:
        raise Interruption

    main = threading.get_ident()
    release = threading.Event()
    done: list[int] = []

    def two_jobs(finish: Callable[[], object]) -> Callable[[], Callable[[int], None]]:
        """Run one job per thread; the worker's job lasts until `finish` returns."""
        started = threading.Event()

        def job(number: int) -> None:
            if threading.get_ident() == main:
                assert started.wait(60)
            else:
                started.set()
                finish()
            done.append(number)

        return lambda: job

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interruption):
            parallel.run_jobs(two_jobs(lambda: release.wait(60)), 2, 2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    done.clear()
    release.set()
    parallel.run_jobs(two_jobs(lambda: time.sleep(0.2)), 2, 2)
    assert {0, 1} <= set(done)
    assert len(done) == 3, "the interrupted call's job, and both of the next"
