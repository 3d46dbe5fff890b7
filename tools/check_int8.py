"""Compare what `f32-in-openvino` says with the graphs that OpenVINO's CPU plugin executes.

Run it with a Python that has OpenVINO, on a processor with AVX-512 or AVX2, without AMX::

    python tools/check_int8.py                        # the cases of tools/int8_networks.py
    python tools/check_int8.py --drawn 500 --seed 1   # and random combinations of them
    python tools/check_int8.py model.xml ...          # all layers of networks instead

A layer runs in integers if its primitive does.  `runtimePrecision` alone does not tell: for a layer
whose data are converted to f32 before it, the plugin reports the type of its weights; these layers
are counted.  The exit code is 1 if an answer and the plugin disagree.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from int8_networks import NAME, Case, cases, drawn, write

from deconv_ir.cpu_plugin.conditions import Int8Answer, Int8Condition
from deconv_ir.cpu_plugin.int8 import TYPES, Int8Layers
from deconv_ir.formats import parse_bytes
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.linter.engine import open_context
from deconv_ir.linter.options import choose

_LAYER_TYPES = ("Convolution", "Deconvolution")


class Executed(NamedTuple):
    """A layer of the executed graph."""

    precision: str
    """Its `runtimePrecision`."""
    primitive: str
    """As ``brgconv_avx512_I8``: the implementation, and the type of its data."""

    @property
    def integers(self) -> bool:
        """Whether the primitive computes with integers."""
        return self.primitive.rpartition("_")[2].lower() in ("i8", "u8")


class Compared(NamedTuple):
    """A layer, the answer, and what is executed; None: the plugin does not compile it."""

    layer: str
    answer: Int8Answer | None
    executed: Executed | None

    @property
    def agrees(self) -> bool:
        """Whether they do not contradict each other."""
        if self.executed is None or (self.answer is not None and self.answer.integers is None):
            return True
        return self.executed.integers is (self.answer is not None and self.answer.integers)


def answers_of(path: Path) -> dict[str, Int8Answer | None]:
    """Return the answers for the layers of a network, by name."""
    parsed = parse_bytes(path.read_bytes(), path.name, DEFAULT_LIMITS)
    context = open_context(parsed, choose(), path.with_suffix(".bin"))
    layers = context.graph.layers
    outputs = [context.outputs(index) for index in range(len(layers))]
    found = Int8Layers(context.graph, outputs, context.inference_context)
    return {
        layer.name: found.answer(index) for index, layer in enumerate(layers) if layer.type in TYPES
    }


def answer_of(path: Path) -> Int8Answer | None:
    """Return the answer for the layer of a case."""
    return answers_of(path)[NAME]


def executed(core: Any, path: Path) -> dict[str, Executed] | None:
    """Return how the plugin executes the convolutions of a network, by name."""
    try:
        compiled = core.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    except RuntimeError:
        return None
    found = {}
    for operation in compiled.get_runtime_model().get_ordered_ops():
        info = {key: value.astype(str) for key, value in operation.get_rt_info().items()}
        if info["layerType"] in _LAYER_TYPES:
            for name in info["originalLayersNames"].split(","):
                # A layer that was split keeps its name with an ending.
                row = Executed(info["runtimePrecision"], info["primitiveType"])
                found[name.removesuffix("_original")] = row
    return found


def compared(which: Iterable[Case]) -> Iterator[Compared]:
    """Iterate over cases with their answers."""
    import openvino as ov

    core = ov.Core()
    with tempfile.TemporaryDirectory() as folder:
        for case in which:
            path = write(case).save(Path(folder))
            found = executed(core, path)
            yield Compared(str(case), answer_of(path), None if found is None else found[NAME])


def compared_networks(paths: Iterable[Path]) -> Iterator[Compared]:
    """Iterate over the layers of networks with their answers."""
    import openvino as ov

    core = ov.Core()
    for path in paths:
        found = executed(core, path) or {}
        for name, answer in answers_of(path).items():
            yield Compared(f"{path}: {name}", answer, found.get(name))


def main() -> None:
    """Compare, and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--drawn", type=int, default=0, help="number of random combinations")
    parser.add_argument("--seed", type=int, default=47)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    conditions: Counter[Int8Condition] = Counter()
    misleading = wrong = 0
    rows = compared(chain(cases(), drawn(options.seed, options.drawn)))
    if options.networks:
        rows = compared_networks(options.networks)
    for layer, answer, found in rows:
        if found is None:
            counts["not compiled"] += 1
            continue
        said = "nothing is quantised" if answer is None else "not known"
        if answer is not None and answer.integers is not None:
            said = "in integers" if answer.integers else "in f32"
        counts[f"{said}, executed in {'integers' if found.integers else 'f32'}"] += 1
        if answer is not None and answer.condition is not None:
            conditions[answer.condition] += 1
        misleading += not found.integers and found.precision != "f32"
        if not Compared(layer, answer, found).agrees:
            wrong += 1
            print(f"{layer}: {answer}; executed as {found.primitive}")
    for text, count in sorted(counts.items()):
        print(f"{count:6} {text}")
    print("first condition that does not hold:")
    for condition in Int8Condition:
        print(f"{conditions[condition]:6} {condition.name}: {condition.text}")
    print(f"{misleading} layers in f32 have another runtimePrecision")
    print(f"{wrong} disagreements")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
