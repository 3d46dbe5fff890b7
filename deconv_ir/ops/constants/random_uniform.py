"""OpenVINO RandomUniform-8: random numbers, the same ones for the same seeds.

The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
"""

from __future__ import annotations

import enum
import math
import secrets

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, choice, integer, operation, result_type
from deconv_ir.ops.checks import (
    check_integers,
    check_single,
    integers,
    merged_type,
    misfit,
    only,
    unknown_shape,
)
from deconv_ir.ops.numeric import narrow, np
from deconv_ir.ops.values import as_dims

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_INCREMENTS = 0x9E3779B9, 0xBB67AE85
_WORD = 0xFFFFFFFF


class Generator(enum.Enum):
    """The framework whose generator is reproduced."""

    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"


@operation(
    "RandomUniform-8(shape, minval, maxval)",
    "i64[3]{2,3,3}, f32[1]{-2}, f32[]{3} -> f32[2,3,3]"
    " | output_type=f32 global_seed=150 op_seed=10",
    "i64[1]{9}, i32[]{-5}, i32[]{7} -> i32[9] | output_type=i32 global_seed=1 op_seed=2",
)
class RandomUniform(Operation):
    """Random numbers in [minval, maxval); without seeds, each run differs."""

    formula = "shape {value[shape]}"

    output_type: ElementType = attribute(result_type())
    global_seed: int = attribute(integer(0), 0)
    op_seed: int = attribute(integer(0), 0)
    alignment: Generator = attribute(choice(Generator), Generator.TENSORFLOW)

    @property
    def is_repeatable(self) -> bool:
        return bool(self.global_seed or self.op_seed)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        check_integers(inputs[0], "shape", 1)
        for info, name in zip(inputs[1:], self.inputs[1:], strict=True):
            check_single(info, name)
        found = merged_type(inputs[1:], self.inputs[1:], "numeric")
        if found is not None and found is not self.output_type:
            raise misfit("element-type", "output_type", f"be {found}", self.output_type, found)
        value = inputs[0].value
        shape = unknown_shape(inputs[0]) if value is None else as_dims(value)
        return (TensorInfo(shape, self.output_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        if self.alignment is Generator.PYTORCH:
            message = "RandomUniform with alignment 'pytorch' is not implemented"
            raise UnsupportedError(message, attribute="alignment", rule="unsupported-operation")
        shape = integers(inputs[0])
        if min(shape, default=0) < 0:
            raise misfit("output-shape-value", "shape", "be at least 0", list(shape), ">= 0")
        low, high = (
            only(array, name) for array, name in zip(inputs[1:], self.inputs[1:], strict=True)
        )
        seeds, count = (self.global_seed, self.op_seed), math.prod(shape)
        if self.output_type.is_float:
            result = low + uniform(*seeds, count, self.output_type) * (high - low)
        else:
            words = _words(*seeds, count)
            span = int(high) - int(low)
            if not 0 < span <= _WORD:
                raise misfit("range", "maxval - minval", "be from 1 to 2^32 - 1", span, "1..2^32-1")
            result = words % span + int(low)
        return (narrow(result.reshape(shape), self.output_type.numpy()),)


def philox(key: int, stream: int, count: int) -> Array:
    """Return `count` words of 32 bits, as i64."""
    blocks = -(-count // 4)
    number = np.arange(blocks, dtype=np.uint64)
    shift, mask = np.uint64(32), np.uint64(_WORD)
    a, b = number & mask, number >> shift
    c = np.full(blocks, stream & _WORD, np.uint64)
    d = np.full(blocks, stream >> 32, np.uint64)
    keys = [key & _WORD, (key >> 32) & _WORD]
    first, second = map(np.uint64, _MULTIPLIERS)
    for _ in range(10):
        one, two = a * first, c * second
        a, b = (two >> shift) ^ b ^ np.uint64(keys[0]), two & mask
        c, d = (one >> shift) ^ d ^ np.uint64(keys[1]), one & mask
        keys = [(k + more) & _WORD for k, more in zip(keys, _INCREMENTS, strict=True)]
    words: Array = np.stack([a, b, c, d], -1).reshape(-1)[:count].astype(np.int64)
    return words


def _words(global_seed: int, op_seed: int, count: int) -> Array:
    """Return words determined by the seeds; if both are 0, other words each time."""
    key = global_seed if global_seed or op_seed else secrets.randbits(64)
    return philox(key, op_seed, count)


def uniform(global_seed: int, op_seed: int, count: int, element_type: ElementType) -> Array:
    """Return numbers in [0, 1) whose fractions are the lowest bits of the words."""
    words = _words(global_seed, op_seed, count)
    bits = 7 if element_type.name == "bf16" else 23
    fractions: Array = ((words & ((1 << bits) - 1)) / np.float64(1 << bits)).astype(np.float32)
    return fractions
