"""Differences of two models in layers, attributes, types, shapes, connections and weights."""

from __future__ import annotations

import enum
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deconv_ir.compare.folding import Folded
from deconv_ir.compare.matching import Matching, match
from deconv_ir.compare.network import Network, StoredConstant
from deconv_ir.compare.weights import compare_weights
from deconv_ir.formats.openvino_xml.port_maps import PORT_MAPS
from deconv_ir.ir.body import Body, Joint
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.graph import Info, Layer, Source
from deconv_ir.ir.infer import infer
from deconv_ir.ir.shapes import format_shape
from deconv_ir.ops.windows import without_void


class Aspect(enum.Enum):
    """The kinds of differences between two models.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.Aspect("weights") is deconv_ir.Aspect.WEIGHTS
    True
    """

    REMOVED = "removed"
    ADDED = "added"
    NAME = "names"
    TYPE = "type"
    VERSION = "version"
    ATTRIBUTE = "attribute"
    EDGE = "edge"
    WEIGHTS = "weights"
    FOLDED = "folded"
    SHAPE = "shape"
    RT_INFO = "rt_info"
    IDS = "ids"
    ORDER = "order"


class Difference(NamedTuple):
    """One difference in structure.

    Attributes
    ----------
    aspect : Aspect
    layer : str
        The layer in the first model, or in the second if the first does not have it:
        ``'name' (Type, id 5)``; empty: the model as a whole.
    message : str
        The difference in words.
    a, b : str
        The value on each side, if the difference is in a value.
    line_a, line_b : int or None
        Line of the layer in each file.

    Examples
    --------
    >>> import deconv_ir
    >>> found = deconv_ir.Difference(deconv_ir.Aspect.ATTRIBUTE, "'up'", "strides", "1", "2")
    >>> str(found)
    "'up': strides: 1 in A, 2 in B"
    """

    aspect: Aspect
    layer: str
    message: str
    a: str = ""
    b: str = ""
    line_a: int | None = None
    line_b: int | None = None

    def sentence_part(self) -> str:
        """Return the difference without the name of its layer."""
        return str(self._replace(layer=""))

    def __str__(self) -> str:
        values = f": {self.a or 'none'} in A, {self.b or 'none'} in B" if self.a or self.b else ""
        return f"{self.layer}: {self.message}{values}" if self.layer else self.message + values


def compare_structure(
    a: Network,
    b: Network,
    matching: Matching,
    folded: Sequence[Folded] = (),
    ignore: Collection[Aspect] = (),
    weights_tolerance: float = 0.0,
) -> tuple[Difference, ...]:
    """Return the differences, in the order of the layers.

    `folded` is the batch normalisation that only one model has as layers; aspects to `ignore` are
    not compared.  A difference of weights up to `weights_tolerance`, relative to their largest
    magnitude, is ignored.
    """
    return tuple(
        found
        for found in _Comparer(a, b, matching, folded, weights_tolerance, ignore).run()
        if found.aspect not in ignore
    )


class _Partners(NamedTuple):
    """Two layers, one of each model, that are partners."""

    a: Layer
    b: Layer

    def differ(self, aspect: Aspect, message: str, left: str = "", right: str = "") -> Difference:
        return Difference(aspect, self.a.label, message, left, right, self.a.line, self.b.line)


