"""The layer where the tensors of two models begin to differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from deconv_ir.arrays.fitting import describe
from deconv_ir.compare.agreement import Agreement
from deconv_ir.compare.network import Network
from deconv_ir.compare.structure import Difference
from deconv_ir.compare.tensors import TensorDifference
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.expression import SemanticsDifference
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context, Operation, TensorInfo


class Culprit(NamedTuple):
    """The first layer whose output differs, in the order of computation.

    Attributes
    ----------
    tensor : TensorDifference
        Its output.
    attributes : mapping
        Its attributes as written in the first model.
    inputs : tuple of str
        Name, type and shape of its inputs in this run.
    formulas : tuple of str
        Formulas of the dims of its output.
    pads : str
        Its pads by specification and runtime; empty if it has no pads.
    differences : tuple of Difference
        Differences of its attributes, inputs or weights between the two models.
    first : bool
        Whether its inputs were compared and agree; otherwise the error may come from layers
        between it and the last tensors that were compared.
    reason : str
        The same in words.
    hint : str
        The option with which the layer agrees; empty if none is known.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> x = np.ones((1, 8, 16, 16), np.float32)
    >>> dumps = model.run(x, outputs=["up", "up/bias"])
    >>> dumps["up/bias"] += 1
    >>> culprit = deconv_ir.diff(model, None, x, against=dumps).culprit
    >>> isinstance(culprit, deconv_ir.Culprit), culprit.tensor.layer
    (True, "'up/bias' (Add, id 6)")
    """

    tensor: TensorDifference
    attributes: Mapping[str, str]
    inputs: tuple[str, ...]
    formulas: tuple[str, ...]
    pads: str
    differences: tuple[Difference, ...]
    first: bool = True
    reason: str = "its inputs agree"
    hint: str = ""

    def sentence(self, place: str = "") -> str:
        """Return where the error appears, in words; `place` follows the name of the layer."""
        where = "first in" if self.first else "in or before"
        return f"The error appears {where} {self.tensor.layer}{place}: {self.reason}."


def describe_culprit(
    network: Network,
    infos: Sequence[Sequence[TensorInfo]],
    index: int,
    tensor: TensorDifference,
    differences: Sequence[Difference] = (),
    agreement: Agreement | None = None,
) -> Culprit:
    """Collect the facts about the layer of the first model in which an error begins.

    `infos` has the infos of all outputs of all layers in this run, `tensor` is the output of the
    layer, and `differences` are the structural ones of the whole models.  Without an `agreement`,
    its inputs agree.
    """
    layer, context = network.layer(index), network.context
    row = [s for s in network.graph.topology.sources[index] if s is not None]
    given = [infos[s[0]][s[1]] for s in row]
    shape = infos[index][0].shape or ()
    formulas = (layer.operation.explain(given, context, 0, axis) for axis in range(len(shape)))
    semantics = layer.operation.compare_semantics(given, context)
    labels = {layer.label, *(network.layer(s[0]).label for s in row)}
    return Culprit(
        tensor,
        dict(layer.attributes),
        tuple(f"{network.tensor_name(s)}: {info}" for s, info in zip(row, given, strict=True)),
        tuple(dict.fromkeys(formula for formula in formulas if formula is not None)),
        _pads(layer.operation, semantics, context),
        tuple(d for d in differences if d.layer in labels),
        *(agreement or Agreement()),
    )


def _pads(operation: Operation, found: SemanticsDifference | None, context: Context) -> str:
    if found is not None:
        runtime = operation.runtime
        values = f"spec {_list(found.spec)}, {runtime.value} {_list(found.runtime)}"
        return f"{found.message(runtime, context.semantics)}: {values}"
    may_differ = type(operation).compare_semantics is not Operation.compare_semantics
    return "the same under all semantics" if may_differ else ""


def _list(values: Sequence[Any]) -> str:
    return "[" + ",".join(map(str, values)) + "]"


def infer_run(network: Network, inputs: Mapping[int, Array]) -> Sequence[Sequence[TensorInfo]]:
    """Infer the tensors of a run, as far as shapes fit."""
    given = {index: describe(array) for index, array in inputs.items()}
    return infer(network.graph, network.context, given, collect=True).outputs
