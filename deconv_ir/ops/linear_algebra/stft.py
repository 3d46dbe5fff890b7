"""OpenVINO STFT-15 and ISTFT-16: spectra of the frames of a signal, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, boolean, operation
from deconv_ir.ops.checks import (
    check_rank,
    check_shape,
    check_single,
    known_integer,
    merged_type,
    misfit,
    only,
)
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.values import as_dim

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case

_FRAMES = ("frame_size", "frame_step")


def _check_frames(inputs: Infos, window: TensorInfo) -> tuple[int | None, int | None]:
    """Check frame_size and frame_step, and return their known values."""
    for info, name in zip(inputs, _FRAMES, strict=True):
        check_single(info, name, "integer")
    size, step = (known_integer(i, n) for i, n in zip(inputs, _FRAMES, strict=True))
    for value, name in ((size, "frame_size"), (step, "frame_step")):
        if value is not None and value < 1:
            raise misfit("frames", name, "be positive", value, ">= 1")
    check_rank(window, "window", 1)
    length = window.shape[0] if window.shape else UNKNOWN
    if size is not None and isinstance(length, int) and length > size:
        must = f"have {size} elements at most"
        raise misfit("frames", "window", must, length, f"<= {size}")
    return size, step


def _padded(window: Array, size: int) -> Any:
    """Return a window zero-padded on both sides to the length of a frame."""
    before = (size - len(window)) // 2
    return np.pad(widen(window), (before, size - len(window) - before))


@operation(
    "STFT-15(signal, window, frame_size, frame_step)",
    "f32[2,48], f32[16], i64[]{16}, i64[]{8} -> f32[2,5,9,2] | transpose_frames=false",
    "f32[48], f32[12], i64[]{16}, i64[]{16} -> f32[9,3,2] | transpose_frames=true",
)
class STFT(Operation):
    """Spectra of the frames of a signal, each multiplied by a window."""

    scratch_ratios = (1, 2)

    formula = "signal {shape[signal]}, frame_size {element[frame_size]}, step {element[frame_step]}"

    transpose_frames: bool = attribute(boolean())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs[:2], self.inputs, "float")
        signal = inputs[0].shape
        check_rank(inputs[0], "signal", 1, 2)
        size, step = _check_frames(inputs[2:], inputs[1])
        if signal is None:
            return (TensorInfo(None, element_type),)
        *batch, length = signal
        bins: Dim = interval(1, None) if size is None else size // 2 + 1
        count: Dim = interval(1, None)
        if size is not None:
            low, high = bounds(length)
            if high is not None and high < size:
                message = f"a frame has {size} elements, the signal has {length}"
                raise ShapeError(message, expected=f"<= {length}", actual=size, rule="frames")
            most = None if high is None else (high - size) // (step or 1) + 1
            least = 1 if step is None else max(0, low - size) // step + 1
            count = interval(least, most)
        found = (bins, count) if self.transpose_frames else (count, bins)
        return (TensorInfo((*batch, *found, 2), element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=16)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        from scipy import fft

        signal = widen(inputs[0])
        size, step = (int(only(a, n)) for a, n in zip(inputs[2:], _FRAMES, strict=True))
        frames = np.lib.stride_tricks.sliding_window_view(signal, size, axis=-1)[..., ::step, :]
        spectra = fft.rfft(frames * _padded(inputs[1], size))
        if self.transpose_frames:
            spectra = np.swapaxes(spectra, -1, -2)
        parts = np.stack([spectra.real, spectra.imag], -1)
        return (narrow(parts, inputs[0].dtype),)


@operation(
    "ISTFT-16(data, window, frame_size, frame_step, signal_length?)",
    "f32[2,9,5,2], f32[16], i64[]{16}, i64[]{8} -> f32[2,48] | center=false normalized=false",
    "f32[9,5,2], f32[16], i64[]{16}, i64[]{8}, i64[]{40} -> f32[40] | center=true normalized=true",
)
class ISTFT(Operation):
    """Signal reconstructed from the spectra of its frames by overlap-add."""

    scratch_ratios = (4.5, 5.5)

    formula = "data {shape[data]}, frame_size {element[frame_size]}, step {element[frame_step]}"

    center: bool = attribute(boolean(), False)
    normalized: bool = attribute(boolean(), False)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs[:2], self.inputs, "float")
        check_rank(inputs[0], "data", 3, 4)
        size, step = _check_frames(inputs[2:4], inputs[1])
        bins = UNKNOWN if size is None else size // 2 + 1
        data = inputs[0].shape
        wanted = (*(UNKNOWN,) * (1 if data is None else len(data) - 3), bins, UNKNOWN, 2)
        found = None if data is None else check_shape(inputs[0], "data", wanted)
        length: Dim = UNKNOWN
        if len(inputs) > 4:
            check_single(inputs[4], "signal_length", "integer")
            length = as_dim(inputs[4].value[0]) if inputs[4].value else UNKNOWN
        elif found is not None and size is not None and step is not None:
            low, high = (
                None if n is None else max(0, self._length(max(n, 1), size, step))
                for n in bounds(found[-2])
            )
            length = interval(low or 0, high)
        if found is None:
            return (TensorInfo(None, element_type),)
        return (TensorInfo((*found[:-3], length), element_type),)

    def _length(self, frames: int, size: int, step: int) -> int:
        whole = (frames - 1) * step + size
        return whole - 2 * (size // 2) if self.center else whole

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=16)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        from scipy import fft

        data = widen(inputs[0])
        size, step = (int(only(a, n)) for a, n in zip(inputs[2:], _FRAMES, strict=False))
        window = _padded(inputs[1], size)
        spectra = np.swapaxes(data[..., 0] + 1j * data[..., 1], -1, -2)
        frames = fft.irfft(spectra, size) * window
        if self.normalized:
            frames = frames * np.sqrt(data.dtype.type(size))
        count = frames.shape[-2]
        signal = np.zeros((*frames.shape[:-2], (count - 1) * step + size), data.dtype)
        weight = np.zeros(signal.shape[-1], data.dtype)
        for number in range(count):
            place = slice(number * step, number * step + size)
            signal[..., place] += frames[..., number, :]
            weight[place] += window * window
        signal = np.where(weight > 0, signal / np.where(weight > 0, weight, 1), signal)
        start = size // 2 if self.center else 0
        wanted = self._length(count, size, step)
        if len(inputs) > 4:
            wanted = int(only(inputs[4], "signal_length"))
        signal = signal[..., start : start + wanted]
        missing = max(0, wanted - signal.shape[-1])
        signal = np.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)])
        return (narrow(signal, inputs[0].dtype),)
