"""Differences between two models: structure, and behaviour on given inputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from deconv_ir.compare.behaviour import Against, Behaviour
from deconv_ir.compare.culprit import Culprit
from deconv_ir.compare.cut import results_of
from deconv_ir.compare.folding import find_folded, tensor_pairs
from deconv_ir.compare.matching import match
from deconv_ir.compare.network import Comparable, Network, open_network
from deconv_ir.compare.structure import Aspect, Difference, compare_structure
from deconv_ir.compare.tensors import TensorDifference, require_tolerances
from deconv_ir.compare.thresholds import Failure, OutputConditions, Threshold
from deconv_ir.compare.verdict import ModelVerdict
from deconv_ir.errors import SettingError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.tensor_names import unique_names
from deconv_ir.model import Model

if TYPE_CHECKING:
    from deconv_ir.model import Inputs

RTOL = 1e-4
"""Default tolerance of tensors, relative to their largest magnitude."""


class ModelDifference(NamedTuple):
    """The result of `diff`.

    Attributes
    ----------
    a, b : str
        Names of the compared models.
    layers : tuple of int
        Number of layers of the first model, and of the second (0: not an IR); a constant and its
        conversion count once.
    matched : int
        Number of layers in both models.
    differences : tuple of Difference
        Differences in structure.
    tensors : tuple of TensorDifference
        Differences in behaviour: every tensor of both models, in the order of computation.
    culprit : Culprit or None
        The layer in which the error first appears.
    stopped : str
        The reason why later tensors could not be compared.
    unmatched : mapping
        Names of the given arrays that were not compared -> the reason.
    verdict : ModelVerdict or None
        Who is right, if this was asked.
    conditions : tuple of Threshold
        The conditions under which an output counts as different.
    failures : tuple of Failure
        The outputs that meet one.

    Examples
    --------
    >>> import deconv_ir
    >>> found = deconv_ir.diff("samples/block/block.xml", "samples/block/block.xml")
    >>> isinstance(found, deconv_ir.ModelDifference), found.equal, found.matched
    (True, True, 7)
    """

    a: str
    b: str
    layers: tuple[int, int]
    matched: int
    differences: tuple[Difference, ...] = ()
    tensors: tuple[TensorDifference, ...] = ()
    culprit: Culprit | None = None
    stopped: str = ""
    unmatched: Mapping[str, str] = MappingProxyType({})
    verdict: ModelVerdict | None = None
    conditions: tuple[Threshold, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the models are equal; with conditions, whether no output meets one."""
        if self.conditions:
            return not self.failures and not self.stopped
        return not self.differences and all(t.within for t in self.tensors)


