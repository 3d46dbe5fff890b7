"""The documents' formulas on top of torch, without any code under test.

Torch gives the natural output (no padding, no output_padding) in float64.
The output is a window on it: one `pad_begin` and one extent an axis, from
the formulas of each document, written here a second time, on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .problems import Problem
from .runtimes import torch

__all__ = [
    "Window",
    "backward_data_window",
    "conv_transpose_window",
    "is_pointwise",
    "openvino_window",
    "transposed",
]

Window = list[tuple[int, int]]
"""(pad_begin, output extent) of each spatial axis."""

_TORCH: dict[int, Callable[..., torch.Tensor]] = {
    1: torch.nn.functional.conv_transpose1d,
    2: torch.nn.functional.conv_transpose2d,
    3: torch.nn.functional.conv_transpose3d,
}


def transposed(
    problem: Problem, data: np.ndarray, filters: np.ndarray, window: Window
) -> np.ndarray:
    """Return the window on the natural output, in float64: [N, C, spatial...]."""
    full = _TORCH[len(problem.extents)](
        torch.from_numpy(np.asarray(data, np.float64)),
        torch.from_numpy(np.asarray(filters, np.float64)),
        stride=problem.strides,
        dilation=problem.dilations,
        groups=problem.groups,
    ).numpy()
    output = np.zeros((*full.shape[:2], *(extent for _, extent in window)))
    source: list[slice] = [slice(None)] * 2
    target: list[slice] = [slice(None)] * 2
    for (begin, extent), natural in zip(window, problem.natural, strict=True):
        start, stop = max(begin, 0), max(min(begin + extent, natural), max(begin, 0))
        source.append(slice(start, stop))
        target.append(slice(start - begin, stop - begin))
    output[tuple(target)] = full[tuple(source)]
    return output


def _axes(problem: Problem, shape: Sequence[int] | None) -> list[tuple[int, ...]]:
    return list(
        zip(
            problem.natural,
            problem.extents,
            problem.strides,
            problem.pads_begin,
            problem.pads_end,
            problem.output_padding,
            shape or problem.extents,
            strict=True,
        )
    )


def openvino_window(problem: Problem, semantics: str) -> Window:
    """ConvolutionBackpropData-1 and its Group form, 'Detailed description'.

    `semantics` is "spec", or "openvino": the CPU runtime clamps the total at
    0 for same_*, and otherwise cuts or fills at the end only.
    """
    window = []
    for natural, _, _, begin, end, extra, shape in _axes(problem, problem.output_shape):
        if problem.auto_pad != "explicit":
            begin = end = 0
        if problem.output_shape is None:
            window.append((begin, natural - begin - end + extra))
            continue
        total = natural - shape + extra
        if semantics == "spec":
            first = total - total // 2 if problem.auto_pad == "same_upper" else total // 2
        elif problem.auto_pad == "same_upper":
            first = max(0, total) - max(0, total) // 2
        elif problem.auto_pad == "same_lower":
            first = max(0, total) // 2
        else:
            first = begin
        window.append((first, shape))
    return window


def is_pointwise(problem: Problem) -> bool:
    """Return whether OpenVINO computes the problem as a matrix product and ignores pads.

    It does so for kernels of one element and strides of 1 where the output is
    as large as the data, though pads and output_padding may have shifted it.
    """
    window = openvino_window(problem, "openvino")
    return (
        all(k == 1 for k in problem.kernel)
        and all(s == 1 for s in problem.strides)
        and tuple(extent for _, extent in window) == problem.extents
        and any(begin for begin, _ in window)
    )


def conv_transpose_window(problem: Problem) -> Window:
    """oneDNN Graph ConvTranspose-1: SAME_* split totals the other way round than in OpenVINO."""
    window = []
    for natural, x, stride, begin, end, extra, _ in _axes(problem, None):
        total = natural - stride * x  # = E - s
        match problem.auto_pad:
            case "same_upper":
                begin, end = total // 2, total - total // 2
            case "same_lower":
                begin, end = total - total // 2, total // 2
            case "valid":
                begin = end = 0
        window.append((begin, natural - begin - end + extra))
    return window


def backward_data_window(problem: Problem) -> Window:
    """oneDNN Graph ConvolutionBackwardData: `dst_shape` is required."""
    assert problem.output_shape is not None
    window = []
    for natural, _, _, begin, _, extra, shape in _axes(problem, problem.output_shape):
        total = natural - shape + extra
        match problem.auto_pad:
            case "same_upper":
                begin = total - total // 2
            case "same_lower":
                begin = total // 2
            case "valid":
                begin = 0
        window.append((begin, shape))
    return window
