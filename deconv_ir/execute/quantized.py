"""Search for layers whose data and filter are quantised, which kernels compute in integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Rounding
from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import Infos
from deconv_ir.ir.quantization import LayerQuantization, Levels, WeightLevels
from deconv_ir.ir.shapes import static

KEEP_LEVELS = {
    **dict.fromkeys(
        (
            "MaxPool", "Reshape", "Squeeze", "Unsqueeze", "Split", "VariadicSplit", "StridedSlice",
            "Slice", "Transpose", "DepthToSpace", "SpaceToDepth", "ShuffleChannels", "Gather",
            "Interpolate", "Pad",
        ),
        1,
    ),
    "Concat": None,
}  # fmt: skip
"""Types whose outputs have elements of some inputs, the first or all, or others on their levels."""
_MOST_LEVELS = 256


class QuantizedLayer(NamedTuple):
    """What is known about a layer before it is prepared."""

    quantization: LayerQuantization
    source: Source
    """The tensor that its kernel quantises."""


class QuantizedLayers:
    """Finds the quantised layers of a graph.

    Parameters
    ----------
    graph : Graph
        The network.
    order : sequence of int
        Its layers, in topological order.
    constant : frozenset of int
        The layers that do not depend on a Parameter.
    infos : sequence
        The outputs of all layers.
    peek : callable
        Returns the array of a constant.
    """

    def __init__(
        self,
        graph: Graph,
        order: Sequence[int],
        constant: frozenset[int],
        infos: Sequence[Infos],
        peek: Callable[[Source], Array],
    ) -> None:
        self._graph, self._constant, self._infos, self._peek = graph, constant, infos, peek
        self._sources = graph.topology.sources
        self._levels: dict[int, Levels] = {}
        self.quantizers: dict[int, Levels] = {}
        """The FakeQuantize layers with one range for all elements."""
        for index in order:
            levels = None if index in constant else self._levels_of(index)
            if levels is not None:
                self._levels[index] = levels

    def find(self, index: int) -> QuantizedLayer | None:
        """Return a layer's quantisation; None if its data or filter is not quantised."""
        rows = self._sources[index]
        if not self._graph.layers[index].operation.can_be_quantized or len(rows) < 2:
            return None
        data, filter_ = rows[:2]
        if data is None or filter_ is None or filter_[0] not in self._constant:
            return None
        levels = self._levels.get(data[0])
        weights = None if levels is None else self._weight_levels(filter_)
        if levels is None or weights is None:
            return None
        source = data
        if data[0] in self.quantizers:
            levels, before = self.quantizers[data[0]], self._sources[data[0]][0]
            assert before is not None, "it has data"
            source = before
        return QuantizedLayer(LayerQuantization(levels, weights), source)

    def why_f32(self, index: int) -> str | None:
        """Return why the data or the weights of a layer are not what `find` wants.

        Returns None if the data are not quantised.
        """
        rows = self._sources[index]
        if not self._graph.layers[index].operation.can_be_quantized or len(rows) < 2:
            return None
        data, filter_ = rows[:2]
        if data is None:
            return None
        if data[0] in self._constant:
            if filter_ is None or filter_[0] not in self._levels:
                return None
            return "the constant is its first input, not the second"
        if data[0] not in self._levels:
            if self._graph.layers[data[0]].type == "FakeQuantize":
                return self._why_no_levels(data[0])
            return self._why_not_quantized(data[0], filter_)
        if filter_ is None or filter_[0] not in self._constant:
            return "both inputs are computed: the weights are not constant"
        if self._weight_levels(filter_) is None and self._before_moves(filter_)[0] is not None:
            return "the weights have several scales for an output channel"
        return "the weights are not quantised: neither FakeQuantize nor integers with a scale"

    def _why_no_levels(self, index: int) -> str:
        """Return why the results of a FakeQuantize are not on levels."""
        operation: Any = self._graph.layers[index].operation
        if operation.levels > _MOST_LEVELS:
            return f"the data have {operation.levels} levels, more than {_MOST_LEVELS}"
        element_type = self._infos[index][0].element_type
        if element_type is not None and element_type.name != "f32":
            return f"the data are {element_type.name}, not f32"
        return "the ranges of the data are not constant numbers in order, one or for channels"

    def _why_not_quantized(self, before: int, filter_: Source | None) -> str | None:
        """Return why data from another layer than FakeQuantize are not on levels.

        Returns None if neither they nor the weights were meant to be.
        """
        kind = self._graph.layers[before].type
        carried = self._sources[before][: KEEP_LEVELS[kind]] if kind in KEEP_LEVELS else ()
        if any(source is not None and source[0] in self._levels for source in carried):
            if kind == "Concat":
                return "the data come from a Concat of tensors on different levels"
            return f"the data come from {kind}, whose results are not on the levels of its data"
        if filter_ is None or filter_[0] not in self._constant:
            return None
        if self._weight_levels(filter_) is None:
            return None
        return f"the data are not quantised: they come from {kind}"

    def _levels_of(self, index: int) -> Levels | None:
        """Return the levels on which the outputs of a layer lie."""
        kind = self._graph.layers[index].type
        if kind == "FakeQuantize":
            own = self._own_levels(index)
            if own is None:
                return None
            self.quantizers[index] = own
            # Values of a reversed output range have their codes in reverse.
            return own.of_results if min(own.steps) > 0 else None
        if kind not in KEEP_LEVELS:
            return None
        rows = self._sources[index][: KEEP_LEVELS[kind]]
        operation: Any = self._graph.layers[index].operation
        if kind == "MaxPool" and operation.rounding_type is not Rounding.FLOOR:
            return None  # windows without data are on no level
        if kind == "Interpolate" and not operation.only_moves:
            return None
        found = {None if s is None else self._levels.get(s[0]) for s in rows}
        levels = found.pop() if len(found) == 1 else None
        if levels is None or kind == "MaxPool":
            return levels
        if kind == "Pad" and operation.pad_mode.value == "constant":
            value, number = (*self._sources[index], None)[3], 0.0
            if value is not None and value[0] not in self._constant:
                return None
            if value is not None:
                number = float(self._peek(value).reshape(-1)[0])
            if levels.code_of(number) is None:
                return None
        # Those of each channel would have to be moved as well.
        return levels if levels.is_single else None

    def _own_levels(self, index: int) -> Levels | None:
        """Return the levels of a FakeQuantize; None if they are others than one for a channel."""
        operation: Any = self._graph.layers[index].operation
        rows, shape = self._sources[index], self._infos[index][0].shape
        if operation.levels > _MOST_LEVELS or not self._is_f32((index, 0)) or shape is None:
            return None
        if operation.realigns:
            return None
        ends: list[Array] = []
        for source in rows[1:]:
            if source is None or source[0] not in self._constant:
                return None
            array = self._peek(source)
            by_axis = (1,) * (len(shape) - array.ndim) + array.shape
            channels = max(by_axis[1:2], default=1)
            if array.ndim > len(shape) or array.size != channels or not channels:
                return None
            ends.append(array.reshape(-1).astype(float))
        count = max(end.size for end in ends)
        if any(end.size not in (1, count) or not _all_finite(end) for end in ends):
            return None
        low, high, output_low, output_high = (
            tuple(map(float, end if end.size == count else list(end) * count)) for end in ends
        )
        levels = Levels(operation.levels, low, high, output_low, output_high)
        if any(a >= b for a, b in zip(low, high, strict=True)) or 0 in levels.steps:
            return None
        return levels

    def _is_f32(self, source: Source) -> bool:
        element_type = self._infos[source[0]][source[1]].element_type
        return element_type is not None and element_type.name == "f32"

    def _weight_levels(self, source: Source) -> WeightLevels | None:
        """Return the levels of a constant, broadcast to it."""
        levels, moved = self._before_moves(source)
        if levels is None:
            return None
        arrays: list[Array] = []
        for array in levels[:2]:
            now: Array | None = array
            for after in reversed(moved):
                kind = self._graph.layers[after[0]].type
                if kind != "Convert":
                    now = (self._turned if kind == "Transpose" else self._reshaped)(now, after)
            if now is None:
                return None
            arrays.append(now)
        return levels._replace(scales=arrays[0], zero_points=arrays[1])

    def _before_moves(self, source: Source) -> tuple[WeightLevels | None, list[Source]]:
        """Return the levels of the constant whose elements are moved, and the moves, last first."""
        moved: list[Source] = []
        while self._moves(source):
            moved.append(source)
            before = self._sources[source[0]][0]
            assert before is not None, "it has data"
            source = before
        return self._levels_before(source), moved

    def _moves(self, source: Source) -> bool:
        """Whether a layer moves its elements, or widens them."""
        return self._graph.layers[source[0]].type in ("Reshape", "Transpose") or self._widens(
            source
        )

    def _widens(self, source: Source) -> bool:
        """Whether a layer converts real numbers to f32."""
        if self._graph.layers[source[0]].type != "Convert" or not self._is_f32(source):
            return False
        before = self._sources[source[0]][0]
        return before is not None and not self._is_integer(before)

    def _levels_before(self, source: Source) -> WeightLevels | None:
        """Return the levels of a FakeQuantize, or of integers less zero points, with a scale."""
        import numpy as np

        layer, rows = self._graph.layers[source[0]], self._sources[source[0]]
        operation: Any = layer.operation
        if operation.is_product:
            for codes, scale in (rows, rows[::-1]):
                if codes is not None and scale is not None:
                    found = self._integers(codes)
                    if found is not None:
                        rounded = found.rounded and self._is_f32(source)
                        scaled = found._replace(scales=self._peek(scale), rounded=rounded)
                        return self._aligned(scaled, source)
        found = self._integers(source)
        if found is not None:
            return self._aligned(found, source)
        is_quantizer = layer.type == "FakeQuantize" and not operation.realigns
        if not is_quantizer or operation.levels > _MOST_LEVELS:
            return None
        low, high = (self._peek(s).astype(float) for s in rows[3:] if s is not None)
        # Infinite and other useless ends are found later.
        with np.errstate(all="ignore"):
            steps = high - low
            zero_points = np.where(steps == 0, 0, -low * (operation.levels - 1) / steps)
            scales = steps / (operation.levels - 1)
        levels = WeightLevels(scales, zero_points, 0, rounded=self._is_f32(source))
        return self._aligned(levels, source)

    def _integers(self, source: Source) -> WeightLevels | None:
        """Return the levels of constants that were converted from integers, less zero points."""
        import numpy as np

        zero_points: Array = np.zeros(())
        codes, rounded = self._before_widening(source), True
        if codes is not None and self._graph.layers[codes[0]].type == "Subtract":
            of_difference = codes
            codes, other = self._sources[codes[0]]
            if codes is None or other is None:
                return None
            zero_points = self._peek(other).astype(float)
            # Differences of integers up to 255 are exact in f16 and bf16.
            whole = (zero_points % 1 == 0) & (abs(zero_points) < 128)
            rounded = self._is_f32(of_difference) or bool(whole.all())
            codes = self._before_widening(codes)
        if codes is None or self._graph.layers[codes[0]].type != "Convert":
            return None
        before = self._sources[codes[0]][0]
        if before is None or not self._is_integer(before):
            return None
        element_type = self._infos[before[0]][before[1]].element_type
        assert element_type is not None, "it is integral"
        lowest = -128 if element_type.name.startswith("i") else 0
        return WeightLevels(np.ones(()), zero_points, lowest, rounded)

    def _before_widening(self, source: Source | None) -> Source | None:
        """Return a tensor before it is converted to f32."""
        while source is not None and self._widens(source):
            source = self._sources[source[0]][0]
        return source

    def _is_integer(self, source: Source) -> bool:
        element_type = self._infos[source[0]][source[1]].element_type
        return element_type is not None and element_type.is_integer

    def _aligned(self, levels: WeightLevels, source: Source) -> WeightLevels | None:
        """Return levels with the rank of a constant."""
        import numpy as np

        rank = len(static(self._infos[source[0]][source[1]].shape))
        arrays = np.broadcast_arrays(*(one.astype(float) for one in levels[:2]))
        if arrays[0].ndim > rank:
            return None
        shape = (1,) * (rank - arrays[0].ndim) + arrays[0].shape
        scales, zero_points = (one.reshape(shape) for one in arrays)
        return levels._replace(scales=scales, zero_points=zero_points)

    def _turned(self, scales: Array | None, source: Source) -> Array | None:
        """Return scales for a constant whose axes were permuted."""
        order = self._sources[source[0]][1]
        if scales is None or order is None:
            return None
        axes = self._peek(order).reshape(-1).tolist()
        return scales.transpose(axes if axes else range(scales.ndim)[::-1])

    def _reshaped(self, scales: Array | None, source: Source) -> Array | None:
        """Return scales of the first axis for a constant in which that became several."""
        if scales is None:
            return None
        shape = static(self._infos[source[0]][source[1]].shape)
        if scales.size == 1:
            return scales.reshape((1,) * len(shape))
        for count in range(1, len(shape) + 1):
            if scales.size == scales.shape[0] == math.prod(shape[:count]):
                return scales.reshape(shape[:count] + (1,) * (len(shape) - count))
        return None


def _all_finite(numbers: Array) -> bool:
    return all(map(math.isfinite, numbers))