def diff(
    a: Comparable,
    b: Comparable | None = None,
    inputs: Inputs | None = None,
    *,
    against: Against | None = None,
    ignore: Collection[Aspect | str] = (Aspect.IDS, Aspect.ORDER),
    weights_tolerance: float = 0.0,
    rtol: float = RTOL,
    atol: float = 0.0,
    levels: int = 0,
    semantics: Semantics | str = Semantics.SPEC,
    other_semantics: Semantics | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    modest: bool = False,
    verdict: bool | Literal["auto"] = False,
    settings: Mapping[str, str] | None = None,
    fail_if: Sequence[str] = (),
    observe: Callable[[str, Array, Array], None] | None = None,
) -> ModelDifference:
    """Compare two models.

    Parameters
    ----------
    a, b : Model or path-like
        The models.  Without `b`, `a` is compared with `against`.  With
        onnxruntime, `b` is the path of an ONNX model.
    inputs : mapping, iterable or array, optional
        As in `Model.run`: both models run on them, and tensors are compared.
    against : str or mapping or tuple of two mappings, optional
        ``openvino`` or ``onnxruntime``: the runtime of `b`, tensor by tensor.  A mapping has
        arrays by tensor name or layer name, from any tool.  Two mappings are compared with
        each other: `a` does not run, and is needed for the verdict.
    ignore : collection of Aspect or str
        Aspects of structure that are not compared.
    weights_tolerance : float
        Difference of weights that is ignored, relative to their largest magnitude.
    rtol : float
        Tolerance of tensors, relative to their largest magnitude in `a`.
    atol : float
        Absolute tolerance of tensors.
    levels : int
        Quantised tensors, those of FakeQuantize, Quantize and DynamicQuantize, may differ by this
        number of levels.  Layers after such a tensor are compared for the values that `b`
        has there.
    semantics : Semantics or str
        Semantics of models that are given as paths.
    other_semantics : Semantics or str, optional
        Semantics of `b`, if it differs.
    progress : callable, optional
        Called with the number of compared layers and the total.
    modest : bool
        Refuse runs whose work is out of proportion to the number of layers, as damaged files
        cause them.
    verdict : bool
        Also compute every layer in f64, from the tensors that each side had at its inputs, and say
        which side is wrong: its deviation is more than its precision allows
        (``docs/verdicts.md``).  ``auto``: only if a tensor is out of tolerance.
    settings : mapping, optional
        Settings of OpenVINO, such as ``{"INFERENCE_PRECISION_HINT": "bf16"}``; by default, this
        hint is f32.
    fail_if : sequence of str
        Conditions such as ``rms>1e-3`` or ``y: psnr<40``, on all outputs or one: the models are
        equal if no output meets one, whatever else differs (`Metric`).
    observe : callable, optional
        Called with each tensor that is compared: its name, unique in `a`, and both arrays.

    Returns
    -------
    ModelDifference

    Raises
    ------
    SettingError
        The arguments contradict each other.
    UnsupportedError
        A runtime is not installed, or a layer cannot be run.
    ResourceError
        A run does not fit into memory, or is not `modest`.
    DeconvError
        As in `load` and `Model.run`.

    Examples
    --------
    >>> import deconv_ir
    >>> from pathlib import Path
    >>> text = Path("samples/block/block.xml").read_text()
    >>> _ = Path("changed.xml").write_text(text.replace('strides="2, 2"', 'strides="2, 1"'))
    >>> weights = Path("samples/block/block.bin")
    >>> changed = deconv_ir.load("changed.xml", weights, warn=False)
    >>> found = deconv_ir.diff("samples/block/block.xml", changed)
    >>> for difference in found.differences:
    ...     print(difference)
    'up' (ConvolutionBackpropData, id 3): strides: 2,2 in A, 2,1 in B
    """
    require_tolerances(weights_tolerance=weights_tolerance, rtol=rtol, atol=atol)
    if b is None and against is None:
        raise SettingError("diff requires a second model, or against")
    if b is not None and isinstance(against, Mapping | tuple):
        raise SettingError("against arrays, there is no second model")
    if isinstance(against, str) and against not in ("openvino", "onnxruntime"):
        raise SettingError(f"against must be openvino, onnxruntime or arrays, found {against!r}")
    if not isinstance(verdict, bool) and verdict != "auto":
        raise SettingError(f"verdict must be True, False or 'auto', found {verdict!r}")
    first = open_network(a, semantics)
    if inputs is None and (against is not None or fail_if) and not first.inputs.parameters:
        inputs = {}
    ignored = {_aspect(aspect) for aspect in ignore}
    arrays = None if inputs is None else first.inputs.match(inputs, cast=False)
    second, matching = None, None
    pairs: dict[int, int] = {}
    differences: tuple[Difference, ...] = ()
    conditions = _conditions(first, fail_if)
    is_model = against is None or against == "openvino"
    if is_model:
        # Without a second model, the runtime runs the first model.
        second = first if b is None else open_network(b, other_semantics or semantics)
        matching = match(first, second)
        pairs = matching.pairs
        if second is not first:
            folded = find_folded(first, second, matching)
            differences = compare_structure(
                first, second, matching, folded, ignored, weights_tolerance
            )
            pairs = tensor_pairs(pairs, folded)
    if arrays is None:
        if against is not None:
            raise SettingError("against compares tensors, and requires inputs")
        if fail_if:
            raise SettingError("fail_if compares tensors, and requires inputs")
        tensors: tuple[TensorDifference, ...] = ()
        culprit, stopped = None, ""
        unmatched: Mapping[str, str] = {}
    else:
        order = first.graph.topology.order
        names = {s: n for n, s in unique_names(first.graph, order).items()} if observe else {}

        def compare(*, judges: bool, stops: bool) -> tuple[Behaviour, tuple[TensorDifference, ...]]:
            behaviour = Behaviour(first, second, pairs, arrays, differences, (rtol, atol))
            behaviour.levels = levels
            behaviour.settings = settings
            behaviour.judges, behaviour.stops = judges, stops
            behaviour.conditions = _conditions(first, fail_if)
            if observe is not None:
                behaviour.observe = lambda source, x, y: observe(names[source], x, y)
            if modest:
                behaviour.require_modest_runs()
            return behaviour, tuple(behaviour.run(b, against, progress))

        behaviour, tensors = compare(judges=verdict is True, stops=verdict == "auto")
        if behaviour.stops and not all(tensor.within for tensor in tensors):
            behaviour, tensors = compare(judges=True, stops=False)
        culprit, stopped = behaviour.culprit, behaviour.stopped
        unmatched, conditions = behaviour.unmatched, behaviour.conditions
        if not stopped:
            conditions.require_compared()
    other = _name(b) if b is not None else against if isinstance(against, str) else "arrays"
    judged: ModelVerdict | None = None
    if arrays is not None and behaviour.judging is not None:
        sides = ("A", "B")
        if isinstance(against, str | Mapping):
            sides = ("deconv_ir", against if isinstance(against, str) else other)
        judged = ModelVerdict(
            sides, tuple(behaviour.judging.layers), behaviour.repeated, behaviour.notes
        )
        if against == "onnxruntime" and judged.wrong_sides == ("onnxruntime",):
            note = "The layer is judged by the IR: its conversion from ONNX may be wrong instead."
            judged = judged._replace(notes=(*judged.notes, note))
    return ModelDifference(
        _name(a),
        other,
        (len(list(first.nodes)), len(list(second.nodes)) if second else 0),
        len(matching.pairs) if matching else 0,
        differences,
        tensors,
        culprit,
        stopped,
        unmatched,
        judged,
        conditions.thresholds,
        tuple(conditions.failures),
    )


def _name(given: Comparable) -> str:
    if isinstance(given, Model):
        return given.graph.file or given.graph.name
    return os.fspath(given)


def _conditions(network: Network, texts: Sequence[str]) -> OutputConditions:
    """Parse conditions on the outputs of a network."""
    outputs = {source: network.tensor_name(source) for source in results_of(network.graph)}
    given = [outputs[s] for s in outputs if network.layer(s[0]).type == "Parameter"]
    return OutputConditions([Threshold.parse(text) for text in texts], outputs, given)


def _aspect(given: Aspect | str) -> Aspect:
    try:
        return Aspect(given)
    except ValueError:
        known = ", ".join(aspect.value for aspect in Aspect)
        raise SettingError(f"ignore: no aspect {given!r}; there are {known}") from None
