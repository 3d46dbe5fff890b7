"""Draw docs/kernels.svg: how a transposed convolution is split into sub-convolutions.

python bench/figure.py docs/kernels.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

COLOURS = ("#1f77b4", "#ff7f0e")
DATA, KERNEL, STRIDE, PAD = 5, 4, 2, 1


def main() -> None:
    """Write the figure to the path given."""
    matplotlib.rcParams["svg.hashsalt"] = "deconv-ir"  # the file is the same on every run
    figure, axis = plt.subplots(figsize=(9, 4.2))
    output = STRIDE * (DATA - 1) + KERNEL - 2 * PAD

    def box(x: float, y: float, text: str, colour: str) -> None:
        axis.add_patch(plt.Rectangle((x - 0.45, y - 0.25), 0.9, 0.5, fc=colour, ec="black"))
        axis.text(x, y, text, ha="center", va="center", fontsize=9)

    for x in range(-1, DATA + 1):
        inside = 0 <= x < DATA
        box(2 * x + 1, 3, f"x{x}" if inside else "0", "#dddddd" if inside else "white")
    for v in range(output // STRIDE):
        for q in range(STRIDE):
            y = STRIDE * v + q
            first = (q + PAD) % STRIDE
            box(2 * v + 1 + 0.0, 1.6 - 0.7 * q, f"v{v}", COLOURS[q] + "66")
            box(y, -0.6, f"y{y}", COLOURS[q] + "66")
            for k in range(first, KERNEL, STRIDE):
                x = v + (q + PAD - k) // STRIDE
                axis.plot(
                    [2 * x + 1, 2 * v + 1],
                    [2.75, 1.85 - 0.7 * q],
                    color=COLOURS[q],
                    linewidth=1,
                    zorder=0,
                )
    axis.text(-2.2, 3, "data, zeros\naround them", ha="right", va="center")
    axis.text(-2.2, 1.6, "sub-convolution q = 0\ntaps k = 1, 3", ha="right", va="center")
    axis.text(-2.2, 0.9, "sub-convolution q = 1\ntaps k = 0, 2", ha="right", va="center")
    axis.text(-2.2, -0.6, "output,\nsub-convolutions\ninterleaved", ha="right", va="center")
    axis.set_xlim(-6, 2 * DATA + 2)
    axis.set_ylim(-1.1, 3.5)
    axis.axis("off")
    axis.set_title("kernel 4, stride 2, pad 1: y = 2v + q", fontsize=10)
    figure.tight_layout()
    figure.savefig(Path(sys.argv[1]), metadata={"Date": None})


if __name__ == "__main__":
    main()
