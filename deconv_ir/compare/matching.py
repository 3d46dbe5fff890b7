"""Matching of the layers of one model with those of the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from deconv_ir.compare.network import Network

Keys = Sequence[Hashable]
"""The keys by which layers are compared, for each layer of a model."""


class Matching(NamedTuple):
    """The matched layers of two models, and those without a partner."""

    pairs: dict[int, int]
    """Index of a layer of the first model -> index of its partner in the second."""
    removed: tuple[int, ...]
    """Layers of the first model without a partner."""
    added: tuple[int, ...]
    """Layers of the second model without a partner."""


def match(a: Network, b: Network) -> Matching:
    """Match layers by name, then by their history and future, then by their neighbours.

    Equal names are decisive for layers of the same type.  A layer that was renamed has
    the same history (its own attributes and constants, and those of everything before
    it) or the same future; next to a change, where both differ, it is connected to layers with
    partners.  The time is linear in the size of the models.
    """
    return _Matcher(a, b).run()


class _Matcher:
    def __init__(self, a: Network, b: Network) -> None:
        self.a = a
        self.b = b
        self.pairs: dict[int, int] = {}
        self.taken: set[int] = set()
        self.recent: deque[tuple[int, int]] = deque()

    def run(self) -> Matching:
        sides = (self.a, self.b)
        own = [_signatures(side) for side in sides]
        names = [[layer.name for layer in side.graph.layers] for side in sides]
        type_names: list[Keys] = [
            list(map(side.type_name, range(len(side.graph.layers)))) for side in sides
        ]
        self._unique(names, own)
        if any(self._free()):
            pasts = [_pasts(side, keys) for side, keys in zip(sides, own, strict=True)]
            futures = [_futures(side, keys) for side, keys in zip(sides, own, strict=True)]
            # A common name has priority over a layer that is merely similar.
            self._unique(pasts, only=[set(names[0]) - set(names[1]), set(names[1]) - set(names[0])])
            self._unique(names, type_names)
            self._spread(own)
            self._unique(pasts, futures)
            self._unique(pasts)
            self._unique(futures)
            self._spread(own)
            self._unique(names)
        pairs = dict(sorted(self.pairs.items()))
        return Matching(
            pairs,
            tuple(i for i in self.a.nodes if i not in pairs),
            tuple(j for j in self.b.nodes if j not in self.taken),
        )

    def _free(self, only: Sequence[set[str]] | None = None) -> tuple[list[int], list[int]]:
        """Return the layers of each model without a partner, and with one of these names."""
        free_a = [i for i in self.a.nodes if i not in self.pairs]
        free_b = [j for j in self.b.nodes if j not in self.taken]
        if only is not None:
            free_a = [i for i in free_a if self.a.layer(i).name in only[0]]
            free_b = [j for j in free_b if self.b.layer(j).name in only[1]]
        return free_a, free_b

    def _unique(self, *keys: Sequence[Keys], only: Sequence[set[str]] | None = None) -> None:
        """Pair layers without a partner whose keys agree, if they are the only ones."""
        free = self._free(only)
        found: list[dict[Hashable, list[int]]] = [{}, {}]
        for side in (0, 1):
            for index in free[side]:
                key: Hashable = tuple(values[side][index] for values in keys)
                found[side].setdefault(key, []).append(index)
        for key, left in found[0].items():
            right = found[1].get(key, ())
            if len(left) == len(right) == 1:
                self._pair(left[0], right[0])

    def _pair(self, i: int, j: int) -> None:
        self.pairs[i] = j
        self.taken.add(j)
        self.recent.append((i, j))

    def _spread(self, own: Sequence[Keys]) -> None:
        """Pair the neighbours of newly paired layers, repeatedly."""
        self.recent.extend(self.pairs.items())
        while self.recent:
            i, j = self.recent.popleft()
            for source_a, source_b in zip(self.a.sources[i], self.b.sources[j], strict=False):
                if source_a is not None and source_b is not None and source_a[1] == source_b[1]:
                    self._pair_alike([source_a[0]], [source_b[0]], own)
            users_a, users_b = _by_use(self.a, i), _by_use(self.b, j)
            for use in users_a.keys() & users_b.keys():
                self._pair_alike(users_a[use], users_b[use], own)

    def _pair_alike(self, left: Iterable[int], right: Iterable[int], own: Sequence[Keys]) -> None:
        """Pair layers in the same place: equal ones, or else the only two."""
        free_a = [i for i in left if i not in self.pairs and i not in self.a.absorbed]
        free_b = [j for j in right if j not in self.taken and j not in self.b.absorbed]
        alike: dict[Hashable, list[int]] = {}
        for j in free_b:
            alike.setdefault(own[1][j], []).append(j)
        for i in free_a:
            same = alike.get(own[0][i])
            if same:
                self._pair(i, same.pop(0))
        free_a = [i for i in free_a if i not in self.pairs]
        free_b = [j for j in free_b if j not in self.taken]
        if len(free_a) == len(free_b) == 1 and self.a.type_name(free_a[0]) == self.b.type_name(
            free_b[0]
        ):
            self._pair(free_a[0], free_b[0])


def _by_use(network: Network, index: int) -> dict[tuple[str, int], list[int]]:
    """Return the layers that use a layer, by their type and input port."""
    found: dict[tuple[str, int], list[int]] = {}
    for user, port in network.consumers[index]:
        found.setdefault((network.type_name(user), port), []).append(user)
    return found


def _signatures(network: Network) -> Keys:
    """Return the signature of each layer, as a small number, since signatures can be long."""
    return [
        None if i in network.absorbed else hash(network.signature(i))
        for i in range(len(network.graph.layers))
    ]


def _pasts(network: Network, own: Keys) -> Keys:
    """Return a key of each layer and of everything that it is computed from."""
    keys: list[Hashable] = [None] * len(own)
    for index in network.nodes:
        row = [None if s is None else (keys[s[0]], s[1]) for s in network.sources[index]]
        keys[index] = hash((own[index], *row))
    return keys


def _futures(network: Network, own: Keys) -> Keys:
    """Return a key of each layer and of everything that is computed from it."""
    keys: list[Hashable] = [None] * len(own)
    for index in reversed(list(network.nodes)):
        users = sorted(hash((keys[user], port)) for user, port in network.consumers[index])
        keys[index] = hash((own[index], *users))
    return keys
