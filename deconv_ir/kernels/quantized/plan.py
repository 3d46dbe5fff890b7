"""Runs of a convolution in integers: data to codes, sums, results."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.ir.quantization import Levels
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.copies import contiguous
from deconv_ir.kernels.native_plan import CompiledPlan
from deconv_ir.kernels.plan import NOTHING, ConvolutionKernel, ConvolutionPlan, RunShapes
from deconv_ir.kernels.quantized.codes import coded_shape, in_numpy, ranges_of
from deconv_ir.kernels.quantized.filter import MOST_SUM, greatest_sum
from deconv_ir.kernels.quantized.offsets import SumOffsets, find_offsets, offsets_of_channel
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import allocator, empty

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.operation import Direct


_NUMBERS = 6  # of an output channel, which `Dequantizer` takes
BYTES_OF_CHANNEL = 168
"""Bytes that it keeps of one, with an offset."""


class PlannedCodes(ConvolutionKernel):
    """What plans need of a `QuantizedKernel`."""

    sums: ConvolutionKernel
    """Sums codes."""
    windows: ConvolutionKernel | None
    """Sums codes with weights of 1, for each group, if zero points of the weights need it."""
    window_wholes: Array
    window_scales: Array
    """By output channel: `interface.h`, Dequantizer()."""
    uses_dots: bool
    """Whether four codes are in an element; else each is a floating-point number."""
    levels: Levels
    writes: Levels | None
    """The levels of the data, and of the results, if these are codes."""
    scales: Array
    bias: Array
    parts: Array | None
    """By output channel, f64; `parts` is that of `find_offsets`."""
    activation: Activation

    @abc.abstractmethod
    def codes_shape(self, data: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the codes of data."""

    @abc.abstractmethod
    def quantize(self, data: Array, codes: Array) -> None:
        """Write the codes of data."""


