"""A model with fixed inputs: findings, plan and results of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.arrays.fitting import own
from deconv_ir.errors import InputError
from deconv_ir.execute import Executor
from deconv_ir.execute.executor import Observer
from deconv_ir.execute.plan import Plan
from deconv_ir.findings import Finding
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.infer import Inference
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.execute.profile import Profile

    MakeExecutor = Callable[[], Executor]
    InferFrom = Callable[[Mapping[int, TensorInfo]], Inference]


class BoundModel:
    """A model with arrays or shapes for its inputs, made by `Model.bind`.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> bound = model.bind(np.zeros((1, 8, 16, 16), np.float32))
    >>> isinstance(bound, deconv_ir.BoundModel), bound.findings, bound.plan.bound_bytes
    (True, (), 17424)
    >>> bound.run()["y"].shape
    (1, 4, 32, 32)
    """

    def __init__(
        self,
        executor: MakeExecutor,
        infer: InferFrom,
        names: Sequence[str],
        infos: Mapping[int, TensorInfo],
        arrays: Mapping[int, Array] | None,
        whole: tuple[Finding, ...] = (),
    ) -> None:
        self._executor = executor
        self._infer = infer
        self._names = names
        self._infos = infos
        self._arrays = arrays
        self._whole = whole

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Declared dims that contradict the shapes, and layers for which the semantics differ.

        Raises
        ------
        ShapeError
            The shapes do not fit a layer.
        """
        return (*self._infer(self._infos).findings, *self._whole)

    @property
    def plan(self) -> Plan:
        """The plan of a run; its figures are bytes.

        Raises
        ------
        ShapeError, UnsupportedError, ResourceError
            As in `Model.run`.
        """
        return self._plan_for(self._executor())

    def _plan_for(self, executor: Executor) -> Plan:
        key = tuple(self._infos.values())
        return executor.plan(key, lambda: self._infer(self._infos).outputs)

    def run(self, *, profile: Profile | None = None, once: bool = False) -> dict[str, Array]:
        """Compute the outputs; see `Model.run`.

        With `once`, the packed weights of each layer are freed after it has run, for a process that
        runs the model a single time.  Another run reads them again.

        Raises
        ------
        InputError
            The model is bound to shapes.
        """
        return dict(zip(self._names, self.compute(profile, once=once), strict=True))

    def compute(
        self,
        profile: Profile | None = None,
        variables: dict[str, Array] | None = None,
        *,
        once: bool = False,
    ) -> list[Array]:
        """Compute all tensors that were requested from the executor; see `run`.

        `variables` are the values of the bodies' variables, which are replaced at the end of the
        run.
        """
        if self._arrays is None:
            raise InputError("the model is bound to shapes; bind arrays to run it")
        executor = self._executor()
        plan = self._plan_for(executor)
        after = {} if variables is None else dict(variables)
        try:
            observer = None if profile is None else _record(profile, plan)
            results = executor.run(
                plan, self._arrays, observer, after, once, owned=variables is None
            )
        except MemoryError as error:
            raise executor.out_of_memory(plan, error) from error
        if variables is None:
            return results
        given = list(self._arrays.values())
        changed = {name: a for name, a in after.items() if a is not variables.get(name)}
        owned = own([*results, *changed.values()], given)
        variables.update(zip(changed, owned[len(results) :], strict=True))
        return owned[: len(results)]


class RepeatedRun:
    """Runs with arrays of the same shapes and types as those of a run before.

    What depends on these alone is not looked up again.

    Parameters
    ----------
    inputs : sequence of str
        Names of the inputs, in the order of the model.
    bound : BoundModel
        The run before.
    """

    def __init__(self, inputs: Sequence[str], bound: BoundModel) -> None:
        arrays = bound._arrays
        assert arrays is not None, "it has run"
        self._inputs = tuple(inputs)
        self._outputs = tuple(bound._names)
        self._parameters = tuple(arrays)
        self._forms = tuple((array.shape, array.dtype) for array in arrays.values())
        self._threads = get_threads()
        self._executor = bound._executor()
        self._plan = bound._plan_for(self._executor)

    @classmethod
    def after(cls, bound: BoundModel, inputs: Sequence[str]) -> RepeatedRun | None:
        """Return the runs like one before; None if the values of arrays matter."""
        infos, arrays = bound._infos.values(), bound._arrays or {}
        # Shapes may depend on values, and each string is checked.
        if any(info.value is not None for info in infos):
            return None
        if any(array.dtype.hasobject for array in arrays.values()):
            return None
        return cls(inputs, bound)

    def run(self, inputs: object) -> dict[str, Array] | None:
        """Compute the outputs; None: it is another run, or the inputs are not plain arrays."""
        given: Sequence[Any]
        if type(inputs) is np.ndarray:
            given = (inputs,)
        elif type(inputs) is list or type(inputs) is tuple:
            given = inputs
        elif type(inputs) is dict and len(inputs) == len(self._inputs):
            given = [inputs.get(name) for name in self._inputs]
        else:
            return None
        forms = self._forms
        if len(given) != len(forms) or get_threads() != self._threads:
            return None
        for array, (shape, dtype) in zip(given, forms, strict=True):
            if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                return None
        arrays = dict(zip(self._parameters, given, strict=True))
        plan, executor = self._plan, self._executor
        try:
            results = executor.run(plan, arrays, owned=True)
        except MemoryError as error:
            raise executor.out_of_memory(plan, error) from error
        return dict(zip(self._outputs, results, strict=True))


def _record(profile: Profile, plan: Plan) -> Observer:
    from deconv_ir.execute.profile import record

    return record(profile, plan)
