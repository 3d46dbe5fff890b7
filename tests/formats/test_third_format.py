"""A format of another package takes the same ways as the built-in ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import invoke, invoke_script

import deconv_ir
from deconv_ir.errors import DeconvError, InputError, UnsupportedError
from deconv_ir.formats import registry
from deconv_ir.linter import catalogue

from .toy_format import Toy, shouted_names

TEXT = "toy\nx = Parameter f32 1,4\nmiddle = ReLU x\nLAST = Sigmoid middle\nResult LAST\n"
ROOT = Path(__file__).parents[2]
GIVEN = np.array([[-1, 0, 1, 2]], np.float32)
WANTED = 1 / (1 + np.exp(-np.maximum(GIVEN, 0)))


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    registry.register(Toy())
    catalogue.register(shouted_names)
    yield
    registry.FORMATS.pop()
    del catalogue.RULES["TOY1"]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("net.toy").write_text(TEXT)
    np.save("x.npy", GIVEN)
    return "net.toy"


def runs_alike(path: str, wanted: np.ndarray = WANTED, given: np.ndarray = GIVEN) -> None:
    (found,) = deconv_ir.load(path).run([given]).values()
    np.testing.assert_allclose(found, wanted, 1e-6)


@pytest.mark.parametrize("given", ["path", "bytes", "another name"])
def test_it_is_read_by_its_contents_and_run(toy: str, given: str) -> None:
    Path("net.json").write_text(TEXT)
    path = {"path": toy, "bytes": TEXT.encode(), "another name": "net.json"}[given]
    runs_alike(path)


@pytest.mark.parametrize("target", ["copy.toy", "copy.xml", "copy.json", "copy"])
def test_it_is_saved_in_the_format_of_the_suffix(toy: str, target: str) -> None:
    deconv_ir.save(deconv_ir.load(toy), target)
    runs_alike(target)
    starts = {".toy": b"toy\n", ".json": b"{", ".xml": b"<?xml", "": b"<?xml"}
    assert Path(target).read_bytes().startswith(starts[Path(target).suffix])
    if target == "copy.toy":
        assert Path(target).read_text() == TEXT


def test_other_formats_are_saved_as_it(toy: str) -> None:
    for name in ("copy.xml", "copy.json"):
        deconv_ir.save(deconv_ir.load(toy), name)
        deconv_ir.save(deconv_ir.load(name), "again.toy")
        runs_alike("again.toy")
    with pytest.raises(UnsupportedError, match="a toy has no"):
        deconv_ir.save(deconv_ir.load(ROOT / "samples/block/block.xml"), "block.toy")
    assert not Path("block.toy").exists()


@pytest.mark.parametrize("target", ["part.toy", "part.xml"])
def test_parts_of_it_are_cut(toy: str, target: str) -> None:
    part = deconv_ir.cut(toy, target, start="middle")
    assert part.inputs == ("middle: f32[1,4]",)
    runs_alike(target, 1 / (1 + np.exp(-GIVEN)))
    done = invoke_script("cut", toy, "--from", "middle", "--output", target)
    assert (done.exit_code, done.stderr) == (
        2,
        f"error: --output {target}: the file exists (use --force)\n",
    )
    done = invoke_script("cut", toy, "--to", "middle", "--output", target, "--force")
    assert done.exit_code == 0, done.output
    runs_alike(target, np.maximum(GIVEN, 0))


def test_a_part_of_it_is_no_onednn_graph_file(toy: str) -> None:
    with pytest.raises(InputError, match=r"only a part of a oneDNN Graph file can be a \.json"):
        deconv_ir.cut(toy, "part.json")


def test_it_is_linted_by_all_rules_and_its_own(toy: str) -> None:
    Path(toy).write_text(TEXT + "unused = ReLU middle\n")
    found = [(f.code, f.line, f.layer) for f in deconv_ir.lint(toy)]
    assert found == [
        ("TOY1", 4, "'LAST' (Sigmoid, id 2)"),
        ("IR208", 6, "'unused' (ReLU, id 4)"),
    ]
    assert [f.code for f in deconv_ir.lint(toy, select=["TOY"])] == ["TOY1"]
    assert [f.code for f in deconv_ir.lint(toy, ignore=["shouted-name"])] == ["IR208"]
    Path(toy).write_text("toy\nx = Parameter f32 1,4\nno operation\n")
    assert [(f.code, f.line) for f in deconv_ir.lint(toy)] == [("IR415", 3)]


def test_its_rules_check_no_other_format(toy: str) -> None:
    deconv_ir.save(deconv_ir.load(toy), "copy.xml")
    deconv_ir.save(deconv_ir.load(toy), "copy.json")
    assert not [f for name in ("copy.xml", "copy.json") for f in deconv_ir.lint(name)]


def test_deconv_run(toy: str) -> None:
    done = invoke(toy, "--input", "x.npy", "--output", "y.npy")
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load("y.npy"), WANTED, 1e-6)
    assert invoke(toy, "--save-xml", "net.xml").exit_code == 0
    runs_alike("net.xml")
    assert invoke(toy, "--save-onednn", "net.json").exit_code == 0
    runs_alike("net.json")


@pytest.mark.parametrize("named", ["net.toy", "."])
def test_deconv_lint(toy: str, named: str) -> None:
    done = invoke_script("lint", named, "--no-cache")
    assert (done.exit_code, done.output.splitlines()[0]) == (
        1,
        "net.toy:4:1: TOY1 warning: LAST is shouted [shouted-name]",
    )


@pytest.mark.parametrize("name", ["net", "nett.toy"])
def test_a_wrong_path_suggests_it(toy: str, name: str) -> None:
    with pytest.raises(DeconvError) as caught:
        deconv_ir.load(name)
    assert str(caught.value.hint) == "did you mean 'net.toy'?"


def test_names_of_formats_are_unique() -> None:
    class Other(Toy):
        pass

    registry.register(Toy())  # again, as in a notebook
    with pytest.raises(InputError, match=r"format toy is already registered, by .*\.Toy"):
        registry.register(Other())
