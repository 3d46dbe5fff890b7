"""The methods of a model that run it in tiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import InputError
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Graph, Port, Source
from deconv_ir.ir.operation import Context, TensorInfo

if TYPE_CHECKING:
    from deconv_ir.tiling.tiled_run import TiledRun

_NAMED = 4


class Tileable(ABC):
    """The methods of a model that compute an output box by box."""

    graph: Graph
    context: Context
    inputs: Mapping[str, Port]
    memory_limit: int | None

    @abstractmethod
    def _tiling(
        self, shapes: Mapping[str, Any] | None, output: str | None
    ) -> tuple[dict[int, str], Sequence[Sequence[TensorInfo]], Mapping[str, Source]]:
        """Return names of the inputs by layer, the infos of all tensors, and the outputs."""

    def tiled(
        self, shapes: Mapping[str, Any] | None = None, *, output: str | None = None
    ) -> TiledRun:
        """Return a run of the output box by box, each bitwise equal to a run of the whole.

        Parameters
        ----------
        shapes : mapping, optional
            Input name -> shape of the whole array; inputs left out have the shape of the model.
        output : str, optional
            The tensor to compute; default: the only output of the model.

        Raises
        ------
        InputError
            The model has several outputs and none is named, or a shape does not fit.
        UnsupportedError
            A shape of the network is known only when it runs.

        Examples
        --------
        >>> import deconv_ir
        >>> tiles = deconv_ir.load("samples/block/block.xml").tiled()
        >>> tiles.tile(((0, 1), (0, 4), (8, 16), (0, 32))).inputs  # what that box reads
        {'x': ((0, 1), (0, 8), (3, 9), (0, 16))}
        """
        from deconv_ir.tiling.tiled_run import TiledRun

        names, infos, wanted = self._tiling(shapes, output)
        if len(wanted) > 1:
            raise InputError(
                f"only one output can be tiled, the model has {len(wanted)} "
                f"({', '.join(map(repr, islice(wanted, _NAMED)))})",
                file=self.graph.file,
                hint=Hint.NAME_ONE(),
            )
        (source,) = wanted.values()
        return TiledRun(self.graph, self.context, names, infos, source, self.memory_limit)

    def map_dask(
        self,
        array: Any,
        *,
        tile: str | Sequence[int] = "auto",
        output: str | None = None,
        two_pass: bool = False,
    ) -> Any:
        """Return the output as a lazy Dask array with a chunk for each tile.

        A task reads only the data that its tile needs; the model is sent to a worker once.
        Requires the extra ``cluster``.

        Parameters
        ----------
        array : dask.array.Array, array or mapping
            The only input of the model, or arrays by input name.  Their element types
            are those of the model.
        tile : str or sequence of int
            Extents of a tile along the last axes of the output; ``auto``: a tile that fits a
            quarter of the available memory.
        output : str, optional
            The tensor to compute; default: the only output of the model.
        two_pass : bool
            Statistics of reductions and normalizations over whole axes are computed by separate
            tasks, which read all of the input.

        Returns
        -------
        dask.array.Array
            An array with the shape and element type of the output.

        Raises
        ------
        InputError
            An array is missing or does not fit, or the tile has too many axes.
        UnsupportedError
            An axis cannot be tiled, or Dask is not installed.
        """
        from deconv_ir.tiling.dask_arrays import map_dask

        if isinstance(array, Mapping):
            return map_dask(self, array, tile, output, two_pass=two_pass)
        if len(self.inputs) != 1:
            raise InputError(f"the model takes {len(self.inputs)} inputs, found one array")
        one = {next(iter(self.inputs)): array}
        return map_dask(self, one, tile, output, two_pass=two_pass)