class _Comparer:
    def __init__(
        self,
        a: Network,
        b: Network,
        matching: Matching,
        folded: Sequence[Folded],
        tolerance: float,
        ignore: Collection[Aspect],
    ) -> None:
        self.a = a
        self.b = b
        self.pairs = matching.pairs
        self.partners = set(matching.pairs.values())
        self.matching = matching
        self.folded = folded
        self.tolerance = tolerance
        self.ignore = ignore
        self.infos_a = infer(a.graph, a.context, collect=True).outputs
        self.infos_b = infer(b.graph, b.context, collect=True).outputs

    def run(self) -> Iterator[Difference]:
        explained = {k for fold in self.folded for k in (*fold.steps_a, *fold.constants_a)}
        explained_b = {k for fold in self.folded for k in (*fold.steps_b, *fold.constants_b)}
        for fold in self.folded:
            both = _Partners(self.a.layer(fold.at_a), self.b.layer(fold.at_b))
            yield both.differ(Aspect.FOLDED, fold.message)
        rank = {index: place for place, index in enumerate(self.a.nodes)}
        for index in self.matching.removed:
            if index not in explained:
                yield self._alone(Aspect.REMOVED, self.a, index)
        for index in self.matching.added:
            if index not in explained_b:
                yield self._alone(Aspect.ADDED, self.b, index)
        for i, j in sorted(self.pairs.items(), key=lambda pair: rank[pair[0]]):
            if i not in explained and j not in explained_b:
                yield from self._layers(i, j)
        yield from self._whole()

    def _alone(self, aspect: Aspect, network: Network, index: int) -> Difference:
        """Report a layer that only one model has; a constant in the form that its users see."""
        layer = network.layer(index)
        side = "A" if network is self.a else "B"
        sources = [network.tensor_name(s) for s in network.sources[index] if s is not None]
        of = f", computed from {', '.join(map(repr, sources[:3]))}" if sources else ""
        lines = (layer.line, None) if network is self.a else (None, layer.line)
        return Difference(aspect, layer.label, f"only in {side}{of}", "", "", *lines)

    def _layers(self, i: int, j: int) -> Iterator[Difference]:
        """Compare two layers that are partners."""
        both = a, b = _Partners(self.a.layer(i), self.b.layer(j))
        if a.name != b.name:
            yield both.differ(Aspect.NAME, "renamed", repr(a.name), repr(b.name))
        elif self.a.type_name(i) != "Const" or a.type == b.type:
            for port_a, port_b in zip(a.outputs, b.outputs, strict=False):
                if port_a.names != port_b.names:
                    names = (", ".join(p.names) for p in (port_a, port_b))
                    yield both.differ(Aspect.NAME, "tensor name", *names)
        constant_a, constant_b = self.a.constants.get(i), self.b.constants.get(j)
        own = list(self._operations(both) if constant_a is None or constant_b is None else ())
        if constant_a is not None and constant_b is not None:
            own += self._constants(both, constant_a, constant_b)
        own += self._edges(i, j, both)
        own += self._bodies(i, j, both)
        yield from own
        if not own:
            yield from self._shapes(i, j, both)
        # A Convert of a constant has its own rt_info.
        notes = (a.extra_attributes, _extras(a)), (b.extra_attributes, _extras(b))
        if notes[0] != notes[1] and (a.type == b.type or constant_a is None):
            yield both.differ(Aspect.RT_INFO, "rt_info", *map(_infos, (a, b)))

    def _operations(self, both: _Partners) -> Iterator[Difference]:
        a, b = both
        if a.type != b.type:
            yield both.differ(Aspect.TYPE, "type", a.type, b.type)
            return
        if a.version != b.version:
            yield both.differ(Aspect.VERSION, "version", a.version or "", b.version or "")
        left, right = _attributes(a), _attributes(b)
        effects = without_void(a.operation), without_void(b.operation)
        for name in dict.fromkeys((*left, *right)):
            known = all(name in operation.fields for operation in effects)
            if known and getattr(effects[0], name) == getattr(effects[1], name):
                continue
            # An attribute that one version lacks differs if the other's is not the default.
            one, other = left.get(name), right.get(name)
            if (
                one != other
                and not (one is None and _is_default(b, name))
                and not (other is None and _is_default(a, name))
            ):
                yield both.differ(Aspect.ATTRIBUTE, name, one or "", other or "")

    def _bodies(self, i: int, j: int, both: _Partners) -> Iterator[Difference]:
        """Compare the bodies of two layers, and their connections to the layers."""
        a, b = both
        networks = zip(self.a.bodies(i), self.b.bodies(j), strict=False)
        bodies = zip(a.operation.bodies, b.operation.bodies, strict=False)
        for (left, right), (body_a, body_b) in zip(networks, bodies, strict=True):
            matching = match(left, right)
            own = {index: index for index in range(len(body_a.graph.layers))}
            if _joints(body_a, own) != _joints(body_b, {j: i for i, j in matching.pairs.items()}):
                message = f"port map or back edges of the {body_a.name} differ"
                yield both.differ(Aspect.EDGE, message)
            for found in compare_structure(left, right, matching, (), self.ignore, self.tolerance):
                place = f"{a.name}/{body_a.name}"
                yield found._replace(layer=f"{place}: {found.layer}" if found.layer else place)

    def _constants(
        self, both: _Partners, left: StoredConstant, right: StoredConstant
    ) -> Iterator[Difference]:
        shape_a, shape_b = left.operation.shape, right.operation.shape
        if shape_a != shape_b:
            yield both.differ(
                Aspect.ATTRIBUTE, "shape", format_shape(shape_a), format_shape(shape_b)
            )
        elif Aspect.WEIGHTS not in self.ignore:
            message = compare_weights(self.a, left, self.b, right, self.tolerance)
            if message is not None:
                yield both.differ(Aspect.WEIGHTS, message)

    def _edges(self, i: int, j: int, both: _Partners) -> Iterator[Difference]:
        """Compare the inputs of two layers, skipping layers that were added or removed."""
        row_a, row_b = self.a.sources[i], self.b.sources[j]
        if len(row_a) != len(row_b):
            yield both.differ(Aspect.EDGE, "number of inputs", str(len(row_a)), str(len(row_b)))
            return
        taken = self.partners
        for port, (source_a, source_b) in enumerate(zip(row_a, row_b, strict=True)):
            if source_a is None or source_b is None:
                continue
            at_a = _skip(self.a, source_a, self.pairs.keys())
            at_b = _skip(self.b, source_b, taken)
            if at_a is None or at_b is None or (self.pairs[at_a[0]], at_a[1]) == at_b:
                continue
            yield both.differ(
                Aspect.EDGE,
                f"input {port} comes from",
                repr(self.a.tensor_name(source_a)),
                repr(self.b.tensor_name(source_b)),
            )

    def _shapes(self, i: int, j: int, both: _Partners) -> Iterator[Difference]:
        """Compare the outputs of layers that are alike and have the same inputs."""
        a, b = both
        for index_a, index_b in zip(self.a.sources[i], self.b.sources[j], strict=False):
            if index_a is None or index_b is None:
                continue
            left = self.infos_a[index_a[0]][index_a[1]]
            right = self.infos_b[index_b[0]][index_b[1]]
            if (left.shape, left.element_type) != (right.shape, right.element_type):
                return
        pairs = zip(self.infos_a[i], self.infos_b[j], a.outputs, b.outputs, strict=False)
        for output, (left, right, port_a, port_b) in enumerate(pairs):
            where = f"output {output}" if len(a.outputs) > 1 else "output"
            if (left.shape, left.element_type) != (right.shape, right.element_type):
                yield both.differ(Aspect.SHAPE, where, str(left), str(right))
            elif None not in (port_a.shape, port_b.shape) and port_a.shape != port_b.shape:
                yield both.differ(
                    Aspect.SHAPE,
                    f"declared shape of the {where}",
                    format_shape(port_a.shape),
                    format_shape(port_b.shape),
                )
            elif (
                None not in (port_a.element_type, port_b.element_type)
                and port_a.element_type is not port_b.element_type
            ):
                yield both.differ(
                    Aspect.SHAPE,
                    f"declared element type of the {where}",
                    str(port_a.element_type or ""),
                    str(port_b.element_type or ""),
                )

    def _whole(self) -> Iterator[Difference]:
        """Compare the properties of the whole models."""
        a, b = self.a.graph, self.b.graph
        if a.name != b.name:
            yield Difference(Aspect.NAME, "", "name of the network", repr(a.name), repr(b.name))
        if a.ir_version != b.ir_version:
            versions = (str(a.ir_version or ""), str(b.ir_version or ""))
            yield Difference(Aspect.VERSION, "", "IR version", *versions)
        if a.extras != b.extras:
            yield Difference(Aspect.RT_INFO, "", "rt_info of the network")
        others = sum(self.a.layer(i).id != self.b.layer(j).id for i, j in self.pairs.items())
        if others:
            yield Difference(Aspect.IDS, "", f"{others} layers have other ids")
        order = list(self.pairs.values())
        if order != sorted(order):
            yield Difference(Aspect.ORDER, "", "the layers are in another order")


