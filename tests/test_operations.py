"""deconv_ir.operations: typed access, operations of other packages, suggestions."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR, invoke

import deconv_ir
from deconv_ir.operations import (
    Context,
    ConvolutionBackpropData,
    GroupConvolutionBackpropData,
    Operation,
    TensorInfo,
    find_operation,
    register,
)
from deconv_ir.ops import base, plugins

ROOT = Path(__file__).parent.parent
BLOCK = ROOT / "samples/block/block.xml"
GUIDE = (ROOT / "docs/extending.md").read_text()
CODE, ENTRY_POINT, _ = re.findall(r"```\w+\n(.*?)```", GUIDE, re.S)


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Restore the registry after a test that registers operations."""
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()
    for kind, versions in list(base.REGISTRY.items()):
        for version, cls in list(versions.items()):
            if not cls.__module__.startswith("deconv_ir."):
                del versions[version]
        if not versions:
            del base.REGISTRY[kind]


def test_operations_by_class() -> None:
    graph = deconv_ir.load(BLOCK).graph
    assert graph.operation("up", ConvolutionBackpropData).strides == (2, 2)
    assert graph.operation("up", Operation) is graph.find("up").operation  # type: ignore[union-attr]
    with pytest.raises(deconv_ir.IRError, match=r"block.xml:\d+: layer 'up' \(.*not of type Group"):
        graph.operation("up", GroupConvolutionBackpropData)
    with pytest.raises(deconv_ir.IRError, match="there is no layer 'none'"):
        graph.operation("none", Operation)


def scaled(tmp_path: Path) -> Path:
    ir = IR()
    x = ir.parameter("x", "2")
    y = ir.layer("Scale", [x], {"factor": "2.5"}, version="extension", name="s", names="y",
                 outputs=("2",))  # fmt: skip
    ir.result(y)
    return ir.save(tmp_path)


def test_registered_by_hand(tmp_path: Path) -> None:
    path = scaled(tmp_path)
    with pytest.raises(deconv_ir.UnsupportedError, match=r"Scale \(version extension\) is not imp"):
        deconv_ir.load(path).run(np.ones(2, np.float32))
    namespace: dict[str, Any] = {"__name__": "twice_operations"}
    sys.modules["twice_operations"] = type(sys)("twice_operations")
    try:
        exec(CODE, namespace)
        model = deconv_ir.load(path)
        assert model.run(np.array([1, -2], np.float32))["y"].tolist() == [2.5, -5]
        assert model.graph.operation("s", namespace["Scale"]).factor == 2.5
        assert pickle.loads(pickle.dumps(model)).run(np.ones(2, np.float32))["y"].tolist() == [
            2.5, 2.5,
        ]  # fmt: skip
        assert "IR214" not in [f.code for f in deconv_ir.lint(path)]
        exec(CODE, namespace)  # registered again, as in a notebook
        text = path.read_text().replace("2.5", "much")
        with pytest.raises(deconv_ir.AttributeValueError, match="'factor' must be a number"):
            deconv_ir.load(text.encode())
    finally:
        del sys.modules["twice_operations"]


