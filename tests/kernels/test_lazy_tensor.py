"""A lazy tensor is packed like an array."""

from __future__ import annotations

import os

import numpy as np
import pytest
from kernels.cases import lazy_tensor

from deconv_ir.ir.lazy_tensor import LazyTensor, joined, whole
from deconv_ir.kernels import pack_convolution, pack_deconvolution
from deconv_ir.kernels.native import CompiledKernel
from deconv_ir.kernels.numpy.kernel import NonFiniteKernel
from deconv_ir.kernels.runtime.extension import compiled_module

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [pack_convolution, pack_deconvolution])
@pytest.mark.parametrize(
    ("shape", "groups", "strides"),
    [
        ((7, 5, 3), 1, (2,)),
        ((6, 14, 4, 3), 3, (1, 2)),
        ((8, 3, 1, 2, 3), 2, (1, 1, 1)),
        ((40, 1, 3, 3), 40, (1, 1)),
        ((1, 1, 2, 2), 1, (2, 2)),
        ((9, 2, 4), 1, (4,)),  # folded
        ((0, 2, 3), 1, (1,)),
    ],
)
def test_packed_in_chunks(kind, shape, groups, strides):
    for element in ["float32", "float16", "float64", "int8"]:
        for part_bytes in [1, 100, 1 << 20]:
            filter_ = (RNG.standard_normal(shape) * 9).astype(element)
            arguments = {"strides": strides, "dilations": (1,) * len(strides), "groups": groups}
            asked = []
            at_once, read = (
                kind(f, **arguments) for f in (filter_, lazy_tensor(filter_, part_bytes, asked))
            )
            if isinstance(read, CompiledKernel):
                np.testing.assert_array_equal(read.unpacked(), filter_)
            channels = shape[1] * groups if kind is pack_convolution else shape[0]
            data = (RNG.standard_normal((2, channels, *(5,) * len(strides))) * 9).astype(element)
            where = (0,) * len(strides), (4,) * len(strides)
            np.testing.assert_array_equal(read.run(data, *where), at_once.run(data, *where))
            # Every element is read once, whole rows at a time.
            row = int(np.prod(shape[1:]))
            assert [start for start, _ in asked][1:] == [stop for _, stop in asked][:-1]
            assert all(start % row == stop % row == 0 for start, stop in asked)


def file_tensor(array, path, size=None):
    """Return a lazy tensor of an array that exists only in a file, behind three bytes."""
    path.write_bytes((b"abc" + array.tobytes())[:size])

    def read(start, stop):
        raise OSError("no such disk")

    return LazyTensor(array.shape, array.dtype, read, file=(os.open(path, os.O_RDONLY), 3))


@pytest.mark.parametrize("kind", [pack_convolution, pack_deconvolution])
@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((70, 900, 3, 3), 1),  # several parts, whose rows do not coincide with blocks
        ((70, 500, 3, 3), 7),
        ((30_000, 1, 3, 3), 30_000),
        ((2, 40000, 2, 2), 1),  # rows that are larger than a part
        ((9, 2_000, 4, 4), 1),
    ],
)
def test_packed_from_a_file(tmp_path, kind, shape, groups):
    """C reads filters of 256 KiB and more by itself."""
    for element in ["float32", "float16", "float64", "int8"]:
        if compiled_module() is None:
            pytest.skip("the compiled kernel was not built here")
        filter_ = (RNG.standard_normal(shape) * 9).astype(element)
        tensor = file_tensor(filter_, tmp_path / "weights")
        kernel = kind(tensor, strides=(1, 2), dilations=(1, 1), groups=groups)
        np.testing.assert_array_equal(kernel.unpacked(), filter_)
        kernel.release()
        np.testing.assert_array_equal(kernel.unpacked(), filter_)
        os.close(tensor.file[0])


@pytest.mark.parametrize("kind", [pack_convolution, pack_deconvolution])
def test_a_file_that_is_too_short_or_not_finite(tmp_path, kind):
    if compiled_module() is None:
        pytest.skip("the compiled kernel was not built here")
    filter_ = RNG.standard_normal((70, 500, 3, 3)).astype(np.float32)
    arguments = {"strides": (1, 1), "dilations": (1, 1)}
    tensor = file_tensor(filter_, tmp_path / "weights", -1)
    with pytest.raises(OSError, match="no such disk"):
        kind(tensor, **arguments)
    read = LazyTensor(filter_.shape, filter_.dtype, lazy_tensor(filter_).read, file=tensor.file)
    np.testing.assert_array_equal(kind(read, **arguments).unpacked(), filter_)
    os.close(tensor.file[0])
    for place in (0, 200_000, filter_.size - 1):
        filter_.flat[place] = np.nan
        tensor = file_tensor(filter_, tmp_path / "weights")
        whole_ = LazyTensor(
            filter_.shape, filter_.dtype, lazy_tensor(filter_).read, file=tensor.file
        )
        assert isinstance(kind(whole_, **arguments), NonFiniteKernel)
        os.close(tensor.file[0])
        filter_.flat[place] = 0


