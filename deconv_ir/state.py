"""The values of a model's variables, kept between runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from deconv_ir.errors import InputError
from deconv_ir.ir.dtypes import Array


class State:
    """The values of a model's variables, which `Model.run` reads and writes.

    A variable without a value has its initial value.  A state can be used by one run at a time;
    each thread that runs a model needs its own.

    Parameters
    ----------
    values : mapping, optional
        Name of a variable -> array.

    Examples
    --------
    >>> import deconv_ir
    >>> state = deconv_ir.State()
    >>> model = deconv_ir.load("samples/block/block.xml")  # it has no variables
    >>> import numpy as np
    >>> y = model.run(np.zeros((1, 8, 16, 16), np.float32), state=state)
    >>> dict(state.values)
    {}
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        import numpy as np

        self._values: dict[str, Array] = {n: np.array(v) for n, v in (values or {}).items()}
        self._running = threading.Lock()

    @property
    def values(self) -> Mapping[str, Array]:
        """The arrays of the variables that have been assigned, by name."""
        return MappingProxyType(self._values)

    def reset(self, *names: str) -> None:
        """Drop the values of some variables; without names, of all.

        Raises
        ------
        InputError
            A run is using the state.
        """
        with self.taken() as values:
            for name in names or tuple(values):
                values.pop(name, None)

    @contextmanager
    def taken(self) -> Iterator[dict[str, Array]]:
        """Lock the values for a run, which may change them."""
        if not self._running.acquire(blocking=False):
            raise InputError("the state is in use by another run; each thread needs its own")
        try:
            yield self._values
        finally:
            self._running.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (self._values,)
