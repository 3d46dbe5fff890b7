"""A model with fixed inputs: findings, plan and results of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deconv_ir.arrays.fitting import own
from deconv_ir.errors import InputError
from deconv_ir.execute import Executor
from deconv_ir.execute.executor import Observer
from deconv_ir.execute.memory import out_of_memory
from deconv_ir.execute.plan import Plan
from deconv_ir.findings import Finding
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.infer import Inference
from deconv_ir.ir.operation import TensorInfo

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
    (True, (), 18448)
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
            results = executor.run(plan, self._arrays, observer, after, once)
        except MemoryError as error:
            raise out_of_memory(
                plan.peak_bytes, error, subject="the model", file=executor.graph.file
            ) from error
        given = list(self._arrays.values())
        if variables is None:
            return own(results, given)
        changed = {name: a for name, a in after.items() if a is not variables.get(name)}
        owned = own([*results, *changed.values()], given)
        variables.update(zip(changed, owned[len(results) :], strict=True))
        return owned[: len(results)]


def _record(profile: Profile, plan: Plan) -> Observer:
    from deconv_ir.execute.profile import record

    return record(profile, plan)
