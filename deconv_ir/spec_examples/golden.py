"""Golden arrays: seeded inputs, outputs by the loop kernel, and their .npy form.

All files are bitwise equal on every machine: inputs are small whole numbers, never 0, from
SplitMix64, which is a few lines in any language; every sum is exact in the element type, in any
order; and the .npy header is written here, since NumPy's depends on its version.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deconv_ir.arrays.fitting import to_storable
from deconv_ir.errors import DeconvError
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.geometry import AxisGeometry
from deconv_ir.ir.lazy_tensor import whole
from deconv_ir.ir.operation import Context
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import element_count
from deconv_ir.kernels import naive
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.spec_examples.specfile import ExampleSpec, Input

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

SIGNED = (-3, -2, -1, 1, 2, 3)
UNSIGNED = (1, 2, 3)
"""Values of inputs: a 0 would hide a wrong position."""

MAX_STEPS = 1_000_000
"""Maximum products of data positions and filter positions for the loop kernel."""

# Whole numbers up to 2**bits are exact.
_EXACT_BITS = {"f32": 24, "f64": 53, "f16": 11, "bf16": 8}
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def splitmix64(seed: int, count: int) -> Array:
    """Return the first numbers of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(seed & _MASK)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def tensor_seed(seed: int, example: str, tensor: str) -> int:
    """Return the seed of one tensor: each has a separate stream."""
    digest = hashlib.sha256(f"{seed}/{example}/{tensor}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def make_array(shape: Sequence[int], element_type: ElementType, seed: int) -> Array:
    """Make a seeded array: element i, in C order, is ``VALUES[splitmix64(seed)[i] % len(VALUES)]``.

    VALUES is `UNSIGNED` for an unsigned type, `SIGNED` for any other.
    """
    table = UNSIGNED if element_type.kind == "uint" else SIGNED
    numbers = splitmix64(seed, element_count(shape)) % np.uint64(len(table))
    values = np.array(table, np.int64)[numbers.astype(np.int64)]
    return values.reshape(shape).astype(element_type.numpy())


def make_input(example: ExampleSpec, given: Input) -> Array:
    """Make one input of an example: the given value, or a seeded array."""
    if given.value is not None:
        return np.array(given.value, given.element_type.numpy())
    seed = tensor_seed(example.seed, example.name, given.name)
    return make_array(given.shape, given.element_type, seed)


def as_deconvolution(example: ExampleSpec) -> Deconvolution:
    """Return the operation as a deconvolution, for which the loop kernel is an oracle."""
    if not isinstance(example.operation, Deconvolution):
        raise DeconvError(
            f"example {example.name!r}: there is no loop kernel for {example.operation.type}, "
            "so no golden arrays",
            hint=Hint.WITHOUT_ARRAYS(),
            rule="spec",
        )
    return example.operation


def geometry_of(example: ExampleSpec, semantics: Semantics) -> tuple[AxisGeometry, ...]:
    """Return pads and extents of an example's axes."""
    found = as_deconvolution(example).geometry(example.infos, Context(semantics))
    assert found is not None, "the shapes of an example are static"
    return found


def compute(example: ExampleSpec, inputs: Sequence[Array], semantics: Semantics) -> Array:
    """Compute the output of an example by the loop kernel, and make sure that it is exact."""
    operation = as_deconvolution(example)
    check_size(example)
    result = _loop(operation, inputs, example, semantics)
    _check_exact(example, operation, inputs, semantics)
    (fast,) = operation.execute(inputs, Context(semantics))
    if not np.array_equal(fast, result):
        raise RuntimeError(f"example {example.name!r}: the two kernels differ")
    return result


def _loop(
    operation: Deconvolution, inputs: Sequence[Array], example: ExampleSpec, semantics: Semantics
) -> Array:
    data, filter_ = inputs[0], inputs[1]
    geometry = geometry_of(example, semantics)
    axes = operation.axes(len(geometry))
    last = operation.channels_last
    result = naive(
        np.moveaxis(data, -1, 1) if last else data,
        whole(operation.canonical_filter(filter_)),
        strides=[a.stride for a in axes],
        dilations=[a.dilation for a in axes],
        groups=operation.groups_of(filter_.shape),
        pads_begin=[g.pad_begin for g in geometry],
        output=[g.output for g in geometry],
        bias=operation.bias_of(inputs),
    )
    return np.ascontiguousarray(np.moveaxis(result, 1, -1) if last else result)


def check_size(example: ExampleSpec) -> None:
    """Require that golden arrays are few and fast to compute, before any is made."""
    operation = as_deconvolution(example)
    spatial = len(example.outputs[0]) - 2
    data, filter_ = operation.dims(example.infos, spatial)
    steps = element_count([d for d in (*data.spatial, *filter_.kernel) if isinstance(d, int)])
    largest = max(map(element_count, (*(i.shape for i in example.inputs), *example.outputs)))
    if steps > MAX_STEPS or largest > MAX_STEPS:
        raise DeconvError(
            f"example {example.name!r} is too large for golden arrays: {steps} steps of the loop "
            f"kernel, {largest} elements; {MAX_STEPS} are allowed",
            hint=Hint.WITHOUT_ARRAYS(),
            expected=MAX_STEPS,
            actual=max(steps, largest),
            rule="spec",
        )


def _check_exact(
    example: ExampleSpec, operation: Deconvolution, inputs: Sequence[Array], semantics: Semantics
) -> None:
    """Require that no partial sum, in any order, leaves the exact range of the type."""
    element_type = example.element_type
    magnitudes = [
        np.abs(a.astype(np.float64)) if given.value is None else a
        for given, a in zip(example.inputs, inputs, strict=True)
    ]
    largest = float(_loop(operation, magnitudes, example, semantics).max(initial=0))
    bits = _EXACT_BITS.get(element_type.name) or element_type.bits - (element_type.kind == "int")
    if largest >= 2**bits:
        raise DeconvError(
            f"example {example.name!r}: sums may reach {largest:.0f}, which {element_type} does "
            "not hold exactly",
            hint=Hint.EXACT_ARRAYS(),
            expected=f"< {2**bits}",
            actual=largest,
            rule="spec",
        )


def to_npy(array: Array) -> bytes:
    """Return the .npy form (format 1.0) of an array: little-endian, C order.

    Types that NumPy lacks are stored as raw bytes, dtype ``|V2`` or ``|V1``.
    """
    dtype = to_storable(array).dtype
    descr = dtype.str if dtype.kind == "V" else dtype.newbyteorder("<").str
    shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}"
    padding = -(len(_NPY_MAGIC) + 2 + len(header) + 1) % 64
    text = f"{header}{' ' * padding}\n".encode("ascii")
    return _NPY_MAGIC + len(text).to_bytes(2, "little") + text + little_endian(array)


def little_endian(array: Array) -> bytes:
    """Return the bytes of an array's elements in C order, the lowest byte first."""
    return (array if sys.byteorder == "little" else array.byteswap()).tobytes()


def sha256(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