class QuantizedPlan(ConvolutionPlan):
    """Runs of a `QuantizedKernel`."""

    name = "integer sums"
    winograd_name = "integer Winograd"

    def __init__(self, kernel: PlannedCodes, shapes: RunShapes, budget: ScratchpadBudget) -> None:
        super().__init__(kernel, shapes)
        self._kernel = kernel
        self._codes = kernel.codes_shape(shapes.data)
        self._budget = budget.within(kernel.scratch_bytes)
        # With and without an addend: C's objects that make results of sums.
        self._dequantizers: dict[bool, Any] = {}

    @functools.cached_property
    def _sums(self) -> ConvolutionPlan:
        """The plan of the sums."""
        _, pads, output, _ = self.shapes
        return self._kernel.sums.plan_shapes(RunShapes(self._codes, pads, output), self._budget)

    @functools.cached_property
    def _windows(self) -> ConvolutionPlan | None:
        """The plan of the sums of the data alone."""
        kernel, (_, pads, _, _) = self._kernel.windows, self.shapes
        if kernel is None:
            return None
        return kernel.plan_shapes(RunShapes(self._codes, pads, self._windows_shape), self._budget)

    @property
    def _windows_shape(self) -> tuple[int, ...]:
        output = self.shapes.output
        return (output[0], self._kernel.problem.groups, *output[2:])

    @property
    def _window_elements(self) -> int:
        """Elements of windows, and those that vectors may read after the last."""
        module = compiled_module()
        beyond = 0 if module is None else int(module.WINDOWS_BEYOND)
        return math.prod(self._windows_shape) + beyond

    def _find_offsets(self) -> SumOffsets:
        kernel, (data, pads, output, _) = self._kernel, self.shapes
        return find_offsets(
            kernel.problem, kernel.bias, kernel.parts, RunShapes(data, pads, output)
        )

    def _dequantizer(self, activation: Activation, *, adds: bool) -> Any:
        """Return C's object that makes results of sums."""
        if activation is not self._kernel.activation:
            return self._make_dequantizer(activation, adds=adds)
        found = self._dequantizers.get(adds)
        if found is None:
            found = self._dequantizers[adds] = self._make_dequantizer(activation, adds=adds)
        return found

    def _make_dequantizer(self, activation: Activation, *, adds: bool) -> Any:
        kernel, module = self._kernel, compiled_module()
        offsets = self._find_offsets()
        numbers, classes, begin, chunk, end = offsets
        assert module is not None, "it computes sums"
        writes, spatial = kernel.writes, self.shapes.output[2:]
        terms = kernel.problem.channels_in * kernel.problem.taps
        greatest = float(greatest_sum(kernel.window_wholes, terms).max())
        of_channels = np.empty((len(numbers), _NUMBERS))
        of_channels[:, 0], of_channels[:, 1] = kernel.scales, activation.slopes or activation.slope
        of_channels[:, 2], of_channels[:, 3] = offsets.bases(kernel.scales, MOST_SUM - greatest)
        of_channels[:, 3] += np.abs(kernel.window_scales) * (255 * terms)
        of_channels[:, 4], of_channels[:, 5] = kernel.window_wholes, kernel.window_scales
        fields = interface.dequantizer_fields(
            isa=isa_number(),
            positions=math.prod(spatial),
            columns=spatial[-1],
            begin=begin,
            chunk=chunk,
            end=end,
            **activation.fields(),
            highest=0 if writes is None else writes.number - 1,
            adds=adds,
            window_planes=0 if kernel.windows is None else kernel.problem.groups,
            greatest_sum=greatest,
        )
        ranges = None if writes is None else ranges_of(writes)
        return module.Dequantizer(of_channels, numbers, classes, ranges, fields)

    @property
    def details(self) -> dict[str, Any]:
        return {} if self.shapes.is_empty else self._sums.details

    @property
    def algorithm(self) -> AlgorithmCandidate:
        if self.shapes.is_empty:
            return NOTHING
        found = self._sums.algorithm
        return self._with_codes(found._replace(weight_bytes=0) if found.packed else found)

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        if self.shapes.is_empty:
            return (NOTHING,)
        return tuple(map(self._with_codes, self._sums.candidates))

    def _with_codes(self, found: AlgorithmCandidate) -> AlgorithmCandidate:
        """Add the memory of the codes of the data, of the offsets, and of windows."""
        scratch, weights = found.scratch_bytes, found.weight_bytes
        codes = 0 if self._kernel.reads_codes else 4 * math.prod(self._codes)
        if not self._kernel.uses_dots:
            # Codes in f64 and as they are summed; sums, numbers in f64, offsets and results.
            codes = 16 * math.prod(self._codes) + 28 * math.prod(self.shapes.output)
            codes += 24 * math.prod(self.shapes.output) if self._windows is not None else 0
        if self._windows is not None:
            other = self._windows.algorithm
            codes += 4 * self._window_elements
            scratch = max(scratch, other.scratch_bytes)
            weights += 0 if other.packed else other.weight_bytes
        channels, offsets = len(self._kernel.scales), self._offsets()
        # They are found in f64, and kept so; those of codes also in steps of these, in f32.  The
        # kernel counts one of each channel: BYTES_OF_CHANNEL.
        width = 8 if self._kernel.writes is None else 12
        return found._replace(
            scratch_bytes=max(scratch + codes, 8 * channels * (offsets + _NUMBERS)),
            weight_bytes=weights + (width * offsets - 8) * channels,
            packed=False,
        )

    def _offsets(self) -> int:
        """Return the number of offsets of a channel: several where level 0 of the data is not 0."""
        if self._kernel.parts is None:
            return 1
        return offsets_of_channel(self._kernel.problem, self.shapes._replace(channels_last=False))

    def run(self, inputs: Sequence[Any], out: Array | None = None) -> tuple[Array, ...]:
        kernel = self._kernel
        if not kernel.reads_codes and kernel.writes is None:
            return super().run(inputs, out)
        data, addend = self._split(inputs)
        if out is not None and out.flags.carray and not np.may_share_memory(data, out):
            self._compute_in_c(contiguous(data), out, addend, kernel.activation)
            return (out,)
        if kernel.writes is None:
            result = empty(self.shapes.output, self._element)
        else:
            result = empty(coded_shape(self.shapes.output), np.dtype(np.uint32))
        self._compute_in_c(contiguous(data), result, addend, kernel.activation)
        if out is None:
            return (result,)
        out[...] = result
        return (out,)

    def compute(self, data: Array, out: Array, addend: Array | None) -> None:
        self._compute(data, out, addend, self._kernel.activation)

    def add(self, data: Array, addend: Array) -> Array:
        sums = empty(self.shapes.output, self._element)
        if sums.size:
            self._compute(data, sums, None, Activation())
        return self._kernel.activation.apply(np.add(sums, addend))

    def _compute(
        self, data: Array, out: Array, addend: Array | None, activation: Activation
    ) -> None:
        if not out.flags.carray:
            result = empty(out.shape, out.dtype)
            self._compute(data, result, addend, activation)
            out[...] = result
        elif self._kernel.uses_dots:
            self._compute_in_c(contiguous(data), out, addend, activation)
        else:
            out[...] = activation.apply(self._in_numpy(data, addend))

    def _compute_in_c(
        self, data: Array, out: Array, addend: Array | None, activation: Activation
    ) -> None:
        if addend is not None and not (addend.flags.c_contiguous and addend.flags.aligned):
            addend = addend.copy()
        self._computer(activation, adds=addend is not None)(data, out, addend)

    def bind(self, inputs: Sequence[Any], out: Array) -> Callable[[], object] | None:
        data, addend = self._split(inputs)
        kernel = self._kernel
        arrays = [data, out] if addend is None else [data, addend, out]
        apart = not any(np.may_share_memory(array, out) for array in arrays[:-1])
        if not kernel.uses_dots or self.shapes.channels_last or not (out.size and apart):
            return None
        if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            return None
        if addend is not None and addend.shape != self.shapes.output:
            return None
        computer = self._computer(kernel.activation, adds=addend is not None)
        return functools.partial(computer, data, out, addend)

    def direct(self) -> Direct | None:
        if not self._kernel.uses_dots or self.shapes.channels_last or self._adds:
            return None
        if 0 in self.shapes.output:
            return None
        computer = self._computer(self._kernel.activation, adds=False)

        def compute(data: Array, out: Array) -> bool:
            flags = data.flags
            if not (flags.c_contiguous and flags.aligned):
                return False
            computer(data, out, None)
            return True

        return compute

    def _computer(
        self, activation: Activation, *, adds: bool
    ) -> Callable[[Array, Array, Array | None], None]:
        """Return the function that computes contiguous arrays."""
        kernel, sums = self._kernel, self._sums
        assert isinstance(sums, CompiledPlan), "it computes sums"
        dequantizer = self._dequantizer(activation, adds=adds)
        if kernel.reads_codes and kernel.windows is None:
            return functools.partial(sums.compute_codes, dequantizer)
        allocate = allocator(self._codes, np.dtype(np.uint32))
        windows = self._window_sums()

        def compute(data: Array, out: Array, addend: Array | None) -> None:
            codes = data
            if not kernel.reads_codes:
                codes = allocate()
                kernel.quantize(data, codes)
            sums.compute_codes(dequantizer, codes, out, addend, windows and windows(codes))

        return compute

    def _window_sums(self) -> Callable[[Array], Array] | None:
        """Return the function that sums codes alone; None if zero points of weights are 0."""
        plan, shape = self._windows, self._windows_shape
        if plan is None:
            return None
        count = math.prod(shape)
        allocate = allocator((self._window_elements,), np.dtype(np.uint32))

        def compute(codes: Array) -> Array:
            found = allocate()
            plan.compute(codes, found[:count].reshape(shape), None)
            return found

        return compute

    def _in_numpy(self, data: Array, addend: Array | None) -> Array:
        kernel, element = self._kernel, self._kernel.sums.element
        ones = (None,) * kernel.problem.axes
        codes = in_numpy(data, kernel.levels, kernel.problem.axes, element)
        sums = empty(self.shapes.output, element)
        self._sums.compute(codes, sums, None)
        result = sums * kernel.scales[(..., *ones)]
        result += self._whole_offsets()
        if self._windows is not None:
            windows = empty(self._windows_shape, element)
            self._windows.compute(codes, windows, None)
            factors = kernel.scales * kernel.window_wholes + kernel.window_scales
            each = np.repeat(windows, kernel.problem.channels_out, axis=1)
            result += each * factors[(..., *ones)]
        if addend is not None:
            result += addend
        rounded: Array = result.astype(np.float32)
        return rounded

    def _whole_offsets(self) -> Array:
        """Return ``[channels, *Y]``, or ``[channels, 1, ...]``."""
        numbers, classes, begin, chunk, end = self._find_offsets()
        extents = self.shapes.output[2:]
        if classes is None:
            return numbers.reshape(-1, *(1 for _ in extents))
        columns = np.arange(extents[-1])
        inside = (columns >= begin) & (columns < end)
        columns = np.where(inside, begin + (columns - begin) % max(chunk, 1), columns)
        columns = np.where(np.arange(extents[-1]) >= end, columns - end + begin + chunk, columns)
        return numbers[:, classes][..., columns].reshape(-1, *extents)
