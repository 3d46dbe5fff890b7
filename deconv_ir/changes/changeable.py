"""The methods of a model that return a changed model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from deconv_ir.errors import InputError
from deconv_ir.findings import Finding
from deconv_ir.hints import Advice, Hint
from deconv_ir.ir.dtypes import ElementType, parse_element_type
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.graph import Graph, Port
from deconv_ir.ir.operation import ConstantSource, Context

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deconv_ir.arrays.casting import Cast
    from deconv_ir.arrays.model_inputs import ModelInputs
    from deconv_ir.changes.preprocess import Steps

    Dims = Sequence[int | Interval | None] | None
    Numbers = float | Sequence[float]


class Changeable(ABC):
    """The methods of a model that return a model with other shapes, layers or constants."""

    graph: Graph
    context: Context
    inputs: Mapping[str, Port]
    findings: tuple[Finding, ...]
    _given: Any

    @abstractmethod
    def _with_graph(self, graph: Graph, weights: ConstantSource | None) -> Self:
        """Return a model of another graph and its weights, with the same settings."""

    def reshape(self, shapes: Mapping[str, Dims] | Dims) -> Self:
        """Return the model with inputs of other shapes, static or dynamic.

        Shapes that constants state stay, except for the batch in a constant shape of a Reshape:
        its first element follows axis 0 of the data, where the Reshape keeps that axis.

        Parameters
        ----------
        shapes : mapping or sequence of int
            Input name -> shape, or the shape of the only input; inputs left out keep theirs.  -1 or
            None stands for an unknown dim, None for an unknown rank.

        Returns
        -------
        Model
            Its `findings` name the constants that follow the batch.

        Raises
        ------
        InputError
            An input does not exist, or the model is a oneDNN Graph file (`Overrides` changes its
            shapes).
        ShapeError
            A layer does not fit; the hint names the constants that fix its shapes.

        Examples
        --------
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml")
        >>> model.reshape((4, 8, 24, 32))
        <Model 'block' (x: f32[4,8,24,32]) -> (y: f32[4,4,48,64])>
        """
        if (stored := self.graph.stored) is not None:
            return self._changed_as_stored(stored, lambda model: model.reshape(shapes))
        from deconv_ir.changes.reshape import reshape

        self._require_ir(
            "whose shapes overrides change",
            Hint.OVERRIDE_SHAPES(),
        )
        found = reshape(self.graph, self.context, self._given.new_infos(shapes))
        return self._changed(found.graph, found.weights, found.findings)

    def preprocess(
        self,
        *,
        layout: str | Mapping[str, str] | None = None,
        reverse_channels: bool | str | Sequence[str] | Mapping[str, bool] = False,
        mean: Numbers | Mapping[str, Numbers] | None = None,
        scale: Numbers | Mapping[str, Numbers] | None = None,
        element_type: str | ElementType | Mapping[str, str | ElementType] | None = None,
    ) -> Self:
        """Return the model with layers behind its inputs that prepare images.

        Arrays are transposed, their channels are reversed, the mean is subtracted, and the result
        is divided by the scale, in this order; so mean and scale are in the order of the channels
        of the network, as with OpenVINO's ``mo`` ("Embedding Preprocessing Computation").

        Each parameter is a mapping by input name, or the value for the only input.

        Parameters
        ----------
        layout : str or mapping, optional
            Layout of the arrays, such as ``nhwc``, or those of the network and of the arrays,
            ``nchw->nhwc``.  By default that of the network, which its file states, or else is nchw
            or ncdhw: nhwc or ndhwc if its last extent, but not its second, is 1, 3 or 4.
        reverse_channels : bool, str, sequence of str or mapping
            Reverse the order of three channels, RGB to BGR: of these inputs; True: of all inputs
            with three channels.
        mean, scale : float, sequence of float or mapping, optional
            One number, or one for each channel.
        element_type : str, ElementType or mapping, optional
            That of the arrays, such as ``u8``; they are converted to that of the network.

        Returns
        -------
        Model
            Its inputs have the names of before, and shapes and types of the arrays.

        Raises
        ------
        InputError
            An input does not exist, has other channels or another rank, or is not floating-point;
            a number is not finite, or the scale is 0; the model is a oneDNN Graph file.

        Examples
        --------
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml")
        >>> model.preprocess(layout="nhwc", mean=127.5, scale=127.5, element_type="u8")
        <Model 'block' (x: u8[1,16,16,8]) -> (y: f32[1,4,32,32])>
        """
        if (stored := self.graph.stored) is not None:
            changed = self._changed_as_stored(
                stored,
                lambda model: model.preprocess(
                    layout=layout,
                    reverse_channels=reverse_channels,
                    mean=mean,
                    scale=scale,
                    element_type=element_type,
                ),
            )
            self._require_types(changed, element_type)
            return changed
        from deconv_ir.changes.preprocess import insert, prepare

        self._require_ir("which has no preprocessing", Hint.SAVE_AS_IR())
        given: ModelInputs = self._given
        steps = _steps(given, layout, reverse_channels, mean, scale, element_type)
        names = list(self.inputs)
        prepared = {}
        try:
            for position, asked in steps.items():
                index = given.parameters[position]
                layer, name = self.graph.layers[index], names[position]
                prepared[index] = prepare(name, layer, self.inputs[name], asked)
        except InputError as error:
            raise error.locate(file=self.graph.file) from None
        return self._changed(*insert(self.graph, self.context.weights, prepared))

    def replace_constants(self, constants: Mapping[str, ArrayLike], *, cast: Cast = False) -> Self:
        """Return the model with other arrays in place of some of its constants.

        Parameters
        ----------
        constants : mapping
            Array by the tensor name, layer name or layer id of a constant (a Const layer); in a
            body, ``LAYER/BODY/NAME``, such as ``loop/body/weights``.
        cast : bool or "wrap"
            Convert arrays of another element type, as in `run`.

        Returns
        -------
        Model

        Raises
        ------
        IRError
            No constant has that name.
        InputError
            An array differs in shape or element type, or the model is a oneDNN Graph file.

        Examples
        --------
        >>> import numpy as np
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml")
        >>> zero = np.zeros((1, 4, 1, 1), np.float16)
        >>> changed = model.replace_constants({"bias_compressed": zero})
        >>> changed.run(np.zeros((1, 8, 16, 16), np.float32))["y"].max()
        np.float32(0.0)
        """
        if (stored := self.graph.stored) is not None:
            return self._changed_as_stored(
                stored, lambda model: model.replace_constants(constants, cast=cast)
            )
        from deconv_ir.changes.constants import replace_constants

        self._require_ir("whose constants are in its .npz file", Hint.SAVE_AS_IR())
        if not isinstance(constants, Mapping):
            found = type(constants).__name__
            message = f"constants must be a mapping of names, found {found}"
            raise InputError(message, file=self.graph.file)
        weights = self.context.weights
        return self._changed(*replace_constants(self.graph, weights, constants, cast))

    def replaced(self, graph: Graph, weights: Any) -> Self:
        """Return the model with another network, for what runs changed ones."""
        return self._changed(graph, weights)

    def _changed(self, graph: Graph, weights: Any, findings: tuple[Finding, ...] = ()) -> Self:
        whole = tuple(f for f in self.findings if f.location is None)
        model = self._with_graph(graph, weights)
        model.findings += whole + findings
        return model

    def _changed_as_stored(self, stored: Graph, change: Callable[[Self], Self]) -> Self:
        """Change `stored`, the network that files hold, and compute it with the same semantics."""
        from deconv_ir.formats.reading import as_computed

        model = self._with_graph(stored, self.context.weights)
        model.findings += tuple(f for f in self.findings if f.location is None)
        changed = change(model)
        graph = as_computed(changed.graph, self.context.semantics, self.context.accuracy)
        model = changed._with_graph(graph, changed.context.weights)
        model.findings += tuple(f for f in changed.findings if f.location is None)
        return model

    def _require_types(self, changed: Self, element_type: Any) -> None:
        """Require that inputs have the requested element types under these semantics."""
        ports = list(changed.inputs.items())
        for position, value in _by_position(self._given, "element_type", element_type):
            (name, port), wanted = ports[position], _parse(self._given, "element_type", value)
            if port.element_type is not wanted:
                raise InputError(
                    f"input {name!r} cannot be {wanted}: OpenVINO reads {wanted} inputs of IR "
                    f"version {self.graph.ir_version} as {port.element_type}",
                    file=self.graph.file,
                    expected=port.element_type,
                    actual=wanted,
                    hint=Hint.USE_TYPE(port.element_type),
                )

    def _require_ir(self, what: str, hint: Advice) -> None:
        from deconv_ir.formats.registry import format_of

        own = format_of(self.graph)
        if not own.has_opsets:
            message = f"the model is {own.title}, {what}"
            raise InputError(message, file=self.graph.file, hint=hint)


def _steps(
    inputs: ModelInputs,
    layout: Any,
    reverse_channels: Any,
    mean: Any,
    scale: Any,
    element_type: Any,
) -> dict[int, Steps]:
    """Collect the steps of each input by its position."""
    from deconv_ir.changes.preprocess import Steps

    found: dict[int, dict[str, Any]] = {}
    options = {"layout": layout, "mean": mean, "scale": scale, "element_type": element_type}
    for what, given in options.items():
        for position, value in _by_position(inputs, what, given):
            found.setdefault(position, {})[what] = _parse(inputs, what, value)
    layouts = {position: values.get("layout") for position, values in found.items()}
    for position in _reversed(inputs, reverse_channels, layouts):
        found.setdefault(position, {})["reverse"] = True
    return {position: Steps(**values) for position, values in found.items()}


def _by_position(inputs: ModelInputs, what: str, given: Any) -> Iterator[tuple[int, Any]]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        if len(inputs.ports) != 1:
            raise InputError(
                f"the model has {len(inputs.ports)} inputs: {what} must be a mapping by name",
                file=inputs.graph.file,
                hint=Hint.INPUTS_ARE(", ".join(map(repr, inputs.ports))),
            )
        yield 0, given
        return
    taken: set[int] = set()
    for name, value in given.items():
        position = inputs.position(name)
        if position in taken:
            raise InputError(f"{what}: {name!r} is given under two names", file=inputs.graph.file)
        taken.add(position)
        yield position, value


def _parse(inputs: ModelInputs, what: str, value: Any) -> Any:
    """Return the layout, the element type or the numbers of one input."""
    try:
        if what in ("mean", "scale"):
            numbers = tuple(map(float, value)) if hasattr(value, "__len__") else (float(value),)
            if not numbers or isinstance(value, str | bytes):
                raise ValueError
            return numbers
        if what == "element_type" and isinstance(value, str):
            return parse_element_type(value)
        expected: type = ElementType if what == "element_type" else str
        if isinstance(value, expected):
            return value
    except (TypeError, ValueError, OverflowError):
        pass
    expected_values = {
        "layout": "a layout such as 'nhwc'",
        "element_type": "an element type such as 'u8'",
    }
    expects = expected_values.get(what, "a number, or one for each channel")
    raise InputError(f"{what}: expected {expects}, found {value!r}", file=inputs.graph.file)


def _reversed(inputs: ModelInputs, given: Any, layouts: Mapping[int, str | None]) -> Iterator[int]:
    """Iterate over the inputs whose channels are reversed; `layouts` are the given ones."""
    from deconv_ir.changes.preprocess import channels_of

    if given is True:
        if len(inputs.ports) == 1:
            yield 0
            return
        layers = (inputs.graph.layers[index] for index in inputs.parameters)
        named = zip(inputs.ports.items(), layers, strict=True)
        found = [
            position
            for position, ((name, port), layer) in enumerate(named)
            if channels_of(name, layer, port, layouts.get(position)) == 3
        ]
        if not found:
            raise InputError("no input has 3 channels to be reversed", file=inputs.graph.file)
        yield from found
        return
    names = [given] if isinstance(given, str) else [] if given is None or given is False else given
    if isinstance(names, Mapping):
        names = [name for name, wanted in names.items() if wanted]
    if not isinstance(names, Iterable):
        raise InputError(
            f"reverse_channels: expected a boolean or names of inputs, found {given!r}",
            file=inputs.graph.file,
        )
    for name in names:
        yield inputs.position(name)