def test_an_entry_point(tmp_path: Path) -> None:
    """An installed package registers operations, for commands and for newly started processes."""
    site = tmp_path / "site"
    information = site / "twice_operations-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "twice_operations.py").write_text(CODE)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: twice\nVersion: 1.0\n")
    group, line = ENTRY_POINT.strip().splitlines()
    (information / "entry_points.txt").write_text(
        f"[{group[1:-1].split('.', 2)[2].strip(chr(34))}]\n{line.replace(chr(34), '')}\n"
    )
    path = scaled(tmp_path)
    np.save(tmp_path / "x.npy", np.array([1, -2], np.float32))
    environment = os.environ | {"PYTHONPATH": str(site)}
    arguments = [str(path), "--input", "x.npy", "--output", "y.npy"]
    subprocess.run(
        [sys.executable, "-m", "deconv_cli.run.command", *arguments],
        check=True, cwd=tmp_path, env=environment, capture_output=True,
    )  # fmt: skip
    assert np.load(tmp_path / "y.npy").tolist() == [2.5, -5]
    found = subprocess.run(
        [sys.executable, "-m", "deconv_ir", "lint", "--select", "IR214", str(path)],
        check=False, cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (0, "No problem found in 1 file.\n")


class EntryPoint:
    """The entry point of a broken package."""

    name, value = "Odd", "odd:Odd"

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def load(self) -> None:
        if self.error is not None:
            raise self.error


def test_entry_points_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "installed", lambda: {"Odd": EntryPoint(KeyError("a\nb"))})
    with pytest.raises(deconv_ir.UnsupportedError, match="'odd:Odd' cannot be loaded: KeyError"):
        find_operation("Odd")
    monkeypatch.setattr(plugins, "installed", lambda: {"Odd": EntryPoint(None)})
    with pytest.raises(deconv_ir.UnsupportedError, match="'odd:Odd' does not register it"):
        find_operation("Odd")
    assert find_operation("Odder") is None


class Mine(Operation):
    """Passes its input on."""

    def infer(self, inputs: Any, context: Context) -> tuple[TensorInfo, ...]:
        return (inputs[0],)

    def execute(self, inputs: Any, context: Context) -> Any:
        return (inputs[0],)


def test_what_cannot_be_registered() -> None:
    for kind, version in (("Tanh", "opset1"), ("ConvTranspose", "")):
        versions = (version,) if version else ()
        with pytest.raises(deconv_ir.InputError, match=f"{kind}.* is already registered, by deco"):
            register(kind, *versions, inputs=("data",))(Mine)
    with pytest.raises(deconv_ir.InputError, match="not a subclass of Operation"):
        register("Mine", inputs=("data",))(int)  # type: ignore[type-var]
    for wrong in ((), ("",), (3,), ("Mine", 3)):
        with pytest.raises((deconv_ir.InputError, TypeError)):
            register(*wrong)  # type: ignore[arg-type]


def test_a_new_version_of_an_operation(tmp_path: Path) -> None:
    register("Tanh", "opset90", inputs=("data",))(Mine)
    assert find_operation("Tanh", "opset90") is Mine
    assert find_operation("Tanh", "opset1") is not Mine
    register("AnyVersion", inputs=("data",))(type("AnyVersion", (Mine,), {}))
    assert find_operation("AnyVersion", "whatever") is find_operation("AnyVersion")


@pytest.mark.parametrize(
    ("kind", "version", "hint"),
    [("Tenh", "opset1", "did you mean 'Tanh'?"), ("Tahn", "opset1", "did you mean 'Tanh'?"),
     ("Convlution", "opset1", "did you mean 'Convolu"),
     ("Tahn", "extension", None), ("Frobnicate", "opset1", None)],
)  # fmt: skip
def test_misspelt_operations(kind: str, version: str, hint: str | None, tmp_path: Path) -> None:
    """As in the linter: suggestions come from the names of all opsets, but not for extensions."""
    ir = IR()
    x = ir.parameter("x", "2")
    ir.result(ir.layer(kind, [x], version=version, outputs=("2",)))
    path = ir.save(tmp_path)
    model = deconv_ir.load(path)
    with pytest.raises(deconv_ir.UnsupportedError) as caught:
        model.run(np.ones(2, np.float32))
    assert (hint or "run(outputs=...)") in str(caught.value)
    done = invoke(path, "--random-inputs", "0")
    assert (hint or "--until") in done.stderr
    found = [f.hint for f in deconv_ir.lint(path) if f.code == "IR214"]
    if hint is not None:
        assert [h[: len(hint)] for h in found if h] == [hint]


class Picked(Operation):
    """Picks elements; the numbers are checked by `infer` alone."""

    def infer(self, inputs: Any, context: Context) -> tuple[TensorInfo, ...]:
        data, numbers = inputs
        if numbers.value is not None and any(n > 3 for n in numbers.value):
            raise deconv_ir.ShapeError("a number is above 3")
        return (TensorInfo(numbers.shape, data.element_type),)

    def execute(self, inputs: Any, context: Context) -> Any:
        return (inputs[0][inputs[1] % 4],)


