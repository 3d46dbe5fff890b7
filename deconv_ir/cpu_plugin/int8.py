"""Whether OpenVINO's CPU plugin computes a convolution in integers; if not, the first reason.

For processors with AVX-512 or AVX2, without AMX: their convolutions take data of u8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from deconv_ir.cpu_plugin.conditions import Int8Answer, Int8Condition, UnmetCondition
from deconv_ir.cpu_plugin.constants import Constants
from deconv_ir.cpu_plugin.origins import Origin, Origins
from deconv_ir.cpu_plugin.quantizers import (
    LEVELS,
    JoinedRanges,
    MappedCodes,
    OutputRanges,
    Quantized,
    ScaledCodes,
    map_aligned,
    map_codes,
    per_channel,
    zero_point_fits,
)
from deconv_ir.ir.graph import Graph, Layer, Source
from deconv_ir.ir.operation import Context, Infos
from deconv_ir.ops.convolution.dims import OUTPUT_CHANNEL_AXES

TYPES: Final = tuple(OUTPUT_CHANNEL_AXES)
"""Types of layers that have an answer."""
_BOTH: Final = ("u8", "i8")
_ONLY_U8: Final = ("u8",)
_LAST_STRIDE: Final = 3
_RANKS: Final = (3, 4, 5)
_EQUAL: Final = 1e-6
_MOST_STEPS: Final = 4
"""Maximum layers between the quantiser of a filter and the convolution."""
_MOVES: Final = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")


class Int8Layers:
    """Answers for the layers of a graph.

    Parameters
    ----------
    graph : Graph
        The network.
    outputs : sequence
        The infos of each layer's outputs.
    context : Context
        The weights.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Infos], context: Context) -> None:
        self._graph = graph
        self._sources = graph.topology.sources
        self._constants = Constants(graph, outputs, context)
        self._origins = Origins(graph, self._constants)
        self._has_quantizer = any(self._is_quantizer(i) for i in range(len(graph.layers)))
        self._only_u8: dict[int, int] = {}
        """Group of FakeQuantize layers -> a layer that makes the plugin choose u8 for them."""
        self._aligned: set[int] = set()
        """Groups of FakeQuantize layers that have one range where their outputs are joined."""
        for index, layer in enumerate(graph.layers):
            if layer.type in OUTPUT_CHANNEL_AXES:
                self._restrict(index, layer)

    def answer(self, index: int) -> Int8Answer | None:
        """Return the answer for a layer; None if neither data nor weights are quantised.

        Parameters
        ----------
        index : int
            A layer of one of `TYPES`.
        """
        layer, rows = self._graph.layers[index], self._sources[index]
        if layer.type not in OUTPUT_CHANNEL_AXES or len(rows) < 2 or None in rows[:2]:
            return None
        data, weights = self._data(index), self._weights(index)
        if data is None and weights is None:
            return None
        found = self._fault(index, layer, data, weights)
        if isinstance(found, str):
            return Int8Answer(None, found)
        return Int8Answer(True) if found is None else Int8Answer(False, found.text, found.condition)

    def _fault(
        self, index: int, layer: Layer, data: Origin | None, weights: Quantized | None
    ) -> UnmetCondition | str | None:
        """Return the first condition that does not hold, or why it is not known."""
        if layer.type == "GroupConvolutionBackpropData":
            return UnmetCondition(
                Int8Condition.OPERATION, "a GroupConvolutionBackpropData is never quantised"
            )
        shape = self._shape(self._source(index, 0))
        if shape is None:
            return "the rank of the data is not known"
        if len(shape) not in _RANKS:
            return UnmetCondition(
                Int8Condition.RANK, f"the data have rank {len(shape)}, not 3, 4 or 5"
            )
        if not self._has_quantizer:
            text = "the network has no FakeQuantize with 15, 16, 255 or 256 levels"
            return UnmetCondition(Int8Condition.NETWORK, text)
        return (
            self._data_fault(index, layer, data)
            or self._weights_fault(index, layer, weights)
            or self._layer_fault(index, layer)
        )

    def misread_ranges(self) -> dict[int, int]:
        """Return the FakeQuantize layers whose ranges the plugin misreads, and who takes them.

        Their output_low and output_high have different numbers of elements.
        """
        found: dict[int, int] = {}
        for index, layer in enumerate(self._graph.layers):
            origin = self._data(index) if layer.type in _IN_INTEGERS else None
            weights = self._weights(index) if origin is not None else None
            if origin is None or weights is None or not origin.quantized.is_misread:
                continue
            if self._weights_fault(index, layer, weights) is None:
                found.setdefault(origin.quantized.layer, index)
        return found

    # Data

    def _data_fault(
        self, index: int, layer: Layer, origin: Origin | None
    ) -> UnmetCondition | str | None:
        if origin is None:
            at = self._graph.layers[self._origins.computed_by(self._source(index, 0))]
            text = f"the data, which {self._name(at)} computes, are not quantised"
            return UnmetCondition(Int8Condition.DATA_QUANTIZED, text)
        found = origin.quantized
        at = self._graph.layers[found.layer]
        of_layer = f"of {self._name(at)}"
        if found.fault is not None:
            return UnmetCondition(found.fault.condition, f"{self._name(at)} {found.fault.text}")
        if found.form is None:
            return f"{self._name(at)}: {found.doubt}"
        if found.axes - {1}:
            axes = ", ".join(map(str, sorted(found.axes)))
            return UnmetCondition(
                Int8Condition.DATA_AXIS, f"ranges {of_layer} vary along axis {axes}"
            )
        codes = self._codes_of(index, layer, origin)
        if codes is None or isinstance(codes, str):
            fault = UnmetCondition(
                Int8Condition.DATA_SCALES, f"{self._name(at)} joins ranges that differ"
            )
            return fault if codes is None else f"{self._name(at)}: {codes}"
        element_type, points, scales = codes
        if not all(map(math.isfinite, (*points, *scales))):
            return f"ranges {of_layer} are not finite"
        count = self._groups(index, layer)
        if count is None and len(set(scales)) > 1:
            return "the number of groups is not known"
        size = math.ceil(len(scales) / (count or 1))
        parts = [scales[i : i + size] for i in range(0, len(scales), size)]
        if any(len(set(part)) > 1 for part in parts):
            if all(max(part) - min(part) <= _EQUAL * abs(max(part)) for part in parts):
                return f"scales {of_layer} are equal but for rounding"
            of = "a group" if (count or 1) > 1 else "the data"
            return UnmetCondition(
                Int8Condition.DATA_SCALES, f"channels of {of} have several scales {of_layer}"
            )
        wrong = self._zero_point_fault(index, layer, origin, (element_type, points))
        if wrong is None and any(points):
            return self._unclear_zero_point(index, origin, points)
        return wrong

    def _unclear_zero_point(
        self, index: int, origin: Origin, points: tuple[float, ...]
    ) -> UnmetCondition | str | None:
        """Return why it is not known whether the zero point of data is passed, or used."""
        if origin.unclear is not None:
            name = self._name(self._graph.layers[origin.unclear])
            return f"{name} may not pass the zero point of the data"
        if origin.steps > 1:
            return f"the zero point of the data passes {origin.steps} layers"
        weights = self._weights(index)
        if weights is not None and (weights.layer, 0) not in self._constants:
            if not any(map(_rounded, points)):
                return "the zero point of the data is near 0, and the weights are computed"
            name = self._name(self._graph.layers[weights.layer])
            text = f"the data have a zero point, and {name} quantises weights that are computed"
            return UnmetCondition(Int8Condition.WEIGHTS_CONSTANT, text)
        return None

    def _zero_point_fault(
        self, index: int, layer: Layer, origin: Origin, codes: tuple[str, tuple[float, ...]]
    ) -> UnmetCondition | None:
        """Return the fault of the zero points of data."""
        element_type, points = codes
        if not any(points):
            return None
        at = self._graph.layers[origin.quantized.layer]
        shown = f"{points[0]:.4g}" if len(set(points)) == 1 else "several"
        zero_point = f"zero point {shown} of {self._name(at)}"
        condition = Int8Condition.DATA_ZERO_POINT
        if layer.type == "ConvolutionBackpropData":
            group = self._origins.group(origin)
            other = None if group is None else self._only_u8.get(group)
            alone = None if other is None else self._codes_of(index, layer, origin, _BOTH)
            if other is not None and isinstance(alone, tuple) and not any(alone[1]):
                name = self._name(self._graph.layers[other])
                text = f"{zero_point}, whose codes are u8 because {name} takes them, too"
                return UnmetCondition(condition, text)
            return UnmetCondition(condition, f"{zero_point}: a deconvolution takes none")
        if self._is_depthwise(index, layer) and len(self._data_shape(index)) == max(_RANKS):
            return UnmetCondition(
                condition, f"{zero_point}: a depthwise convolution of rank 5 takes none"
            )
        if not zero_point_fits(element_type, points):
            return UnmetCondition(condition, f"{zero_point} is not a code of {element_type}")
        form = origin.quantized.form
        if isinstance(form, ScaledCodes) and form.points_type not in ("", element_type):
            text = f"{zero_point} is {form.points_type}, and the data are {element_type}"
            return UnmetCondition(condition, text)
        if origin.without_zero_point is not None:
            stop = self._name(self._graph.layers[origin.without_zero_point])
            return UnmetCondition(condition, f"{zero_point} does not pass {stop}")
        if element_type == "i8" and any(abs(point) >= 0.5 for point in points):
            return UnmetCondition(condition, f"{zero_point}: data of i8 have none")
        return None

    def _codes_of(
        self, index: int, layer: Layer, origin: Origin, allowed: tuple[str, ...] | None = None
    ) -> MappedCodes | str | None:
        """Return element type, zero points and scales of data.

        Returns a text if they are not known, None if joined ranges are too different.
        """
        form = origin.quantized.form
        if isinstance(form, ScaledCodes):
            return MappedCodes(form.element_type, form.zero_points, form.scales)
        group = self._origins.group(origin)
        if allowed is None:
            only_u8 = group in self._only_u8 or self._takes_only_u8(index, layer)
            allowed = _ONLY_U8 if only_u8 else _BOTH
        if isinstance(form, JoinedRanges):
            if not layer.type.startswith("Group"):
                return map_aligned(form, allowed)
            if group in self._aligned:
                return "another layer makes the plugin align the ranges that it joins"
            ranges = per_channel(form)
            return None if ranges is None else map_codes(ranges, allowed)
        assert isinstance(form, OutputRanges)
        return map_codes(form, allowed)

    def _restrict(self, index: int, layer: Layer) -> None:
        """Note what a layer asks of the quantisers of its data."""
        origin, weights = self._data(index), self._weights(index)
        group = None if origin is None else self._origins.group(origin)
        if group is None or weights is None or weights.fault is not None:
            return
        if self._takes_only_u8(index, layer):
            self._only_u8.setdefault(group, index)
        if not layer.type.startswith("Group"):
            self._aligned.add(group)

    def _takes_only_u8(self, index: int, layer: Layer) -> bool:
        if layer.type == "Convolution":
            return True
        shape = self._shape(self._source(index, 0)) if layer.type == "GroupConvolution" else None
        return layer.type == "GroupConvolution" and (shape is None or len(shape) < max(_RANKS))

    def _data(self, index: int) -> Origin | None:
        rows = self._sources[index]
        return None if not rows or rows[0] is None else self._origins.of(rows[0])

    # Weights

    def _weights(self, index: int) -> Quantized | None:
        """Return how a filter was quantised; its shape is that of the filter."""
        rows = self._sources[index]
        source = rows[1] if len(rows) > 1 else None
        moves: list[int] = []
        for _ in range(_MOST_STEPS):
            if source is None:
                return None
            found = self._origins.quantizer(source, data=False)
            if found is not None:
                return self._moved(found, index, moves)
            if self._graph.layers[source[0]].type not in _MOVES:
                return None
            moves.append(source[0])
            source = self._source(source[0], 0)
        return None

    def _moved(self, found: Quantized, index: int, moves: list[int]) -> Quantized:
        """Return a quantisation after layers that move elements of a filter."""
        if not moves or not found.axes:
            return found._replace(shape=()) if moves else found
        layer, order = self._graph.layers[moves[0]], None
        doubt = found._replace(form=None, doubt=f"layer {layer.label} moves the axes of its scales")
        if len(moves) > 1:
            return doubt
        after, before = self._shape((moves[0], 0)), self._shape(self._source(moves[0], 0))
        if layer.type == "Transpose" and len(self._sources[moves[0]]) > 1:
            order = self._constants.numbers(self._source(moves[0], 1))
        if order is not None and len(order) == len(found.shape):
            return found._replace(shape=tuple(found.shape[int(axis)] for axis in order))
        grouped = self._graph.layers[index].type.startswith("Group")
        if layer.type == "Reshape" and grouped and after and before and found.axes == {0}:
            first = after[:2]
            if all(isinstance(d, int) for d in (*first, before[0])):
                extents = tuple(d for d in first if isinstance(d, int))
                if math.prod(extents) == before[0]:
                    return found._replace(shape=(*extents, *(1,) * (len(after) - 2)))
        return doubt

    def _weights_fault(
        self, index: int, layer: Layer, found: Quantized | None
    ) -> UnmetCondition | str | None:
        if found is None:
            text = "the weights are not quantised"
            return UnmetCondition(Int8Condition.WEIGHTS_QUANTIZED, text)
        at = self._graph.layers[found.layer]
        name = self._name(at)
        constant = (found.layer, 0) in self._constants
        if found.fault is not None:
            if found.fault.condition is Int8Condition.WEIGHTS_LEVELS and not constant:
                return f"{name}, whose weights are computed, {found.fault.text}"
            return UnmetCondition(found.fault.condition, f"{name} {found.fault.text}")
        if not constant and (isinstance(found.form, ScaledCodes) or layer.type not in _COMPUTED):
            text = f"the weights, which {name} quantises, are not constants"
            return UnmetCondition(Int8Condition.WEIGHTS_CONSTANT, text)
        if found.form is None:
            return f"{name}: {found.doubt}"
        if isinstance(found.form, ScaledCodes):
            if found.form.element_type != "i8":
                text = f"the weights of {name} are {found.form.element_type}, not i8"
                return UnmetCondition(Int8Condition.WEIGHTS_TYPE, text)
            points = found.form.zero_points
            if not all(map(math.isfinite, (*points, *found.form.scales))):
                return f"scales of {name} are not finite"
        else:
            assert isinstance(found.form, OutputRanges)
            mapped = map_codes(found.form, ("i8",))
            points = mapped.zero_points
            if not all(map(math.isfinite, (*points, *mapped.scales))):
                return f"ranges of {name} are not finite"
            if layer.type == "ConvolutionBackpropData" and points:
                return self._weights_zero_point(name, points)
        if any(_rounded(point) for point in points):
            return self._weights_zero_point(name, points)
        return self._weights_axis_fault(index, layer, found)

    def _weights_axis_fault(
        self, index: int, layer: Layer, found: Quantized
    ) -> UnmetCondition | str | None:
        form, name = found.form, self._name(self._graph.layers[found.layer])
        if isinstance(form, ScaledCodes) and len(form.scales) == 1:
            return None  # zero points that are 0 have no axes
        allowed = OUTPUT_CHANNEL_AXES[layer.type]
        if wrong := sorted(found.axes.difference(allowed)):
            axes = ", ".join(map(str, wrong))
            text = f"scales of {name} vary along axis {axes} of the weights"
            return UnmetCondition(Int8Condition.WEIGHTS_AXIS, text)
        shape = self._shape(self._source(index, 1)) or ()
        whole = {axis for axis in allowed if axis < len(shape) and shape[axis] != 1}
        if found.axes and found.axes < whole:
            return f"scales of {name} vary along one axis of groups and output channels only"
        return None

    def _weights_zero_point(self, name: str, points: tuple[float, ...]) -> UnmetCondition:
        shown = f"{points[0]:.4g}" if len(set(points)) == 1 else "several"
        text = f"the weights of {name} have a zero point, {shown} in i8"
        return UnmetCondition(Int8Condition.WEIGHTS_ZERO_POINT, text)

    # The layer itself

    def _layer_fault(self, index: int, layer: Layer) -> UnmetCondition | str | None:
        if layer.type != "ConvolutionBackpropData":
            return None
        rows = self._sources[index]
        if len(rows) > 2 and (rows[2] is None or self._constants.numbers(rows[2]) is None):
            return UnmetCondition(Int8Condition.OUTPUT_SHAPE, "its output_shape is not a constant")
        operation: Any = layer.operation
        if not operation.implemented:
            return "its attributes cannot be read"
        strides = operation.strides or ()
        shape = self._shape(self._source(index, 1))
        if strides and strides[-1] > _LAST_STRIDE:
            return UnmetCondition(
                Int8Condition.LAST_STRIDE, f"its last stride is {strides[-1]}, more than 3"
            )
        for axis, stride in enumerate(strides):
            extent = None if shape is None or axis + 2 >= len(shape) else shape[axis + 2]
            if isinstance(extent, int) and extent < stride:
                text = f"on spatial axis {axis} its kernel of {extent} is smaller than its stride"
                return UnmetCondition(Int8Condition.KERNEL, f"{text} of {stride}")
        return None

    def _data_shape(self, index: int) -> tuple[Any, ...]:
        return self._shape(self._source(index, 0)) or ()

    def _is_depthwise(self, index: int, layer: Layer) -> bool:
        shape = self._shape(self._source(index, 1)) or ()
        return layer.type == "GroupConvolution" and shape[1:3] == (1, 1)

    def _groups(self, index: int, layer: Layer) -> int | None:
        if not layer.type.startswith("Group"):
            return 1
        shape = self._shape(self._source(index, 1))
        return shape[0] if shape and isinstance(shape[0], int) and shape[0] > 0 else None

    def _is_quantizer(self, index: int) -> bool:
        layer = self._graph.layers[index]
        if layer.type != "FakeQuantize" or not layer.operation.implemented:
            return False
        operation: Any = layer.operation
        rows = self._sources[index][1:]
        return operation.levels in LEVELS and all(
            source is not None and source in self._constants for source in rows
        )

    def _source(self, index: int, port: int) -> Source:
        source = self._sources[index][port]
        assert source is not None, "the layer is connected"
        return source

    def _shape(self, source: Source) -> tuple[Any, ...] | None:
        return self._constants.info(source).shape

    def _name(self, layer: Layer) -> str:
        where = "" if layer.line is None else f" in line {layer.line}"
        return f"{layer.type} {layer.name!r}{where}"


_COMPUTED: Final = ("Convolution", "GroupConvolution")
"""Types whose weights may be computed before a FakeQuantize."""
_IN_INTEGERS: Final = (*_COMPUTED, "ConvolutionBackpropData")
"""Types that the plugin computes in integers."""


def _rounded(number: float) -> int:
    """Round half away from zero."""
    return math.floor(abs(number) + 0.5)
