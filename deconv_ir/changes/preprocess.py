"""Preprocessing of inputs as layers of the network, behind its Parameters.

The layout is converted first, then the channels are reversed, the mean is subtracted, and the
result is divided by the scale, so that the numbers of mean and scale are in the order of the
channels of the network.

Source: OpenVINO, "Embedding Preprocessing Computation", the note on the order, and the help text of
``mo --reverse_input_channels``: Parameter -> ReverseInputChannels -> Mean apply -> Scale apply ->
the original body of the model.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from deconv_ir.errors import InputError
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import I64, ElementType
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.graph import Graph, Layer, Port
from deconv_ir.ir.layouts import guess_layout, parse_layout, stated_layout, with_layout
from deconv_ir.ir.operation import ConstantSource
from deconv_ir.ir.shapes import Shape, format_shape, intersect_dims
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.elementwise.convert import Convert

from .editor import Editor, with_operation

if TYPE_CHECKING:
    Output = tuple[Layer, Port]

_REVERSED: Final = (2, 1, 0)
"""As in OpenVINO, channels are reversed if they are three."""


class Steps(NamedTuple):
    """The requested preprocessing of one input.

    Attributes
    ----------
    layout : str or None
        That of the arrays, ``nhwc``, or those of the network and of the arrays, ``nchw->nhwc``.
    reverse : bool
    mean, scale : tuple of float
        One number, or one for each channel; empty: none.
    element_type : ElementType or None
        That of the arrays; None: that of the network.
    """

    layout: str | None = None
    reverse: bool = False
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    element_type: ElementType | None = None


class CheckedSteps(NamedTuple):
    """The preprocessing of one input, checked against its shape and type.

    Attributes
    ----------
    shape : Shape
        That of the network's input; an unknown number of channels is known from the steps.
    axis : int or None
        That of the channels in the network; None: no step needs it.
    order : tuple of int or None
        Axis of the network -> axis of the arrays; None: the same.
    layout : str or None
        That of the arrays; None: not requested.
    element_type : ElementType or None
        That of the network's input.
    """

    steps: Steps
    shape: Shape
    axis: int | None
    order: tuple[int, ...] | None
    layout: str | None
    element_type: ElementType | None = None


def channels_of(name: str, layer: Layer, port: Port, layout: str | None) -> Dim | None:
    """Return the number of channels of an input; None if its layout is not known."""
    try:
        own, _ = _layouts(name, layer, port.shape, layout)
    except InputError:
        return None
    return (port.shape or ())[own.index("c")] if "c" in own else None


def prepare(name: str, layer: Layer, port: Port, steps: Steps) -> CheckedSteps:
    """Check the steps of one input.

    Raises
    ------
    InputError
        They do not fit its rank, channels or element type.
    """
    try:
        found = _prepare(name, layer, port, steps)
        _require_types(name, port.element_type, steps)
    except InputError as error:
        error.locate(layer=layer.label, line=layer.line)
        raise
    return found._replace(element_type=port.element_type)


def _prepare(name: str, layer: Layer, port: Port, steps: Steps) -> CheckedSteps:
    counts = {
        what: len(numbers)
        for what, numbers in (("mean", steps.mean), ("scale", steps.scale))
        if len(numbers) > 1
    }
    if steps.reverse:
        counts["reversing channels"] = len(_REVERSED)
    if steps.layout is None and not counts:
        return CheckedSteps(steps, port.shape, None, None, None)
    own, arrays = _layouts(name, layer, port.shape, steps.layout)
    shape = port.shape
    assert shape is not None, "a layout was found"
    order = tuple(map(arrays.index, own)) if arrays != own else None
    layout = None if steps.layout is None else arrays
    if not counts:
        return CheckedSteps(steps, shape, None, order, layout)
    if "c" not in own:
        message = f"input {name!r}: the layout {own!r} has no channels 'c'"
        raise InputError(message, expected="c", actual=own)
    axis, last = own.index("c"), own.replace("c", "") + "c"
    for what, count in counts.items():
        channels = intersect_dims(shape[axis], count)
        if channels is None:
            verb = "needs 3 channels" if what not in ("mean", "scale") else f"has {count} values"
            raise InputError(
                f"input {name!r}: {what} {verb}, axis {axis} of {format_shape(shape)} has "
                f"{shape[axis]} channels (layout {own})",
                expected=str(shape[axis]),
                actual=count,
                hint=None if own == last else Hint.LAYOUT_STATES_NETWORK(last),
            )
        shape = (*shape[:axis], channels, *shape[axis + 1 :])
    return CheckedSteps(steps, shape, axis, order, layout)


def _layouts(name: str, layer: Layer, shape: Shape, given: str | None) -> tuple[str, str]:
    """Return the layouts of the network and of the arrays."""
    if shape is None:
        raise InputError(
            f"input {name!r} has a dynamic rank, and its channels are not known",
            hint=Hint.ONE_NUMBER(),
        )
    first, arrow, last = (given or "").partition("->")
    try:
        arrays = parse_layout(last if arrow else first) if given is not None else None
        own = parse_layout(first) if arrow else stated_layout(layer) or guess_layout(shape, arrays)
    except ValueError as error:
        raise InputError(f"input {name!r}: {error}", actual=given) from None
    if own is None:
        raise InputError(
            f"input {name!r} {format_shape(shape)}: the layout of the network is not known for "
            f"rank {len(shape)}" + (f" and the letters of {arrays!r}" if arrays else ""),
            hint=Hint.TWO_LAYOUTS(),
        )
    arrays = own if arrays is None else arrays
    for layout in (arrays, own):
        if len(layout) != len(shape):
            raise InputError(
                f"input {name!r}: the layout {layout!r} has {len(layout)} axes, the input "
                f"{format_shape(shape)} has rank {len(shape)}",
                expected=len(shape),
                actual=len(layout),
            )
    if set(own) != set(arrays):
        raise InputError(
            f"input {name!r}: the layouts {own!r} of the network and {arrays!r} of the arrays have "
            "other letters",
            expected=own,
            actual=arrays,
        )
    return own, arrays


def _require_types(name: str, own: ElementType | None, steps: Steps) -> None:
    """Require that the network's element type holds the numbers."""
    if own is None:
        raise InputError(f"input {name!r}: its element type is not known")
    for stated in (own, steps.element_type):
        if stated is not None and (stated.is_packed or stated.kind == "string"):
            raise InputError(f"input {name!r}: {stated} has no preprocessing", actual=stated)
    for what, numbers in (("mean", steps.mean), ("scale", steps.scale)):
        if numbers and not own.is_float:
            raise InputError(
                f"input {name!r} is {own}: {what} needs a floating-point input",
                expected="a floating-point type",
                actual=own,
            )
        for number in numbers:
            _require_number(name, what, number, own)


