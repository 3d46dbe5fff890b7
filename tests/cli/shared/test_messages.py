"""All commands print errors in one form, and names cannot move a terminal's cursor."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke, invoke_script

# Carriage return, right-to-left override, line separator, 8-bit CSI: characters that a terminal
# interprets.  XML 1.0 allows all of them (the first as a character reference).
EVIL = "a\rb\u202ec\u2028d\u009be"
IN_XML = EVIL.replace("\r", "&#13;")
ESCAPED = r"a\rb\u202ec\u2028d\x9be"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evil_model(folder: Path, declared: str = "1,3") -> None:
    """Write a model whose tensors and layers have names with these characters."""
    ir = IR()
    x = ir.parameter(IN_XML, "1,3")
    tanh = ir.layer("Tanh", [x], name=f"{IN_XML}.tanh", names=f"{IN_XML}.y", outputs=(declared,))
    ir.result(tanh)
    ir.save(folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--random-inputs", "0", "--output", "y.npy"],
        ["--random-inputs", "0", "--output", "y.npy", "--profile"],
        ["--random-inputs", "0", "--output", "y.npy", "-v"],
        ["--random-inputs", "0", "--output", "y.npy", "--json"],
        ["--random-inputs", "0", "--expect", "zeros.npy"],
        ["--explain-plan"],
        ["--explain-plan", "--json"],
        [],
        ["--layer", f"{EVIL}?"],
        ["--input", f"{EVIL}?=zeros.npy"],
        [f"--{EVIL}"],
    ],
    ids=" ".join,
)
def test_names_are_escaped(here: Path, arguments: list[str]) -> None:
    evil_model(here)
    np.save("zeros.npy", np.zeros((1, 3), "f4"))
    done = invoke("model.xml", *arguments)
    shown = done.stdout + done.stderr
    assert ESCAPED in shown or "\\u202e" in shown
    assert not set("\r\u202e\u2028\u009b") & set(shown)


@pytest.mark.parametrize("form", ["text", "github", "junit", "json", "sarif"])
def test_names_are_escaped_in_reports(here: Path, form: str) -> None:
    evil_model(here, declared="1,4")
    done = invoke_script("lint", "model.xml", "--format", form)
    assert done.exit_code == 1
    assert "u202e" in done.stdout
    assert not set("\r\u202e\u2028\u009b") & set(done.stdout)


def test_a_caret_stands_under_its_part_of_a_line_with_escapes(here: Path) -> None:
    evil_model(here)
    text = Path("model.xml").read_text()
    Path("model.xml").write_text(text.replace('type="Tanh"', 'type="Tahn"'))
    done = invoke_script("lint", "model.xml")
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if "IR214" in line)
    line, carets = lines[at + 1 : at + 3]
    assert line[carets.index("^") : carets.rindex("^") + 1] == "Tahn", done.stdout


def test_names_are_escaped_in_documents(here: Path) -> None:
    layer = (
        f'<layer id="5" name="{EVIL}" type="ReLU"><input><port id="0"><dim>2</dim></port></input>'
        '<output><port id="1"><dim>2</dim></port></output></layer>\n'
    ).replace("\r", "&#13;").replace("\u2028", "&#x2028;")  # fmt: skip
    for declared in ("2", "3"):
        changed = layer.replace('id="1"><dim>2', f'id="1"><dim>{declared}')
        Path("doc.md").write_text(f"```xml\n{changed}```\n")
        done = invoke_script("spec", "check", "doc.md", "-v")
        assert "u202e" in done.stdout
        assert not set("\r\u202e\u2028\u009b") & set(done.stdout)


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("run", ["none.xml"]),
        ("run", ["broken.xml"]),
        ("run", ["--nonsense"]),
        ("run", []),
        ("run", ["model.xml", "--threads", "many"]),
        ("lint", ["none.xml"]),
        ("lint", ["--nonsense"]),
        ("lint", ["--unsafe-fixes"]),
        ("lint", ["model.xml", "--select", "IR999"]),
        ("spec", ["check", "none.md"]),
        ("spec", ["chekc", "none.md"]),
        ("spec", ["check"]),
        ("spec", ["generate", "none.toml", "--out", "golden"]),
        ("spec", ["verify", "none"]),
    ],
)
def test_every_command_reports_mistakes_alike(
    here: Path, module: str, arguments: list[str]
) -> None:
    evil_model(here)
    Path("broken.xml").write_text("<net")
    done = invoke_script(module, *arguments)
    assert done.exit_code == 2
    errors = done.stderr.splitlines()
    assert len(errors) == 1, errors
    assert re.match(r"error: \S", errors[0])
    assert not re.search("Usage:|Error:|Try ", errors[0])


def test_an_error_names_file_line_and_layer(here: Path) -> None:
    ir = IR()
    ir.result(ir.layer("Clamp", [ir.parameter("x", "1,3")], {"min": "2", "max": "1"}, name="c"))
    ir.save(here)
    done = invoke("model.xml", "--random-inputs", "0")
    assert done.exit_code == 2
    assert re.match(r"error: model\.xml:\d+: layer 'c' \(Clamp, id 1\): ", done.stderr)


def test_an_option_that_is_mistyped_gets_a_suggestion(here: Path) -> None:
    evil_model(here)
    done = invoke("model.xml", "--semantic", "spec")
    assert done.stderr.startswith("error: no such option: --semantic (did you mean --semantics?); ")
    assert done.stderr.endswith("deconv-run --help lists the options\n")
