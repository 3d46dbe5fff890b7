"""Colours of the page and of the drawings, light and dark."""

from __future__ import annotations

import json

from deconv_ir.findings import Severity

# Family of a layer -> fill, border and title: light, then dark.
FAMILIES: dict[str, tuple[tuple[str, str, str], tuple[str, str, str]]] = {
    "deconvolution": (("#fdebd8", "#d9822b", "#8a4a0b"), ("#4a3016", "#e0913f", "#ffcf9b")),
    "convolution": (("#e1edfb", "#4a86c8", "#1d4f8a"), ("#1b3350", "#5b95d6", "#b5d4f7")),
    "activation": (("#fbe4e6", "#cc5b66", "#8f2531"), ("#471f25", "#d6707a", "#f7bfc5")),
    "pooling": (("#e0f3e6", "#4b9f68", "#1f6638"), ("#1a3b26", "#5db57b", "#b4e5c5")),
    "normalization": (("#e0f3f4", "#3f9aa3", "#14616a"), ("#173a3e", "#55b0b9", "#b0e2e7")),
    "elementwise": (("#efe8fa", "#8a68c4", "#523089"), ("#2f2247", "#a084d6", "#d9c9f5")),
    "shape": (("#eef0f2", "#8b95a1", "#46505c"), ("#2a3038", "#8b95a1", "#ccd3db")),
    "end": (("#e7e9ec", "#565f6b", "#2b323b"), ("#20262d", "#98a2ae", "#e3e7ec")),
    "unknown": (("#fff8d9", "#b59b1e", "#6d5c08"), ("#3d370f", "#cbb03a", "#f3e6a2")),
    "other": (("#f3efe8", "#a08d70", "#5f4f35"), ("#332d22", "#b09c7d", "#e3d6c0")),
    "group": (("#f7f8fa", "#aab2bd", "#333c47"), ("#222931", "#57616d", "#d5dbe2")),
    "repeat": (("#f7f8fa", "#7b8794", "#333c47"), ("#222931", "#7b8794", "#d5dbe2")),
}
PAPER = ("#ffffff", "#15191e")
INK = ("#1f2730", "#e3e8ee")
FAINT = ("#6b7683", "#93a0ae")
LINE = ("#8995a3", "#6d7a88")
MARKS = {Severity.INFO: "#3d7edb", Severity.WARNING: "#d98e04", Severity.ERROR: "#d13438"}
"""Colours of findings, the worst last."""

# Okabe and Ito's palette: colour-blind readers can distinguish it.
DISTINCT = (
    *("#56b4e9", "#e69f00", "#009e73", "#cc79a7"),
    *("#f0e442", "#0072b2", "#d55e00", "#999999"),
)
ADDED = DISTINCT[6]
"""The filter, and positions that output_padding adds."""
CUT = "#c0392b"
"""Positions that pads crop."""
# Anchors of colour maps: matplotlib's viridis, and ColorBrewer's RdBu, blue to red.
SEQUENTIAL = (
    *("#440154", "#46327e", "#365c8d", "#277f8e"),
    *("#1fa187", "#4ac16d", "#a0da39", "#fde725"),
)
DIVERGING = ("#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b")


def mixed(first: str, second: str, share: float) -> tuple[int, int, int]:
    """Return red, green and blue of a colour between two."""
    red, green, blue = (
        round(a + share * (b - a))
        for a, b in zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    )
    return red, green, blue


def named() -> dict[str, str]:
    """Return the colours that the page's style and scripts name, as in ``@ERROR@``."""
    marks = {severity.name: colour for severity, colour in MARKS.items()}
    return {**marks, "ADDED": ADDED, "CUT": CUT, "DISTINCT": json.dumps(DISTINCT)}


def css() -> str:
    """Return the colours as CSS variables; the page's theme chooses."""

    def variables(dark: int) -> str:
        named = {"paper": PAPER, "ink": INK, "faint": FAINT, "line": LINE}
        text = "".join(f"--{name}:{pair[dark]};" for name, pair in named.items())
        for family, themes in FAMILIES.items():
            fill, border, title = themes[dark]
            text += f"--{family}:{fill};--{family}-b:{border};--{family}-t:{title};"
        return text

    families = "".join(
        f".f-{name}{{--fill:var(--{name});--border:var(--{name}-b);--title:var(--{name}-t)}}\n"
        for name in FAMILIES
    )
    light, dark = variables(0), variables(1)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n{families}"
    )
