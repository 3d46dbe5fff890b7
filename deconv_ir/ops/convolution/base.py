"""The base of all convolutions: dims by role, shape rule, packing of filters, execution.

Each operation defines the layouts of its data and filter and the pads of an axis; the rest is
shared.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.errors import ShapeError, UnsupportedError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Axis, AxisGeometry, Dim, bounds
from deconv_ir.ir.lazy_tensor import Constant, joined, whole
from deconv_ir.ir.operation import Arrays, Context, Epilogue, Infos, Kernel, TensorInfo
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.ir.shapes import format_shape, intersect_dims, static
from deconv_ir.ops.checks import check_least_rank, product
from deconv_ir.ops.convolution.dims import (
    DataDims,
    FilterDims,
    Requested,
    channel_misfit,
    merge_requested,
    quotient,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.windows import Windowed, window_axes

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Boxes, LayerTile
    from deconv_ir.ir.quantization import LayerQuantization
    from deconv_ir.kernels import Activation, ConvolutionKernel
    from deconv_ir.ops.allowance import Bounds, Case


class AnyConvolution(Windowed, abc.ABC):
    """Attributes and behaviour of convolutions and transposed convolutions."""

    transposed: ClassVar[bool]
    bias_at: ClassVar[int] = 0
    """Index of the bias among the inputs; 0: no bias."""

    # Defined by each operation

    @property
    def channels_last(self) -> bool:
        """Whether data and output are laid out [N, spatial..., C]."""
        return False

    @abc.abstractmethod
    def check_types(self, inputs: Infos, context: Context) -> ElementType | None:
        """Return the element type of the output."""

    @abc.abstractmethod
    def check_kernel(self, filter_: FilterDims) -> None:
        """Require that the filter has taps."""

    @abc.abstractmethod
    def extent(self, index: int, axis: Axis, data: Dim, kernel: Dim, semantics: Semantics) -> Dim:
        """Compute the output extent of an axis from its pads."""

    @abc.abstractmethod
    def geometry(self, inputs: Infos, context: Context) -> tuple[AxisGeometry, ...] | None:
        """Return pads and extents of all axes; None if they are not known yet."""

    @abc.abstractmethod
    def explain_axis(
        self, inputs: Infos, context: Context, data: DataDims, filter_: FilterDims, index: int
    ) -> str:
        """Return the formula of a spatial axis of the output."""

    # For filters of one group, channels first

    def filter_rank(self, spatial: int) -> int:
        """Rank of the filter for a number of spatial axes."""
        return spatial + 2

    def filter_dims(self, shape: tuple[Dim, ...]) -> FilterDims:
        """Read the dims of the filter by role."""
        inputs, outputs = shape[:2] if self.transposed else (shape[1], shape[0])
        return FilterDims(1, inputs, outputs, shape[2:])

    def canonical_filter(self, weights: Constant) -> Constant:
        """Lay out a filter for the kernel: see `kernels.pack_filter`."""
        return weights

    def groups_of(self, filter_shape: Sequence[int]) -> int:
        """Return the number of groups, given the shape of the filter in the IR."""
        return 1

    def requested_output(self, inputs: Infos, spatial: int) -> Requested:
        """Return the extents, and all dims, that the model requests; None if pads decide."""
        return None, None

    # Shared by all

    def spatial_count(self, inputs: Infos) -> int | None:
        """Return the number of spatial axes; None if it is not determined."""
        data, filter_ = inputs[0].shape, inputs[1].shape
        check_least_rank(inputs[0], self.inputs[0], 3)
        check_least_rank(inputs[1], self.inputs[1], self.filter_rank(1))
        if data is not None:
            spatial = len(data) - 2
            axes = f"spatial ax{'is' if spatial == 1 else 'es'}"
            if filter_ is not None and len(filter_) != self.filter_rank(spatial):
                raise ShapeError(
                    f"ranks do not fit: {self.inputs[0]} {format_shape(data)} has {spatial} "
                    f"{axes}, so {self.inputs[1]} must have rank "
                    f"{self.filter_rank(spatial)}, found {format_shape(filter_)}",
                    expected=self.filter_rank(spatial),
                    actual=len(filter_),
                    rule="rank",
                )
            return spatial
        if filter_ is not None:
            return len(filter_) - self.filter_rank(0)
        lists = (self.strides, self.dilations, self.pads_begin, self.pads_end)
        return next((len(v) for v in lists if v), None)

    def axes(self, spatial: int) -> tuple[Axis, ...]:
        """Return the attributes, axis by axis."""
        return window_axes(self, spatial)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Compute the shape of the output; see `geometry` for an axis's formula."""
        element_type = self.check_types(inputs, context)
        spatial = self.spatial_count(inputs)
        if spatial is None:
            return (TensorInfo(None, element_type),)
        axes = self.axes(spatial)
        data, filter_ = self.dims(inputs, spatial)
        groups = self.resolve_groups(data, filter_)
        self.check_kernel(filter_)
        channels = product(groups, filter_.outputs)
        requested, full = self.requested_output(inputs, spatial)
        if requested is None:
            extents = tuple(
                self.extent(i, *each, context.semantics)
                for i, each in enumerate(zip(axes, data.spatial, filter_.kernel, strict=True))
            )
        else:
            extents = requested
        dims = DataDims(data.batch, channels, extents)
        if full is not None:
            dims = merge_requested(dims, full)
        return (TensorInfo(self.lay_out(dims), element_type),)

    def data_dims(self, shape: tuple[Dim, ...]) -> DataDims:
        """Read the dims of the data, or of the output, by role."""
        if self.channels_last:
            return DataDims(shape[0], shape[-1], shape[1:-1])
        return DataDims(shape[0], shape[1], shape[2:])

    def lay_out(self, dims: DataDims) -> tuple[Dim, ...]:
        """Put the dims in the order of the layout; the inverse of `data_dims`."""
        if self.channels_last:
            return (dims.batch, *dims.spatial, dims.channels)
        return (dims.batch, dims.channels, *dims.spatial)

    def dims(self, inputs: Infos, spatial: int) -> tuple[DataDims, FilterDims]:
        """Read the dims of data and filter by role; unknown ranks are filled in."""
        data = inputs[0].shape or (UNKNOWN,) * (spatial + 2)
        filter_ = inputs[1].shape or (UNKNOWN,) * self.filter_rank(spatial)
        return self.data_dims(data), self.filter_dims(filter_)

    def resolve_groups(self, data: DataDims, filter_: FilterDims) -> Dim:
        """Find the number of groups, from the filter and from the data's channels."""
        wanted = product(filter_.groups, filter_.inputs)
        groups: Dim | None = filter_.groups
        if intersect_dims(data.channels, wanted) is None:
            groups = None
        elif isinstance(filter_.inputs, int) and filter_.inputs > 0:
            # The channels are whole groups: that narrows an unknown dim.
            share = quotient(data.channels, filter_.inputs)
            groups = None if share is None else intersect_dims(filter_.groups, share)
        if groups is not None:
            return groups
        raise channel_misfit(self.inputs, data.channels, filter_)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        spatial = self.spatial_count(inputs)
        if spatial is None:
            return None
        data, filter_ = self.dims(inputs, spatial)
        rank = spatial + 2
        channel_axis = rank - 1 if self.channels_last else 1
        if axis == 0:
            return f"N of {self.inputs[0]} = {data.batch}"
        if axis == channel_axis:
            total = product(filter_.groups, filter_.outputs)
            if filter_.groups == 1:
                return f"C_OUTPUT of {self.inputs[1]} = {total}"
            return f"GROUPS * C_OUTPUT = {filter_.groups} * {filter_.outputs} = {total}"
        role = axis - 1 if self.channels_last else axis - 2
        return self.explain_axis(inputs, context, data, filter_, role)

    # Execution

    def kernel(
        self,
        filter: Constant,  # noqa: A002 - the documents' name
        bias: Array | None,
        context: Context,
        activation: Activation | None = None,
        adds: bool = False,
        *,
        reads: bool = True,
    ) -> ConvolutionKernel:
        """Pack a filter, or do not read it, for plans."""
        from deconv_ir.kernels import pack_filter

        canonical = self.canonical_filter(filter)
        axes = self.axes(canonical.ndim - 2)
        try:
            return pack_filter(
                canonical,
                forward=not self.transposed,
                strides=tuple(a.stride for a in axes),
                dilations=tuple(a.dilation for a in axes),
                groups=self.groups_of(filter.shape),
                bias=bias,
                activation=activation,
                adds=adds,
                scratch_bytes=context.scratch_bytes,
                accuracy=context.accuracy,
                packer=context.packer,
                reads=reads,
            )
        except TypeError as error:
            raise UnsupportedError(str(error), rule="unsupported-type") from error

    def bias_of(self, inputs: Sequence[Any]) -> Any:
        """Return the input that is the bias, or None."""
        return inputs[self.bias_at] if self.has_bias(len(inputs)) else None

    def prepare(self, constants: Sequence[Constant | None], context: Context) -> Kernel | None:
        """Pack the filter if it (and the bias, if any) is constant."""
        bias = self.bias_of(constants)
        if bias is None and self.has_bias(len(constants)):
            return None
        return self._packed(constants, bias, None, context)

    def prepare_fused(
        self, constants: Sequence[Constant | None], epilogue: Epilogue, context: Context
    ) -> Kernel | None:
        """Pack the filter, with a bias for each channel and an activation."""
        found = self._fused(constants, epilogue)
        if found is None:
            return None
        bias, activation = found
        return self._packed(constants, bias, activation, context, adds=epilogue.adds)

    def code_bytes(self, shape: tuple[int, ...]) -> tuple[int, int]:
        from deconv_ir.kernels.quantized.kernel import code_bytes

        dims = self.filter_dims(shape)
        sides = bounds(dims.inputs)[0], bounds(dims.outputs)[0]
        return code_bytes(self.groups_of(shape), *sides, static(dims.kernel))

    def prepare_quantized(
        self,
        constants: Sequence[Constant | None],
        quantization: LayerQuantization,
        epilogue: Epilogue,
        context: Context,
    ) -> Kernel | str | None:
        """Pack the codes of a filter in f32."""
        from deconv_ir.kernels.quantized.kernel import quantize_filter

        found = self._fused(constants, epilogue, slopes=True)
        data, filter_ = constants[:2]
        if found is None or filter_ is None or data is not None or filter_.dtype != np.float32:
            return None
        shape, weights = filter_.shape, self.canonical_filter(filter_)
        axes = self.axes(weights.ndim - 2)
        bias, activation = found
        # Only the first two axes may be merged, which copies broadcast ones.
        ones = (
            one.reshape(*(1,) * (len(shape) - one.ndim), *one.shape)
            for one in quantization.weights[:2]
        )
        scales, zero_points = (
            np.broadcast_to(
                whole(self.canonical_filter(np.broadcast_to(one, (*shape[:2], *one.shape[2:])))),
                weights.shape,
            )
            for one in ones
        )
        packed = quantize_filter(
            weights,
            quantization.weights._replace(scales=scales, zero_points=zero_points),
            quantization.levels,
            forward=not self.transposed,
            strides=tuple(a.stride for a in axes),
            dilations=tuple(a.dilation for a in axes),
            groups=self.groups_of(shape),
            bias=bias,
            activation=activation,
            adds=epilogue.adds,
            scratch_bytes=context.scratch_bytes,
        )
        if packed is None or isinstance(packed, str):
            return packed
        return self._with_filter(packed, shape, constants, context)

    def _fused(
        self, constants: Sequence[Constant | None], epilogue: Epilogue, *, slopes: bool = False
    ) -> tuple[Array | None, Activation | None] | None:
        """Return bias and activation of a kernel; None if it cannot have this epilogue."""
        from deconv_ir.ops.convolution.fusing import as_kernel_epilogue

        filter_ = constants[1]
        own = self.bias_of(constants)
        if filter_ is None or (own is None and self.has_bias(len(constants))):
            return None
        # Other convolutions have further inputs, from which an addend cannot be distinguished.
        distinct = not (self.transposed or self.bias_at or self.channels_last)
        if epilogue.adds and (not distinct or filter_.dtype != np.float32):
            return None
        dims = self.filter_dims(filter_.shape)
        channels = self.groups_of(filter_.shape) * bounds(dims.outputs)[0]
        axis = -1 if self.channels_last else 1
        rank, slopes = len(dims.kernel) + 2, slopes and axis == 1
        found = as_kernel_epilogue(epilogue, rank, axis, channels, filter_.dtype, slopes=slopes)
        if found is None:
            return None
        bias, activation = found
        if bias is not None and own is not None:
            return None
        return bias if own is None else own, activation

    def _packed(
        self,
        constants: Sequence[Constant | None],
        bias: Array | None,
        activation: Activation | None,
        context: Context,
        *,
        adds: bool = False,
    ) -> Kernel | None:
        data, filter_ = constants[:2]
        # A call passes None for constants; the data may be constant if the output shape is not.
        if filter_ is None or data is not None:
            return None
        shape = filter_.shape
        packed = self.kernel(filter_, bias, context, activation, adds)
        if adds and not packed.adds_in_cache:
            return None
        return self._with_filter(packed, shape, constants, context)

    def _with_filter(
        self,
        packed: ConvolutionKernel,
        shape: tuple[int, ...],
        constants: Sequence[Constant | None],
        context: Context,
    ) -> Kernel:
        from deconv_ir.ops.convolution.packed import PackedConvolution

        # Only the other, small constants are kept: the filter is packed.
        kept = [None, None, *(None if c is None else whole(c) for c in constants[2:])]
        return PackedConvolution(self, packed, shape, kept, context)

    def placement(
        self, data: tuple[int, ...], filter_shape: tuple[int, ...], others: Infos, context: Context
    ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Find the pads at the start and the extents of the output; None if they depend on values.

        `others` are the inputs after the filter.
        """
        return _placed(self, (data, filter_shape), tuple(others), context.semantics)

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return self.in_order

    @property
    def in_order(self) -> bool:
        return not self.channels_last

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        from deconv_ir.ops.convolution.convolution_tile import tile_convolution

        shapes = (static(inputs[0].shape), static(inputs[1].shape))
        placed = self.placement(*shapes, inputs[2:], context)
        if placed is None:  # the requested extents depend on values of the run
            return super().tile(boxes, inputs, outputs, context)
        kernel = tuple(bounds(k)[0] for k in self.filter_dims(shapes[1]).kernel)
        axes = self.axes(len(kernel))
        return tile_convolution(self, boxes[0], inputs, outputs, axes, kernel, placed[0])

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        filter_ = self.filter_dims(case.inputs[1].shape)
        terms = product(filter_.inputs, *filter_.kernel)
        return sums(case, terms if isinstance(terms, int) else 1, spread=self._largest_nearby)

    def _largest_nearby(self, total: Array) -> Array:
        """Return the largest element of the windows of Winograd that an output is in."""
        total = np.where(np.isfinite(total), total, 0.0)
        spatial = range(1, total.ndim - 1) if self.channels_last else range(2, total.ndim)
        for axis, one in zip(spatial, self.axes(total.ndim - 2), strict=True):
            rows = np.moveaxis(total, axis, 0)
            found = rows.copy()
            step = one.stride if self.transposed else 1
            for shift in (step, 2 * step):
                if shift < len(rows):
                    np.maximum(found[shift:], rows[:-shift], out=found[shift:])
                    np.maximum(found[:-shift], rows[shift:], out=found[:-shift])
            total = np.moveaxis(found, 0, axis)
        return total

    def has_bias(self, inputs: int) -> bool:
        """Whether a layer with this number of inputs has a bias."""
        return 0 < self.bias_at < inputs

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return self.packed_once(inputs, context)(inputs)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        self.packed_once(inputs, context)(inputs, out)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the packed filter of a run, and the scratchpad; none if the filter is constant."""
        filter_ = inputs[1]
        if filter_.shape is None or filter_.element_type is None or not outputs[0].shape:
            return 0
        from deconv_ir.ops.convolution.packed import PackedConvolution

        unread = np.broadcast_to(np.zeros((), filter_.element_type.numpy()), static(filter_.shape))
        kernel = self.kernel(unread, None, _once(context), reads=False)
        kept = (None,) * len(inputs)
        return PackedConvolution(self, kernel, unread.shape, kept, context).run_bytes(inputs)

    def packed_once(self, inputs: Arrays, context: Context) -> Kernel:
        """Pack the filter and the bias of one run."""
        from deconv_ir.ops.convolution.packed import PackedConvolution

        packed = self.kernel(inputs[1], self.bias_of(inputs), _once(context))
        kept = (None,) * len(inputs)
        return PackedConvolution(self, packed, inputs[1].shape, kept, context)


def _once(context: Context) -> Context:
    """Return the context of a filter for one run."""
    # Finding out whether bf16 is faster takes longer than a run.
    is_bf16 = context.accuracy is Accuracy.BF16
    return context._replace(accuracy=Accuracy.FAST) if is_bf16 else context


class WithGroupAxis(AnyConvolution, abc.ABC):
    """A convolution whose filter has a leading axis of groups."""

    def filter_rank(self, spatial: int) -> int:
        return spatial + 3

    def filter_dims(self, shape: tuple[Dim, ...]) -> FilterDims:
        return super().filter_dims(shape[1:])._replace(groups=shape[0])

    def canonical_filter(self, weights: Constant) -> Constant:
        return joined(weights)

    def groups_of(self, filter_shape: Sequence[int]) -> int:
        return filter_shape[0]


@functools.lru_cache(maxsize=512)
def _placed(
    operation: AnyConvolution,
    shapes: tuple[tuple[int, ...], ...],
    others: tuple[TensorInfo, ...],
    semantics: Semantics,
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return pad_begin and extent of each axis, for actual shapes of data and filter."""
    geometry = operation.geometry((*map(TensorInfo, shapes), *others), Context(semantics))
    if geometry is None:
        return None
    return tuple(g.pad_begin for g in geometry), tuple(g.output for g in geometry)
