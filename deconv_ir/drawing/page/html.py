"""The page: a self-contained HTML file that shows a model and facts about it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from deconv_ir.drawing.graph.bodies import DrawnBody
from deconv_ir.drawing.graph.layering import Level
from deconv_ir.drawing.graph.placing import first_open
from deconv_ir.drawing.page.facts import Progress, facts_of
from deconv_ir.drawing.page.linted_file import LintedFile
from deconv_ir.drawing.palette import css, named
from deconv_ir.version import __version__

SCRIPTS = ("base", "place", "labels", "view", "panel", "geometry", "extras", "main")
MAX_TEXT = 4000
"""Maximum number of characters of a finding's message."""


def write_page(
    linted: LintedFile,
    extras: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> str:
    """Write the page of a model: an HTML document that loads no other resources.

    `extras` are further data: ``pictures``, ``runs``, ``profile``, ``differences``; `progress` is
    called during long steps.
    """
    data: dict[str, Any] = {
        "title": linted.file.replace("\\", "/").rpartition("/")[2],
        "file": linted.file,
        "generator": f"deconv-show {__version__}",
        "semantics": linted.context.semantics.value,
        **_graph(linted, progress),
        **(extras or {}),
    }
    colours = named()
    style = css() + _filled("page.css", colours)
    script = "".join(_filled(f"{name}.js", colours) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": html.escape(data["title"]),
        "STYLE": style,
        "DATA": as_script(data),
        "SCRIPT": script,
    }
    return _filled("page.html", parts)


def as_script(data: Any) -> str:
    """Write data as JSON that is safe in a script element: it contains neither ``<`` nor ``>``."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _filled(name: str, parts: Mapping[str, str]) -> str:
    """Return a file of the page with parts in place of their names between two ``@``."""
    return re.sub("@([A-Z]+)@", lambda found: parts[found[1]], _read(name))


def _read(name: str) -> str:
    return (resources.files("deconv_ir.drawing.page") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _findings(linted: LintedFile, parts: Sequence[DrawnBody] = ()) -> list[dict[str, Any]]:
    return [
        {
            "code": finding.code,
            "rule": finding.rule,
            "severity": finding.severity.value,
            "message": finding.message[:MAX_TEXT],
            "hint": finding.hint and finding.hint[:MAX_TEXT],
            "line": finding.line,
            "at": index,
        }
        for finding, index in zip(linted.findings, linted.layers_of_findings(parts), strict=True)
    ]


def _graph(linted: LintedFile, progress: Progress | None) -> dict[str, Any]:
    sketch = linted.sketch
    if sketch is None or linted.inference is None:
        return {"findings": _findings(linted)}
    if progress is not None:
        progress("Laying out", 0, 1)
    scene = sketch.scene
    facts = facts_of(sketch, linted.inference, linted.context, progress)
    number = {(row[0], row[1]): k for k, row in enumerate(facts.tensors)}
    boxes = [
        [*caption, -1 if box.layer is None else box.layer, box.count, box.size]
        for box, caption in zip(scene.boxes, sketch.captions, strict=True)
    ]
    return {
        "findings": _findings(linted, sketch.flat.parts),
        "boxes": boxes,
        "levels": {str(n): _level(level) for n, level in scene.levels.items()},
        "lines": [number[tensor] for tensor in scene.tensors],
        "open": sorted(first_open(scene)),
        **facts._asdict(),
    }


def _level(level: Level) -> list[Any]:
    flat = [value for link in level.links for value in link]
    return [level.boxes, level.inputs, level.outputs, level.rows, flat]
