"""Shell completion of layers of the model and of rules; suggestions for typos."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hostile.children import python
from support import IR, invoke


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ir = IR()
    x = ir.parameter("data", "2")
    up = ir.layer("Sigmoid", [x], name="up/sigmoid", names="sig:0")
    ir.result(ir.layer("Tanh", [up], name="up\u202e/tanh", names="y"))
    ir.result(ir.layer("Tanh", [up], name="upper"))
    ir.save(tmp_path)
    return tmp_path


def complete(command: str, *words: str) -> list[str]:
    """Complete as bash does; the last word is the one being typed."""
    program = f"deconv-{command}"
    environment = os.environ | {
        f"_DECONV_{command.upper()}_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join([program, *words]),
        "COMP_CWORD": str(len(words)),
    }
    start = f"from deconv_cli.{command}.command import main; main()"
    code = f"import sys; sys.argv = [{program!r}]; {start}"
    done = python(code, env=environment, text=True)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_layers() -> None:
    assert complete("run", "model.xml", "--layer", "up") == ["up/sigmoid", "upper"]
    assert complete("run", "model.xml", "--layer", "d") == ["data"]
    assert complete("run", "model.xml", "--until", "s") == ["sig:0"]
    assert complete("run", "model.xml", "--until", "y", "--output-layer", "upp") == ["upper"]


def test_no_name_is_completed_without_a_model() -> None:
    Path("broken.xml").write_text("<net")
    for model in ("none.xml", "broken.xml", "."):
        assert complete("run", model, "--layer", "u") == []


def test_rules() -> None:
    assert "IR401" in complete("lint", "--select", "IR4")
    assert all(code.startswith("IR4") for code in complete("lint", "--ignore", "IR4"))
    assert complete("lint", "--explain", "declared-d") == ["declared-dims-differ"]
    assert complete("lint", "--extend-select", "portab") == ["portability"]
    assert complete("lint", "--select", "IR209,declared-d") == ["IR209,declared-dims-differ"]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--layer", "up/sigmod"], "'up/sigmoid'"),
        (["--layer", "UPPER"], "'upper'"),
        (["--until", "up/sigmod"], "'up/sigmoid'"),
        (["--output-layer", "sig:1"], "'sig:0'"),
        (["--input", "dat=x.npy"], "'data'"),
        (["--random-inputs", "0", "--expect", "Y=y.npy"], "'y'"),
    ],
)
def test_typos_get_suggestions(arguments: list[str], meant: str) -> None:
    done = invoke("model.xml", *arguments)
    assert done.exit_code == 2
    assert f"(did you mean {meant}?)" in done.stderr
