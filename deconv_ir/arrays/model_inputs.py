"""Matches the caller's arrays or shapes with a model's Parameter layers."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import index as as_index
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import DeconvError, InputError
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim, Interval
from deconv_ir.ir.graph import Graph, Port
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import MAX_EXTENT, Shape, compatible, format_shape, intersect

if TYPE_CHECKING:
    from deconv_ir.arrays.casting import Cast

_NAMED = 16


class ModelInputs:
    """The inputs of a model, by all names that a caller may use.

    `parameters` are the indices of the Parameter layers, `ports` their ports by name.
    """

    def __init__(self, graph: Graph, parameters: Sequence[int], ports: Mapping[str, Port]) -> None:
        self.graph = graph
        self.parameters = tuple(parameters)
        self.ports = ports

    @functools.cached_property
    def _positions(self) -> dict[str, int]:
        """Position by each input's name, its layer's name and its tensor names."""
        positions = {name: position for position, name in enumerate(self.ports)}
        for position, index in enumerate(self.parameters):
            layer = self.graph.layers[index]
            for name in (layer.name, *(n for port in layer.outputs for n in port.names)):
                positions.setdefault(name, position)
        return positions

    def position(self, name: object) -> int:
        """Return the position of an input by name."""
        found = self._positions.get(name) if isinstance(name, str) else None
        if found is None:
            message = f"the model has no input {name!r}; it has {self._named()}"
            raise InputError(message, file=self.graph.file, actual=name)
        return found

    def _named(self) -> str:
        return _listed(self.ports) or "none"

    def match(self, inputs: Any, *, cast: Cast) -> dict[int, Array]:
        """Return the array of each Parameter layer, by index; see `fitting.fit`.

        `inputs` are arrays by name or in order; a bare array is the only input.
        """
        given = self._by_position(inputs)
        if len(given) < len(self.ports):
            missing = [name for i, name in enumerate(self.ports) if i not in given]
            raise InputError(f"no array for input {_listed(missing)}", file=self.graph.file)
        bound = {}
        fit = load_fitting().fit
        narrow = self.graph.ir_version == 10  # OpenVINO takes f32 for f16 there
        for position, (name, port) in enumerate(self.ports.items()):
            try:
                fitted = fit(
                    given[position], name, port.shape, port.element_type, cast=cast, narrow=narrow
                )
            except DeconvError as error:
                error.locate(file=self.graph.file)
                raise
            bound[self.parameters[position]] = fitted
        return bound

    def _by_position(self, inputs: Any) -> dict[int, Any]:
        is_array = type(inputs) is load_fitting().np.ndarray  # the most common case, found fastest
        if not is_array and isinstance(inputs, Mapping):
            given = {self.position(name): array for name, array in inputs.items()}
            if len(given) == len(inputs):
                return given
            raise InputError("an input is given under two of its names", file=self.graph.file)
        wanted = len(self.ports)
        if is_array or (
            not isinstance(inputs, list | tuple) and load_fitting().foreign.is_array(inputs)
        ):
            if wanted == 1:
                return {0: inputs}
            raise InputError(
                f"the model takes {wanted} inputs ({self._named()}), found one array",
                file=self.graph.file,
                expected=wanted,
                actual=1,
                hint=Hint.GIVE_MAPPING(),
            )
        if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
            raise InputError(
                "inputs must be a mapping, a sequence of arrays or one array, "
                f"found {type(inputs).__name__}",
                file=self.graph.file,
            )
        given = dict(enumerate(inputs))
        if len(given) > wanted:
            message = f"the model takes {wanted} inputs, found {len(given)}"
            raise InputError(message, file=self.graph.file, expected=wanted, actual=len(given))
        return given

    def infos(self, shapes: Mapping[str, Any] | None) -> dict[int, TensorInfo]:
        """Return the infos of the inputs, given some of their shapes."""
        ports = list(self.ports.values())
        infos = {
            index: TensorInfo(port.shape, port.element_type)
            for index, port in zip(self.parameters, ports, strict=True)
        }
        if shapes is not None and not isinstance(shapes, Mapping):
            raise InputError(
                f"shapes must be a mapping of input names, found {type(shapes).__name__}",
                file=self.graph.file,
            )
        for name, given in (shapes or {}).items():
            position = self.position(name)
            port = ports[position]
            shape = self._shape(name, given)
            if not compatible(shape, port.shape):
                raise InputError(
                    f"input {name!r} takes shape {format_shape(port.shape)}, "
                    f"found {format_shape(shape)}",
                    file=self.graph.file,
                    expected=format_shape(port.shape),
                    actual=format_shape(shape),
                    rule="input-shape",
                )
            infos[self.parameters[position]] = TensorInfo(
                intersect(shape, port.shape), port.element_type
            )
        return infos

    def new_infos(self, shapes: Any) -> dict[int, TensorInfo]:
        """Return the infos of the inputs with other shapes, by name or of the only input."""
        if not isinstance(shapes, Mapping):
            if len(self.ports) != 1:
                raise InputError(
                    f"the model has {len(self.ports)} inputs ({self._named()}): "
                    "shapes must be a mapping by name",
                    file=self.graph.file,
                )
            shapes = {next(iter(self.ports)): shapes}
        infos = self.infos(None)
        for name, given in shapes.items():
            index = self.parameters[self.position(name)]
            infos[index] = infos[index]._replace(shape=self._shape(name, given))
        return infos

    def _shape(self, name: str, given: Any) -> Shape:
        """Parse a caller's shape: a dim may be -1 or None, the whole shape None."""
        if given is None:
            return None
        try:
            if isinstance(given, str | bytes):
                raise TypeError
            return tuple(_dim(dim) for dim in given)
        except (TypeError, ValueError):
            raise InputError(
                f"input {name!r}: invalid shape {given!r} (expected whole numbers from 0; "
                "-1 or None where the extent is not known)",
                file=self.graph.file,
                actual=given,
                rule="input-shape",
            ) from None


def _listed(names: Collection[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, islice(names, _NAMED))) + more


def _dim(given: Any) -> Dim:
    if given is None:
        return UNKNOWN
    if isinstance(given, Interval):
        top = math.inf if given.max is None else given.max
        if not 0 <= given.min <= top:
            raise ValueError(given)
        return given
    extent = as_index(given)
    if extent == -1:
        return UNKNOWN
    if not 0 <= extent <= MAX_EXTENT:
        raise ValueError(given)
    return extent


@functools.cache
def load_fitting() -> Any:
    """Return the module `arrays.fitting`, which loads NumPy."""
    # Imported once: looking a module up at each run would take longer than a small layer.
    from deconv_ir.arrays import fitting as module

    return module
