"""A weights file that records the bytes on which findings depend."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from deconv_ir.formats.openvino_xml.weights import Weights

_BLOCK = 1 << 17
"""Bytes that fit in the cache of a core."""


class RecordedWeights:
    """A weights file that records all reads: offsets and sizes, in order.

    Raises
    ------
    WeightsError
        The file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._weights = Weights(path)
        self.reads: list[tuple[int, int]] = []
        self.searched = 0
        """Bytes that a rule has searched within its bound."""
        # New memory for each block would take longer than a search in it.
        self._block = bytearray(_BLOCK)

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def path(self) -> str:
        """Path of the file."""
        return self._weights.path

    @property
    def name(self) -> str:
        """Name of the file, without its folder."""
        return self._weights.name

    def read(self, offset: int, size: int) -> memoryview:
        """Return `size` bytes from `offset` on.

        Raises
        ------
        WeightsError
            The file has fewer bytes.
        """
        view = self._weights.read(offset, size)
        self.reads.append((offset, size))
        return view

    def blocks(self, offset: int, size: int) -> Iterator[bytearray]:
        """Iterate over `size` bytes in blocks of whole elements, each valid until the next block.

        Raises
        ------
        WeightsError
            The file has fewer bytes.
        """
        self.reads.append((offset, size))
        for start in range(0, size, _BLOCK):
            block = self._block if size - start >= _BLOCK else bytearray(size - start)
            self._weights.read_into(offset + start, memoryview(block))
            yield block


def fingerprint(weights: RecordedWeights, reads: Sequence[tuple[int, int]]) -> str | None:
    """Return a hash of the recorded reads of a weights file; None if it is now too short."""
    import hashlib

    digest = hashlib.sha256(str(len(weights)).encode())
    for offset, size in reads:
        if offset + size > len(weights):
            return None
        for block in weights.blocks(offset, size):
            digest.update(block)
    return digest.hexdigest()