def test_lists_that_are_known_only_at_run_time_are_checked(tmp_path: Path) -> None:
    """`checks_values` is true by default: `infer` sees the numbers before `execute` does."""
    register("Picked", "extension", inputs=("data", "numbers"))(Picked)
    ir = IR()
    data, given = ir.parameter("data", "4"), ir.parameter("given", "2")
    to = {"destination_type": "i64"}
    numbers = ir.layer("Convert", [given], to, outputs=("2",), precision="I64")
    y = ir.layer("Picked", [data, numbers], version="extension", outputs=("2",), names="y")
    ir.result(y)
    model = deconv_ir.load(ir.save(tmp_path))
    row = np.float32([1, 2, 3, 4])
    assert model.run({"data": row, "given": np.float32([3, 0])})["y"].tolist() == [4, 1]
    with pytest.raises(deconv_ir.ShapeError, match="a number is above 3"):
        model.run({"data": row, "given": np.float32([3, 4])})


def test_an_operation_without_a_rule_or_execution_says_so() -> None:
    class Bare(Operation):
        pass

    x = np.ones(2, np.float32)
    with pytest.raises(deconv_ir.UnsupportedError, match="Bare has no shape rule"):
        Bare().infer([], Context())
    with pytest.raises(deconv_ir.UnsupportedError, match="Bare cannot be executed"):
        Bare().execute([x], Context())
    with pytest.raises(deconv_ir.UnsupportedError, match="Bare cannot be executed"):
        Bare().execute_into([x], Context(), x)


def test_several_misspelt_operations(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "2")
    for kind in ("Tenh", "Xyzzy"):
        x = ir.layer(kind, [x], outputs=("2",))
    ir.result(x)
    with pytest.raises(deconv_ir.UnsupportedError) as caught:
        deconv_ir.load(ir.save(tmp_path)).run(np.ones(2, np.float32))
    assert "Tenh (version opset1) x1 (did you mean 'Tanh'?): 'layer1'" in str(caught.value)
    assert "Xyzzy (version opset1) x1: 'layer2'" in str(caught.value)


def test_representations_are_one_screen(tmp_path: Path) -> None:
    ir = IR()
    made = [ir.parameter(f"x{i}" + "\x1b" * 300 if i == 1 else f"x{i}", "?,2") for i in range(99)]
    for i, x in enumerate(made):
        ir.result(ir.layer("ReLU" if i % 2 else "Tanh", [x]))
    path = ir.save(tmp_path).rename(tmp_path / "many.xml")
    path.write_text(path.read_text().replace("\x1b", "\u202e"))
    model = deconv_ir.load(path)
    plan = model.bind([np.ones((1, 2), np.float32)] * 99).plan
    for thing in (model, model.graph, plan):
        text = repr(thing)
        assert len(text) < 80 * 12
        assert text.isprintable()
    assert "x0: f32[?,2]" in repr(model)
    assert "and 95 more" in repr(model)
    assert repr(model.graph) == (
        "<Graph 'net': 297 layers (99 Parameter, 99 Result, 50 Tanh, 49 ReLU), 198 edges>"
    )
    assert re.fullmatch(
        r"<Plan: 99 steps, 0 layers folded, 0 dropped; peak [^(]*\(tensors 792 B, "
        r"weights 0 B, scratchpad [^)]*\)>",
        repr(plan),
    )


@pytest.mark.parametrize("text", ["2", "0,1,2", "-1", "1.0", "true"])
def test_flags_are_zeros_and_ones(text: str) -> None:
    """StridedSlice-1: the masks are lists of zeros and ones."""
    kind = deconv_ir.operations.flags()
    assert kind.parse("1,0") == (1, 0)
    with pytest.raises(ValueError, match=re.escape(text.rpartition(",")[2])):
        kind.parse(text)
