"""Draw docs/tiles.svg: the part of each tensor of a small U-Net that a tile needs.

Needs the `diagrams` extra:

    python tools/draw_tiles.py docs/tiles.svg
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "bench"), str(ROOT / "tests")]

from tiles import unet  # noqa: E402 - found by the path above

import deconv_ir  # noqa: E402
from deconv_ir.ir.graph import needed_layers  # noqa: E402
from deconv_ir.ir.infer import infer  # noqa: E402
from deconv_ir.ir.regions import Walk, required_regions  # noqa: E402
from deconv_ir.ir.shapes import static  # noqa: E402

EXTENT = 64
TILE = (16, 32)
WORDS = {
    "Parameter": "input",
    "Convolution": "convolution",
    "MaxPool": "pooling",
    "ConvolutionBackpropData": "transposed convolution",
    "Concat": "concatenation with the skip connection",
}


def main() -> None:
    """Draw the spans of a tile of a 1-D U-Net, one bar for each tensor."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "tiles"
    from matplotlib import pyplot as plt

    ir = unet((1, 1, EXTENT), levels=2)
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    graph = model.graph
    infos = infer(graph, model.context).outputs
    (result,) = (i for i, layer in enumerate(graph.layers) if layer.type == "Result")
    source = graph.topology.sources[result][0]
    assert source is not None
    order = needed_layers(graph, [source])
    ends = frozenset(i for i in order if graph.layers[i].type == "Const")
    walk = Walk(graph, order, infos, model.context, ends)
    regions = required_regions(walk, {source: ((0, 1), (0, 1), TILE)})
    drawn = [i for i in order if graph.layers[i].type in WORDS and (i, 0) in regions.boxes]
    figure, axes = plt.subplots(figsize=(8, 0.36 * len(drawn) + 0.8))
    for row, index in enumerate(drawn):
        shape = static(infos[index][0].shape)
        start, stop = regions.boxes[index, 0][2]
        scale = EXTENT / shape[2]
        axes.barh(row, EXTENT, color="#e8eaf0", height=0.7)
        axes.barh(row, (stop - start) * scale, left=start * scale, color="#3f6fb5", height=0.7)
        words = f"{WORDS[graph.layers[index].type]}, {start} to {stop} of {shape[2]}"
        axes.text(EXTENT + 1, row, words, va="center", fontsize=9)
    axes.axvspan(*TILE, color="#d9822b", alpha=0.25, lw=0)
    axes.set(xlim=(0, EXTENT), ylim=(len(drawn) - 0.4, -0.6), yticks=[], xticks=[0, *TILE, EXTENT])
    axes.set_xlabel("position in the output; the tile is shaded")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(given.output, bbox_inches="tight", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