def test_a_weight_that_is_not_finite_in_any_chunk():
    data = np.ones((1, 3, 4, 4), np.float32)
    for row in range(3):
        filter_ = np.ones((3, 2, 3, 3), np.float32)
        filter_[row, 1, 2, 0] = np.inf
        kernel = pack_deconvolution(lazy_tensor(filter_, 1), strides=(1, 1), dilations=(1, 1))
        plain = pack_deconvolution(filter_, strides=(1, 1), dilations=(1, 1))
        where = (0, 0), (6, 6)
        np.testing.assert_array_equal(kernel.run(data, *where), plain.run(data, *where))


def test_shape_of_a_lazy_tensor():
    array = np.arange(24).reshape(2, 3, 4)
    lazy = lazy_tensor(array)
    assert (lazy.ndim, lazy.size, lazy.nbytes) == (3, 24, array.nbytes)
    for constant in (array, lazy):
        np.testing.assert_array_equal(whole(joined(constant)), array.reshape(6, 4))


@pytest.mark.parametrize("kind", [pack_convolution, pack_deconvolution])
@pytest.mark.parametrize("shape", [(16, 16, 3, 3), (6, 10, 4, 2), (0, 2, 3, 3)])
def test_released_weights_are_packed_again(kind, shape):
    filter_ = RNG.standard_normal(shape).astype(np.float32)
    asked = []
    arguments = {"strides": (1, 1), "dilations": (1, 1)}
    read = kind(lazy_tensor(filter_, 1000, asked), **arguments)
    channels = shape[1] if kind is pack_convolution else shape[0]
    data = RNG.standard_normal((1, channels, 12, 12)).astype(np.float32)
    expected = kind(filter_, **arguments).run(data, (1, 1), (12, 12))
    plan = read.plan(data.shape, (1, 1), (12, 12))
    for _ in range(2):
        np.testing.assert_array_equal(plan.run([data])[0], expected)
        np.testing.assert_array_equal(plan.run([data])[0], expected)
        before = len(asked)
        read.release()
        assert len(asked) == before
    np.testing.assert_array_equal(plan.run([data])[0], expected)
    if isinstance(read, CompiledKernel):
        assert (len(asked) > before) == bool(filter_.size)
        read.release()
        np.testing.assert_array_equal(read.unpacked(), filter_)


@pytest.mark.parametrize("even", [True, False])
def test_plans_look_at_weights_that_were_released(even):
    """Whether Winograd is used depends on the weights, even before anything else has read them."""
    if compiled_module() is None:
        pytest.skip("the compiled kernel was not built here")
    filter_ = np.ones((64, 64, 3, 3), np.float32)
    if not even:
        filter_[:, :, 0] = 1e4
    shape, where = (1, 64, 40, 40), ((1, 1), (40, 40))
    arguments = {"strides": (1, 1), "dilations": (1, 1), "algorithm": "winograd"}
    expected = pack_convolution(filter_, **arguments).plan(shape, *where).details
    kernel = pack_convolution(lazy_tensor(filter_), **arguments)
    kernel.release()
    found = kernel.plan(shape, *where).details
    assert found == expected
    assert ("winograd" in found) == even


def test_a_filter_that_cannot_be_read_again_at_first():
    filter_ = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
    reads = []

    def read(start, stop):
        reads.append(start)
        if len(reads) == 7:  # in the middle of the second packing
            raise OSError("no such disk")
        return filter_.reshape(-1)[start:stop]

    tensor = LazyTensor(filter_.shape, filter_.dtype, read, 1)
    data = RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)
    kernel = pack_convolution(tensor, strides=(1, 1), dilations=(1, 1))
    plain = pack_convolution(filter_, strides=(1, 1), dilations=(1, 1))
    kernel.release()
    if isinstance(kernel, CompiledKernel):
        with pytest.raises(OSError, match="no such disk"):
            kernel.run(data, (1, 1), (8, 8))
    expected = plain.run(data, (1, 1), (8, 8))
    np.testing.assert_array_equal(kernel.run(data, (1, 1), (8, 8)), expected)
