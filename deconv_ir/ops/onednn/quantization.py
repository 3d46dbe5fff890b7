"""Quantize and Dequantize of oneDNN Graph, and their dynamic forms."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.quantization import Levels
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import Shape, element_count, format_shape, is_static, static
from deconv_ir.ops.base import attribute, choice, element_type, integer, integers, numbers
from deconv_ir.ops.checks import check_type, normalize_axis
from deconv_ir.ops.onednn.decomposition import kind

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


_MOST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}


class QuantizationType(enum.Enum):
    """The parts of a tensor with separate scales."""

    PER_TENSOR = "per_tensor"
    PER_CHANNEL = "per_channel"
    PER_GROUP = "per_group"


class Quantization(Operation):
    """The base of the four operations: one scale and zero point per tensor, channel or group."""

    family: ClassVar[str] = "any"

    qtype: QuantizationType = attribute(
        choice(QuantizationType, fold=False), QuantizationType.PER_TENSOR
    )
    axis: int = attribute(integer(), 1)
    group_shape: tuple[int, ...] | None = attribute(integers(1), None)
    output_type: ElementType | None = attribute(element_type(), None)

    def check_output(self) -> None:
        """Require an output of a type that the operation supports.

        Raises
        ------
        ShapeError
            The type is missing or not supported.
        """
        to = self.output_type
        quantizes = self.family == "float"
        if to is None or (to.is_float and to.name not in _MOST) is quantizes:
            wanted = "an integer type or f8" if quantizes else "f32, bf16 or f16"
            raise ShapeError(
                f"the output must have {wanted}, found {to or 'none'}",
                expected=wanted,
                actual=str(to),
                rule="element-type",
            )

    def parameter_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of scales and zero points, given that of the data.

        Raises
        ------
        ShapeError
            The axis does not exist, or the groups do not divide the shape.
        """
        if self.qtype is QuantizationType.PER_TENSOR:
            return (1,) * len(shape)
        if self.qtype is QuantizationType.PER_CHANNEL:
            axis = normalize_axis(self.axis, len(shape))
            return tuple(n if i == axis else 1 for i, n in enumerate(shape))
        groups = self.group_shape
        if groups is None or len(groups) != len(shape):
            raise ShapeError(
                f"group_shape must have {len(shape)} elements",
                attribute="group_shape",
                expected=len(shape),
                actual=None if groups is None else len(groups),
                rule="attribute-length",
            )
        if any(n % g for n, g in zip(shape, groups, strict=True)):
            raise ShapeError(
                f"group_shape {format_shape(groups)} does not divide {format_shape(shape)}",
                attribute="group_shape",
                rule="quantization",
            )
        return tuple(n // g for n, g in zip(shape, groups, strict=True))

    def check_count(self, name: str, count: int, shape: Shape) -> None:
        """Require one scale or zero point for each channel (or group), or a single one.

        Raises
        ------
        ShapeError
            The number is wrong.
        """
        if not is_static(shape):
            return
        wanted = element_count(self.parameter_shape(static(shape)))
        if count != wanted:
            where = ""
            if self.qtype is QuantizationType.PER_CHANNEL:
                where = f" on axis {self.axis}"
            elif self.qtype is QuantizationType.PER_GROUP:
                where = f" with group_shape {format_shape(self.group_shape)}"
            raise ShapeError(
                f"{name} must have {wanted} element{'' if wanted == 1 else 's'} "
                f"({self.qtype.value}{where} of {format_shape(shape)}), found {count}",
                attribute=name,
                expected=wanted,
                actual=count,
                rule="quantization",
            )

    def spread(self, values: Array, shape: tuple[int, ...]) -> Array:
        """Reshape scales or zero points to broadcast to the data, in f64."""
        import numpy as np

        found: Array = values.astype(np.float64).reshape(self.parameter_shape(shape))
        if self.qtype is QuantizationType.PER_GROUP:
            assert self.group_shape is not None, "parameter_shape requires it"
            for axis, group in enumerate(self.group_shape):
                found = np.repeat(found, group, axis=axis)
        return found

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count two copies in f64."""
        return 16 * element_count(static(outputs[0].shape))


def quantized(data: Array, scales: Array, zps: Array | int, to: ElementType) -> Array:
    """Return ``round(data / scale + zp)``, half to even, clipped to the range of the type.

    NaN becomes 0 in an integer type.
    """
    import numpy as np

    dtype = to.numpy()
    with np.errstate(all="ignore"):
        levels = np.asarray(data.astype(np.float64) / scales + zps)  # an array for a scalar, too
        if to.is_float:
            most = _MOST[to.name]
            np.clip(levels, -most, most, out=levels)
            return levels.astype(np.float32).astype(dtype)
        low = 0 if to.kind == "uint" else -(2 ** (to.bits - 1))
        np.rint(levels, out=levels)
        np.clip(levels, low, low + 2**to.bits - 1, out=levels)
        np.copyto(levels, 0, where=np.isnan(levels))
        return levels.astype(np.int32).astype(dtype)


def dequantized(data: Array, scales: Array, zps: Array | int, to: ElementType) -> Array:
    """Return ``(data - zp) * scale``, rounded once."""
    import numpy as np

    levels = data.astype(np.float32).astype(np.float64) - zps
    found: Array = (levels * scales).astype(np.float32)
    return found if to.name == "f32" else found.astype(to.numpy())


class GroupedWeights(NamedTuple):
    """The groups of a transposed convolution, and the axis of its weights that has all of them."""

    groups: int
    axis: int


class StaticQuantization(Quantization):
    """The base of Quantize and Dequantize: scales and zero points are attributes."""

    scales: tuple[float, ...] = attribute(numbers())
    zps: tuple[int, ...] = attribute(integers(), ())

    grouped: GroupedWeights | None = field(default=None)
    """Set for weights whose channels of all groups have scales of their own."""

    def parameter_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        found = super().parameter_shape(shape)
        if self.grouped is None:
            return found
        at = self.grouped.axis % len(shape)
        return tuple(self.grouped.groups if i == at else n for i, n in enumerate(found))

    def spread(self, values: Array, shape: tuple[int, ...]) -> Array:
        if self.grouped is None:
            return super().spread(values, shape)
        groups, at = self.grouped.groups, self.grouped.axis % len(shape)
        by_group = values.reshape(groups, -1)  # channels follow each other, group by group
        ordered = by_group if at < self.axis % len(shape) else by_group.T
        return super().spread(ordered, shape).repeat(shape[at] // groups, axis=at)

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Keep the shape; the numbers of scales and zero points must fit it."""
        check_type(inputs[0], self.inputs[0], self.family)
        self.check_output()
        shape = inputs[0].shape
        self.check_count("scales", len(self.scales), shape)
        if self.zps:
            self.check_count("zps", len(self.zps), shape)
        return (TensorInfo(shape, self.output_type),)

    def fitted(self, channels: int) -> Self:
        """Return the operation for a number of channels: scales repeat, zero points end in 0."""
        times = -(-channels // max(1, len(self.scales)))
        zps = (*self.zps, *(0,) * channels)[:channels] if self.zps else ()
        return self.replace(scales=(self.scales * times)[:channels], zps=zps)

    def parameters(self, shape: tuple[int, ...]) -> tuple[Array, Array | int]:
        """Return scales, rounded to f32, and zero points."""
        import numpy as np

        scales = self.spread(np.array(self.scales, np.float32), shape)
        zps = self.spread(np.array(self.zps, np.int64), shape) if self.zps else 0
        return scales, zps


@kind("Quantize", ("src",))
class Quantize(StaticQuantization):
    """round(src / scale + zp), with scales and zero points as attributes."""

    family = "float"

    @property
    def levels(self) -> Levels | None:
        """The levels of a type of 8 bits with one scale; None: they are not in order."""
        import numpy as np

        assert self.output_type is not None, "a layer is bound where it is known"
        scale, zero_point = float(np.float32(self.scales[0])), (*self.zps, 0)[0]
        if not 0 < scale < math.inf:
            return None
        return Levels.of_bytes(scale, zero_point, signed=self.output_type.kind == "int")

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        assert self.output_type is not None, "a layer is bound where it is known"
        return (quantized(inputs[0], *self.parameters(inputs[0].shape), self.output_type),)


@kind("Dequantize", ("src",))
class Dequantize(StaticQuantization):
    """(src - zp) * scale, with scales and zero points as attributes."""

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        assert self.output_type is not None, "a layer is bound where it is known"
        return (dequantized(inputs[0], *self.parameters(inputs[0].shape), self.output_type),)


class _Dynamic(Quantization):
    mask: int | None = attribute(integer(0), None)

    def parameter_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Bit i of the mask, if present, means separate scales along dim i."""
        if self.mask is None:
            return Quantization.parameter_shape(self, shape)
        if self.mask >> len(shape) or self.qtype is not QuantizationType.PER_TENSOR:
            raise ShapeError(
                f"mask {self.mask} needs qtype per_tensor and {self.mask.bit_length()} dims, "
                f"found {self.qtype.value} and {format_shape(shape)}",
                attribute="mask",
                rule="quantization",
            )
        return tuple(n if self.mask >> i & 1 else 1 for i, n in enumerate(shape))

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Keep the shape; the scales must fit it, and the zero points, unless there is only one."""
        check_type(inputs[0], self.inputs[0], self.family)
        self.check_output()
        shape = inputs[0].shape
        for info, name in zip(inputs[1:], self.inputs[1:], strict=False):
            count = element_count(static(info.shape)) if is_static(info.shape) else None
            if count is not None and (name != "zps" or count != 1):
                self.check_count(name, count, shape)
        return (TensorInfo(shape, self.output_type),)

    def parameters(self, inputs: Sequence[Array]) -> tuple[Array, Array | int]:
        """Return scales and zero points."""
        shape = inputs[0].shape
        scales = self.spread(inputs[1], shape)
        if len(inputs) < 3:
            return scales, 0
        one = inputs[2].size == 1
        return scales, inputs[2].item() if one else self.spread(inputs[2], shape)


@kind("DynamicQuantize", ("src", "scales", "zps"), 2)
class DynamicQuantize(_Dynamic):
    """round(src / scale + zp), with scales and zero points as inputs."""

    family = "float"

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        assert self.output_type is not None, "a layer is bound where it is known"
        return (quantized(inputs[0], *self.parameters(inputs), self.output_type),)


@kind("DynamicDequantize", ("src", "scales", "zps"), 2)
class DynamicDequantize(_Dynamic):
    """(src - zp) * scale, with scales and zero points as inputs."""

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        assert self.output_type is not None, "a layer is bound where it is known"
        return (dequantized(inputs[0], *self.parameters(inputs), self.output_type),)