def _skip(network: Network, source: Source, paired: Collection[int]) -> Source | None:
    """Return the nearest earlier tensor of a layer with a partner; None if it is ambiguous."""
    at: Source | None = source
    while at is not None and at[0] not in paired:
        row = [
            s
            for s in network.sources[at[0]]
            if s is not None and s[0] not in network.constant_layers
        ]
        at = row[0] if len(row) == 1 else None
    return at


def _attributes(layer: Layer) -> dict[str, str]:
    """Return the attributes of a layer with their defaults; unknown ones as written."""
    fields = (name for name in layer.operation.fields if name not in layer.operation.body_names)
    known = {name: _text(getattr(layer.operation, name)) for name in fields}
    return known or dict(layer.attributes)


def _joints(body: Body, layers: Mapping[int, int]) -> tuple[Hashable, ...]:
    """Return the port map and the back edges of a body, with its layers renumbered."""

    def joined(joints: Iterable[Joint]) -> frozenset[Joint]:
        return frozenset(x._replace(inner=layers.get(x.inner, x.inner)) for x in joints)

    edges = frozenset((layers.get(s, s), layers.get(e, e)) for s, e in body.back_edges)
    return joined(body.inputs), joined(body.outputs), edges


def _is_default(layer: Layer, name: str) -> bool:
    declared = layer.operation.fields.get(name)
    return declared is not None and getattr(layer.operation, name) == declared.default


def _text(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, Interval):  # a dim, although it is a tuple
        return str(value)
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    return "" if value is None else str(value)


def _infos(layer: Layer) -> str:
    """Return the other properties of a layer, in short."""

    def show(info: Info) -> str:
        values = " ".join(f"{name}={value}" for name, value in info.attributes)
        return " ".join(filter(None, (values, *map(show, info.children), info.text)))

    extra = [f"{name}={value}" for name, value in layer.extra_attributes]
    return "; ".join([*extra, *map(show, _extras(layer))])[:200]


def _extras(layer: Layer) -> tuple[Info, ...]:
    """Return the elements of a layer that belong to neither its operation nor its bodies."""
    names = layer.operation.body_names
    known = {*names, *(PORT_MAPS[name] for name in names), "back_edges"} if names else ()
    return tuple(extra for extra in layer.extras if extra.tag not in known)
