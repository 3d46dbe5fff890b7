"""The runs on many files: what each reads and writes, how it ended, and several as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..shared.common import Mistake
from .manifest import Stamp

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

    from .compare import Comparison
    from .manifest import Stamped


class Item(NamedTuple):
    """One run."""

    number: int
    files: dict[str, Path]  # input with many files -> the file of this run
    targets: dict[str, Path]  # output -> file to write; empty if outputs are only compared
    # Output -> file to compare with.
    references: dict[str, Path] = {}  # noqa: RUF012 - never changed

    @property
    def label(self) -> str:
        """The name of the item in messages."""
        return ", ".join(map(str, self.files.values()))

    def stamped(self) -> Stamped:
        """Return the files with their current stamps."""
        return {name: (path, Stamp.of(path)) for name, path in self.files.items()}


class Outcome(NamedTuple):
    """The end of an item: ``done``, ``differs``, ``skipped``, ``failed`` or ``not run``."""

    item: Item
    status: str
    error: str | None = None
    comparisons: tuple[Comparison, ...] = ()


def run_batch(
    run: Callable[[Mapping[str, Array]], dict[str, Array]],
    group: Sequence[Mapping[str, Array]],
    ranks: Mapping[str, int | None],
) -> list[dict[str, Array]]:
    """Stack the arrays of several files, run the model once, and divide its outputs.

    `ranks` has the rank of each input in the model, if it is known.
    """
    import numpy as np

    # A file without the axis of the batch is one element of it.
    single = all(
        (rank := ranks[name]) is not None and array.ndim == rank - 1
        for name, array in group[0].items()
    )
    parts = [
        {name: array[None] if single else array for name, array in arrays.items()}
        for arrays in group
    ]
    lengths = [next(iter(arrays.values())).shape[:1] for arrays in parts]
    for arrays, length in zip(parts, lengths, strict=True):
        if not length or any(array.shape[:1] != length for array in arrays.values()):
            raise Mistake("arrays of one batch must have the same first axis")
    stacked = {name: np.concatenate([arrays[name] for arrays in parts]) for name in parts[0]}
    results = run(stacked)
    ends = np.cumsum([length[0] for length in lengths])
    for name, result in results.items():
        if result.shape[:1] != (ends[-1],):
            raise Mistake(
                f"output {name!r} of shape {list(result.shape)} cannot be divided among "
                f"a batch of {ends[-1]} (run without --batch)"
            )
    split = {name: np.split(result, ends[:-1]) for name, result in results.items()}
    return [
        {name: pieces[i][0] if single else pieces[i] for name, pieces in split.items()}
        for i in range(len(group))
    ]