def _require_number(name: str, what: str, number: float, own: ElementType) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        stored = float(np.asarray(number).astype(own.numpy()).astype(np.float64))
    if not math.isfinite(number) or (what == "scale" and number == 0):
        allowed = "finite numbers other than 0" if what == "scale" else "finite numbers"
        raise InputError(f"input {name!r}: {what} must be {allowed}, found {number:g}")
    if not math.isfinite(stored) or (what == "scale" and stored == 0):
        raise InputError(f"input {name!r}: {what} {number:g} becomes {stored:g} in {own}")


def insert(
    graph: Graph, weights: ConstantSource | None, given: Mapping[int, CheckedSteps]
) -> tuple[Graph, Weights | None]:
    """Return the network with layers behind its Parameters, by index, and its weights.

    The Parameters have the layout and the element type of the arrays, and keep their names.
    """
    editor = Editor(graph, weights)
    for index, prepared in given.items():
        _Chain(editor, index, prepared).insert()
    # A bare layer with preprocessing is a network.
    return editor.graph().replace(bare=False), editor.weights


class _Chain:
    """The layers behind one Parameter."""

    def __init__(self, editor: Editor, index: int, prepared: CheckedSteps) -> None:
        self.editor = editor
        self.index = index
        self.prepared = prepared
        self.layer = editor.layers[index]
        # A file may declare no output of an input that nothing uses.
        self.port = (*self.layer.outputs, Port(0, None))[0]
        self.users = editor.users(self.layer, self.port)

    def insert(self) -> None:
        """Insert the layers."""
        editor, prepared = self.editor, self.prepared
        steps, order, axis = prepared.steps, prepared.order, prepared.axis
        own = prepared.element_type
        assert own is not None, "it was checked"
        at = self._parameter(steps.element_type or own)
        if order is not None:
            at = self._add("layout", "Transpose", at, self._integers("order", order))
        if steps.reverse:
            assert axis is not None, "the channels are known"
            indices, along = self._integers("indices", _REVERSED), self._integers("axis", axis)
            at = self._add("reverse_channels", "Gather", at, indices, along)
        if steps.element_type not in (None, own):
            name = f"{self.layer.name}/convert"
            at = editor.add(name, Convert(destination_type=own), [at], at[1].shape, own)
        if steps.mean:
            at = self._add("mean", "Subtract", at, self._numbers("mean", steps.mean, own))
        if steps.scale:
            at = self._add("scale", "Divide", at, self._numbers("scale", steps.scale, own))
        editor.move(self.users, at)

    def _parameter(self, element_type: ElementType) -> Output:
        """Declare the Parameter as the arrays are."""
        prepared, order = self.prepared, self.prepared.order
        shape = prepared.shape
        if order is not None:
            assert shape is not None, "it has a layout"
            shape = tuple(shape[order.index(axis)] for axis in range(len(shape)))
        port = self.port._replace(shape=shape, element_type=element_type)
        if prepared.layout is not None:
            port = with_layout(port, prepared.layout)
        changed = self.layer.operation.replace(shape=shape, element_type=element_type)
        layer = with_operation(self.layer, changed)._replace(outputs=(port,))
        self.editor.layers[self.index] = layer
        return layer, port

    def _add(self, name: str, type_name: str, data: Output, *others: Output) -> Output:
        """Add a layer whose output has the shape of the network's input, and the data's type."""
        return self.editor.add(
            f"{self.layer.name}/{name}",
            type_name,
            [data, *others],
            self.prepared.shape,
            data[1].element_type,
        )

    def _integers(self, name: str, values: Sequence[int] | int) -> Output:
        numbers, shape = ((values,), ()) if isinstance(values, int) else (values, (len(values),))
        data = struct.pack(f"<{len(numbers)}q", *numbers)
        return self._constant(name, self.editor.store(data, I64, shape))

    def _numbers(self, name: str, values: Sequence[float], own: ElementType) -> Output:
        import numpy as np

        shape = [1] * len(self.prepared.shape or ()) if len(values) > 1 else []
        if len(values) > 1:
            assert self.prepared.axis is not None, "the channels are known"
            shape[self.prepared.axis] = len(values)
        dtype = own.numpy()
        data = np.array(values, np.float64).astype(dtype.newbyteorder("<")).tobytes()
        return self._constant(f"{name}/values", self.editor.store(data, own, shape))

    def _constant(self, name: str, constant: Const) -> Output:
        name = f"{self.layer.name}/{name}"
        return self.editor.add(name, constant, (), constant.shape, constant.element_type)
