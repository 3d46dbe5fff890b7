"""The quantisers of each layer's data, and the layers between."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from deconv_ir.cpu_plugin.conditions import Int8Condition, UnmetCondition
from deconv_ir.cpu_plugin.constants import Constants
from deconv_ir.cpu_plugin.quantizers import (
    JoinedRanges,
    OutputRanges,
    Quantized,
    ScaledCodes,
    aligned,
    merged,
    ranges_fault,
)
from deconv_ir.ir.graph import Graph, Source

_MOVES: Final = frozenset(
    {
        *("MaxPool", "AvgPool", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "DepthToSpace"),
        *("StridedSlice", "Slice", "Gather", "ShuffleChannels", "Split", "VariadicSplit"),
        *("Broadcast", "ReduceMax", "ReduceMin"),
    }
)
"""Types that pass codes of their first input, and their zero points."""
_WITHOUT_ZERO_POINT: Final = frozenset({"ReLU"})
"""Types that pass codes without a zero point."""
_PERHAPS_WITHOUT: Final = frozenset({"SpaceToBatch", "BatchToSpace"})
"""Types that pass codes; whether they pass a zero point depends on the layers around."""
_KEEPS_AXES: Final = frozenset({"MaxPool", "AvgPool", "ReLU", "Concat", "Convert", "Pad"})
"""Types whose outputs have the channels of their first input."""
_UNCLEAR: Final = frozenset({"Add", "Subtract", "Multiply", "Divide"})
"""Types that the plugin joins with a quantiser, or does not."""
_MOST_PARTS: Final = 256
_MOST_CHANNELS: Final = 1 << 16
"""Maximum inputs of a Concat, and channels of its output, of different ranges."""
_PAD_WITHOUT_VALUE: Final = frozenset({"edge", "reflect", "symmetric"})


class Origin(NamedTuple):
    """How the output of a layer was quantised."""

    quantized: Quantized
    root: int | None
    """A FakeQuantize that it comes from; None: integers."""
    without_zero_point: int | None = None
    """The first layer that passes no zero point."""
    steps: int = 0
    """The largest number of layers since the quantiser."""
    unclear: int | None = None
    """A layer that passes a zero point, or not."""


class Origins:
    """Finds how data were quantised.

    Parameters
    ----------
    graph : Graph
        The network.
    constants : Constants
        Its constants.
    """

    def __init__(self, graph: Graph, constants: Constants) -> None:
        self._graph, self._constants = graph, constants
        self._sources = graph.topology.sources
        self._found: dict[int, Origin] = {}
        self._computed: dict[int, int] = {}
        self._sets: dict[int, int] = {}
        for index in graph.topology.order:
            self._add(index)

    def of(self, source: Source) -> Origin | None:
        """Return how a tensor was quantised; None: it was not."""
        return self._found.get(source[0])

    def computed_by(self, source: Source) -> int:
        """Return the layer that computes the values of a tensor that is not quantised."""
        return self._computed.get(source[0], source[0])

    def group(self, origin: Origin) -> int | None:
        """Return a number that the FakeQuantize layers share whose outputs are concatenated."""
        return None if origin.root is None else self._root(origin.root)

    def quantizer(self, source: Source, *, data: bool) -> Quantized | None:
        """Return the quantiser that a tensor comes from directly."""
        layer = self._graph.layers[source[0]]
        if layer.type == "FakeQuantize":
            return self._fake_quantize(source[0], data=data)
        return self._dequantized(source[0], data=data) if layer.operation.is_product else None

    def _add(self, index: int) -> None:
        layer, rows = self._graph.layers[index], self._sources[index]
        if (index, 0) in self._constants:
            return
        quantized = self.quantizer((index, 0), data=True)
        if quantized is not None:
            before = next(iter(rows), None)
            inner = None if before is None else self._behind_convert(before)
            is_root = layer.type == "FakeQuantize" or inner is not None
            root = index if inner is None else inner
            self._found[index] = Origin(quantized, root if is_root else None)
            return
        if self._passes(index):
            count = None if layer.type == "Concat" else 1
            found = [None if s is None else self._found.get(s[0]) for s in rows[:count]]
            known = [origin for origin in found if origin is not None]
            if known and len(known) == len(found):
                self._found[index] = self._merge(index, known)
                return
            if len(found) > 1 and rows[0] is not None:
                lost = next((s for s, o in zip(rows, found, strict=True) if o is None), None)
                self._computed[index] = index if lost is None else self.computed_by(lost)
            elif rows[:1] and rows[0] is not None:
                self._computed[index] = self.computed_by(rows[0])
            return
        if layer.type in _UNCLEAR and any(s is not None and s[0] in self._found for s in rows):
            doubt = f"layer {layer.label} may be joined with the quantisation of its data"
            self._found[index] = Origin(Quantized(index, None, doubt=doubt), None)

    def _passes(self, index: int) -> bool:
        """Whether a layer's outputs consist of elements, or means, of its data."""
        layer = self._graph.layers[index]
        operation: Any = layer.operation
        if not operation.implemented:
            return False
        if layer.type in _MOVES | _WITHOUT_ZERO_POINT | _PERHAPS_WITHOUT | {"Concat"}:
            return True
        if layer.type == "Interpolate":
            return str(getattr(operation.mode, "value", operation.mode)) == "nearest"
        if layer.type == "Pad":
            mode = str(operation.pad_mode.value)
            value = self._sources[index][3:4]
            zero = not value or value[0] is None or self._constants.numbers(value[0]) == (0.0,)
            return mode in _PAD_WITHOUT_VALUE or (mode == "constant" and zero)
        if layer.type == "Convert":
            return self._is_float(index) and self._is_float_before(index)
        return False

    def _is_float(self, index: int) -> bool:
        element_type = self._constants.info((index, 0)).element_type
        return element_type is not None and element_type.is_float

    def _is_float_before(self, index: int) -> bool:
        before = next(iter(self._sources[index]), None)
        return before is not None and self._is_float(before[0])

    def _merge(self, index: int, origins: list[Origin]) -> Origin:
        """Return the origin of a layer that passes codes."""
        layer = self._graph.layers[index]
        first = origins[0].quantized
        roots = [self._root(origin.root) for origin in origins if origin.root is not None]
        for root in roots:
            self._sets[self._root(root)] = self._root(roots[0])
        if any(origin.quantized[1:] != first[1:] for origin in origins):
            faulty = next((o.quantized for o in origins if o.quantized.fault is not None), None)
            first = faulty or self._joined(index, [origin.quantized for origin in origins])
        elif layer.type == "Concat" and _is_without_zero(first):
            doubt = f"layer {layer.label} may give its data a range that includes 0"
            first = Quantized(first.layer, None, doubt=doubt)
        elif first.axes and (
            layer.type not in _KEEPS_AXES or len(self._shape(index)) != len(first.shape)
        ):
            if first.fault is None:
                doubt = f"layer {layer.label} moves the channels of data with several scales"
                first = Quantized(first.layer, None, doubt=doubt)
        elif isinstance(first.form, JoinedRanges) and layer.type not in _KEEPS_AXES:
            doubt = f"layer {layer.label} moves the channels of data with several ranges"
            first = Quantized(first.layer, None, doubt=doubt)
        elif first.axes and layer.type == "Concat":
            doubt = f"layer {layer.label} joins data with several scales"
            first = Quantized(first.layer, None, doubt=doubt)
        stops = [o.without_zero_point for o in origins if o.without_zero_point is not None]
        if layer.type in _WITHOUT_ZERO_POINT:
            stops.append(index)
        unclear = next((o.unclear for o in origins if o.unclear is not None), None)
        if layer.type in _PERHAPS_WITHOUT:
            unclear = index
        steps = 1 + max(origin.steps for origin in origins)
        joined = roots[0] if roots else None
        return Origin(first, joined, stops[0] if stops else None, steps, unclear)

    def _joined(self, index: int, parts: list[Quantized]) -> Quantized:
        """Return how a Concat joins different ranges."""
        layer = self._graph.layers[index]
        operation: Any = layer.operation
        forms = [part.form for part in parts]
        single = [form for form in forms if isinstance(form, OutputRanges) and len(form.low) == 1]
        channels = [self._channels(s) for s in self._sources[index] if s is not None]
        axis = operation.axis + (len(self._shape(index)) if operation.axis < 0 else 0)
        counts = [count for count in channels if count is not None]
        many = len(parts) > _MOST_PARTS or sum(counts) > _MOST_CHANNELS
        if many or len(single) < len(parts) or (axis == 1 and len(counts) < len(parts)):
            doubt = f"layer {layer.label} joins data of different ranges"
            return Quantized(parts[0].layer, None, doubt=doubt)
        joined = JoinedRanges(tuple(single), tuple(counts) if axis == 1 else ())
        return Quantized(index, joined)

    def _channels(self, source: Source) -> int | None:
        shape = self._constants.info(source).shape
        return shape[1] if shape and len(shape) > 1 and isinstance(shape[1], int) else None

    def _root(self, index: int) -> int:
        while (above := self._sets.get(index, index)) != index:
            self._sets[index] = self._sets.get(above, above)
            index = above
        return index

    def _shape(self, index: int) -> tuple[Any, ...]:
        return self._constants.info((index, 0)).shape or ()

    # Quantisers

    def _fake_quantize(self, index: int, *, data: bool) -> Quantized:
        operation: Any = self._graph.layers[index].operation
        rows = self._sources[index]
        if not operation.implemented or len(rows) != 5:
            return Quantized(index, None, doubt="its attributes cannot be read")
        if (fault := ranges_fault(data, operation.levels)) is not None:
            return Quantized(index, None, fault=fault)
        if any(s is None or s not in self._constants for s in rows[1:]):
            condition = Int8Condition.DATA_RANGES if data else Int8Condition.WEIGHTS_RANGES
            return Quantized(
                index, None, fault=UnmetCondition(condition, "has ranges that are computed")
            )
        low, high = (None if s is None else self._constants.numbers(s) for s in rows[3:5])
        shapes = [self._aligned(s, index) for s in rows[3:5]]
        if low is None or high is None or None in shapes:
            return Quantized(index, None, doubt="its ranges cannot be read")
        known = [shape for shape in shapes if shape is not None]
        if len(low) != len(high) or known[0] != known[1]:
            return self._uneven(index, len(low), len(high), data=data)
        if not all(b - a for a, b in zip(low, high, strict=True)) and (
            data or not any(a or b for a, b in zip(low, high, strict=True))
        ):
            return Quantized(index, None, doubt="a range is empty")
        return Quantized(index, OutputRanges(operation.levels, low, high), known[0])

    def _uneven(self, index: int, low: int, high: int, *, data: bool) -> Quantized:
        counts = f"output_low has {low} numbers and output_high {high}"
        if data:
            doubt = f"{counts}, which the plugin misreads"
            return Quantized(index, None, doubt=doubt, is_misread=True)
        return Quantized(index, None, fault=UnmetCondition(Int8Condition.WEIGHTS_RANGES, counts))

    def _dequantized(self, index: int, *, data: bool) -> Quantized | None:
        """Return how a Multiply scales integers; None if it does not."""
        rows = self._sources[index]
        for codes, scale in (rows, rows[::-1]) if len(rows) == 2 else ():
            if codes is None or scale is None or scale not in self._constants:
                continue
            points: Source | None = None
            inner = self._sources[codes[0]]
            if self._graph.layers[codes[0]].type == "Subtract" and len(inner) == 2:
                codes, points = inner
            source = None if codes is None else self._converted(codes)
            if source is not None:
                found = self._codes(index, source, points, scale)
                if found is not None and not data:  # zero points of weights are 0, or a fault
                    return found._replace(shape=self._aligned(scale, index) or ())
                return found
        return None

    def _converted(self, source: Source) -> Source | None:
        """Return the integers that a Convert makes floating-point."""
        layer = self._graph.layers[source[0]]
        rows = self._sources[source[0]]
        before = rows[0] if layer.type == "Convert" and rows else None
        if before is None or not self._is_float(source[0]):
            return None
        element_type = self._constants.info(before).element_type
        return before if element_type is not None and element_type.is_integer else None

    def _codes(
        self, index: int, source: Source, points: Source | None, scale: Source
    ) -> Quantized | None:
        element_type = self._constants.info(source).element_type
        assert element_type is not None
        quantizer = self._behind_convert(source)
        if quantizer is None and element_type.name not in ("i8", "u8"):
            if source not in self._constants:
                return None
            return Quantized(index, None, doubt=f"its codes are {element_type.name}")
        scales = self._constants.numbers(scale)
        zero_points = () if points is None else self._constants.numbers(points)
        shapes = [self._aligned(s, index) for s in (scale, points) if s is not None]
        extents = merged([shape for shape in shapes if shape is not None])
        if not scales or zero_points is None or None in shapes or extents is None:
            return Quantized(index, None, doubt="its scales cannot be read")
        form = ScaledCodes(element_type.name, zero_points, scales, self._points_type(points))
        found = Quantized(index, form, extents)
        return found if quantizer is None else self._mapped(quantizer, found)

    def _points_type(self, points: Source | None) -> str:
        """Return the integer type that zero points are converted from, if any."""
        converted = None if points is None else self._converted(points)
        info = None if converted is None else self._constants.info(converted)
        return "" if info is None or info.element_type is None else info.element_type.name

    def _behind_convert(self, source: Source) -> int | None:
        """Return the FakeQuantize before the Converts and the Subtract of codes."""
        for _ in range(3):
            layer = self._graph.layers[source[0]]
            if layer.type == "FakeQuantize":
                return source[0]
            before = self._sources[source[0]][:1]
            if layer.type not in ("Convert", "Subtract") or not before or before[0] is None:
                return None
            source = before[0]
        return source[0] if self._graph.layers[source[0]].type == "FakeQuantize" else None

    def _mapped(self, quantizer: int, found: Quantized) -> Quantized:
        """Return how a FakeQuantize whose codes are scaled quantises."""
        assert isinstance(found.form, ScaledCodes)
        inner = self._fake_quantize(quantizer, data=True)
        if not isinstance(inner.form, OutputRanges):
            return inner._replace(layer=quantizer)
        ends = {"u8": (0.0, 255.0), "i8": (-128.0, 127.0)}.get(found.form.element_type)
        if (inner.form.low, inner.form.high) != ((ends or (0, 0))[:1], (ends or (0, 0))[1:]):
            return Quantized(quantizer, None, doubt="its output range is not that of its codes")
        count = max(len(found.form.scales), len(found.form.zero_points))
        scales = _repeated(found.form.scales, count)
        points = _repeated(found.form.zero_points or (0.0,), count)
        low, high = (
            tuple((end - p) * s for p, s in zip(points, scales, strict=True))
            for end in ends or (0.0, 0.0)
        )
        return Quantized(quantizer, OutputRanges(inner.form.levels, low, high), found.shape)

    def _aligned(self, source: Source | None, index: int) -> tuple[int, ...] | None:
        shape = self._constants.info((index, 0)).shape
        if source is None or shape is None:
            return None
        return aligned(self._constants.info(source).shape, len(shape))


def _repeated(numbers: tuple[float, ...], count: int) -> tuple[float, ...]:
    return numbers * count if len(numbers) == 1 else numbers


def _is_without_zero(quantized: Quantized) -> bool:
    """Whether a range does not include 0."""
    form = quantized.form
    return isinstance(form, OutputRanges) and (min(form.low) > 0 or max(form.high) < 0)
