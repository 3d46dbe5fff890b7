"""Notebooks: examples in cells are checked, and fixed without changing other bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from spec_forms import XML
from support import invoke_script

from deconv_ir.errors import DeconvError
from deconv_ir.spec_examples.check import check_document
from deconv_ir.spec_examples.fix import fix_document
from deconv_ir.spec_examples.notebook import Notebook, open_document
from deconv_ir.spec_examples.rules import Verdict

WRONG = XML.replace("<dim>11</dim>", "<dim>12</dim>")
PROSE = '# Größe 😀 \u2028 \\ "quoted"\n'


def notebook(*sources: str, as_list: bool = True, **style: Any) -> bytes:
    """Write a notebook (nbformat 4) with markdown, code and raw cells in turn."""
    cells = [
        {
            "cell_type": ("markdown", "code", "raw")[i % 3],
            "metadata": {"source": [WRONG], "note": '{["cells": ['},
            "outputs": [{"source": WRONG, "text": [WRONG]}],
            "source": source.splitlines(keepends=True) if as_list else source,
        }
        for i, source in enumerate(sources)
    ]
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"cells": [WRONG]}, "cells": cells}
    return (json.dumps(content, **style) + "\n").encode()


STYLES = [
    {"indent": 1, "ensure_ascii": False},  # as Jupyter writes them
    {"indent": 1},
    {"indent": 1, "as_list": False},
    {},
    {"separators": (",", ":"), "as_list": False},
]


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_cells_are_checked_and_fixed(style: dict[str, Any]) -> None:
    texts = (PROSE, f"text\n```xml\n{WRONG}```\n", f'xml = """\n{XML}"""', WRONG)
    document = Notebook(notebook(*texts, **style), "a.ipynb")
    judgements = check_document(document)
    wrong = Verdict.WRONG
    assert [j.verdict for j in judgements] == [wrong, Verdict.RIGHT, wrong]
    assert [j.example.cell for j in judgements] == [
        "cell 2, line 3: ",
        "cell 3, line 2: ",
        "cell 4, line 1: ",
    ]
    (finding,) = judgements[0].findings
    number = texts[1].split("\n").index(next(x for x in texts[1].split("\n") if "12<" in x)) + 1
    assert finding.message.startswith(f"cell 2, line {number}: output 0, axis 3: declared 12")
    # Line and column refer to the file.
    assert finding.line is not None
    assert finding.column is not None
    assert finding.end_column is not None
    line = document.text.split("\n")[finding.line - 1]
    assert line[finding.column - 1 : finding.end_column - 1] == "12"
    fixed = fix_document(document, unsafe=True)
    right = [text.replace("<dim>12</dim>", "<dim>11</dim>") for text in texts]
    assert fixed.data == notebook(*right, **style)
    assert (fixed.edits, fixed.left) == (2, ())


@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize("more", [True, False])
def test_dims_are_added_and_removed(style: dict[str, Any], more: bool) -> None:
    line = "            <dim>11</dim>\n"
    assert XML.count(line) == 1
    damaged = XML.replace(line, "" if more else line + line)
    fixed = fix_document(Notebook(notebook(damaged, PROSE, **style)), unsafe=True)
    assert (
        json.loads(fixed.data)["cells"][1]["source"]
        == (json.loads(notebook("", PROSE, **style))["cells"][1]["source"])
    )
    source = json.loads(fixed.data)["cells"][0]["source"]
    assert "".join(source) == XML


def test_command(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook(PROSE, WRONG, indent=1))

    def run(*arguments: str, stdin: bytes | None = None) -> Any:
        return invoke_script("spec", *arguments, stdin=stdin)

    done = run("check", str(tmp_path))
    assert done.exit_code == 1
    assert f"{path}:" in done.output
    assert "cell 2, line " in done.output
    assert run("check", "-", stdin=path.read_bytes()).exit_code == 1
    sarif = json.loads(run("check", str(path), "--format", "sarif").output)
    (result,) = sarif["runs"][0]["results"]
    assert result["message"]["text"].startswith("cell 2, line ")
    assert run("fix", "--unsafe-fixes", str(path)).exit_code == 0
    assert path.read_bytes() == notebook(PROSE, XML, indent=1)
    assert run("check", str(path)).output.count(": right: cell 2, line 1: ") == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not a notebook: "),
        (b"[]", "not a notebook of format 4"),
        (b'{"worksheets": []}', "not a notebook of format 4"),
        (b"[" * 100_000, "not a notebook: "),
    ],
)
def test_other_files(data: bytes, message: str) -> None:
    with pytest.raises(DeconvError, match=message):
        open_document(data, "a.ipynb")


PIECES = ("<", ">", "\\", "\\n", '\\"', '"', ",", "[", "]", "{", "12", "<dim>", "</dim>", "\\ud83d")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_notebooks(seed: int) -> None:
    """A file that still is a notebook stays one after a fix, and one fix is enough."""
    choices = random.Random(seed)
    read = 0
    for _ in range(60):
        text = notebook(PROSE, WRONG, XML, **choices.choice(STYLES)).decode()
        for _ in range(choices.randint(1, 3)):
            start = choices.randrange(len(text))
            stop = start + choices.choice((0, 1, 3, 20))
            text = text[:start] + choices.choice([choices.choice(PIECES), ""]) + text[stop:]
        try:
            document = open_document(text.encode(), "a.ipynb")
        except DeconvError:
            continue
        read += 1
        for judgement in check_document(document):
            lines = {f.line or 0 for f in judgement.findings}
            assert all(1 <= line <= len(document.text.splitlines()) + 1 for line in lines)
        fixed = fix_document(document, unsafe=True)
        again = fix_document(open_document(fixed.data, "a.ipynb"), unsafe=True)
        assert (again.edits, again.data) == (0, fixed.data)
    assert read > 20


def test_strange_cells() -> None:
    cells = [1, [], {}, {"source": 3}, {"source": [1, "<layer", {"source": WRONG}]}, {"source": ""}]
    document = Notebook(json.dumps({"cells": cells}).encode())
    assert check_document(document) == []
    assert fix_document(document, unsafe=True).edits == 0
