"""Models, graphs and operations can be copied and pickled, also for newly started processes."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.ops import all_operations

BLOCK = Path(__file__).parents[2] / "samples/block/block.xml"
X = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float32)


def pickled(model: deconv_ir.Model) -> deconv_ir.Model:
    found = pickle.loads(pickle.dumps(model))
    assert isinstance(found, deconv_ir.Model)
    return found


@pytest.mark.parametrize("make", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("ran", [False, True])
def test_a_copy_computes_the_same(make, ran: bool) -> None:
    model = deconv_ir.load(BLOCK, semantics="openvino", memory_limit=1 << 30, scratch_bytes=1 << 20)
    expected = deconv_ir.load(BLOCK).run(X)["y"]
    if ran:  # plans and packed filters exist now, and are not copied
        model.run(X)
    found = make(model)
    assert found is not model
    np.testing.assert_array_equal(found.run(X)["y"], expected)
    assert found.graph == model.graph
    assert (found.semantics, found.memory_limit) == (model.semantics, 1 << 30)
    assert found.context.scratch_bytes == 1 << 20
    assert list(found.inputs) == ["x"]


def test_a_pickle_needs_no_file(tmp_path: Path) -> None:
    """A pickle contains the bytes of the weights, and no other large data."""
    for suffix in (".xml", ".bin"):
        source = BLOCK.with_suffix(suffix)
        (tmp_path / source.name).write_bytes(source.read_bytes())
    path = tmp_path / BLOCK.name
    model = deconv_ir.load(path)
    expected = model.run(X)["y"]
    data = pickle.dumps(model)
    assert len(data) < 8192 + path.with_suffix(".bin").stat().st_size
    path.with_suffix(".bin").unlink()
    path.unlink()
    found = pickle.loads(data)
    np.testing.assert_array_equal(found.run(X)["y"], expected)
    again = pickled(found)
    np.testing.assert_array_equal(again.run(X)["y"], expected)
    with pytest.raises(deconv_ir.WeightsError, match="past the end"):
        found.context.weights.read(0, 1 << 20)


def test_every_operation_can_be_pickled() -> None:
    """Classes made by a function are found in the module that called the function."""
    for operation in all_operations():
        assert pickle.loads(pickle.dumps(operation)) is operation


def test_hashes_stay_behind() -> None:
    """Cached hashes are not pickled: those of strings differ between processes."""
    graph = deconv_ir.load(BLOCK).graph
    hash(graph.layers[0].operation)
    assert b"_hash" not in pickle.dumps(graph)
    assert b"topology" not in pickle.dumps(graph)


SPAWN = """
import multiprocessing, sys
import numpy as np
import deconv_ir

if __name__ == "__main__":
    model = deconv_ir.load(sys.argv[1])
    xs = [np.full((1, 8, 16, 16), n, np.float32) for n in range(4)]
    expected = [model.run(x)["y"] for x in xs]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(model.run, xs)
        for a, b in zip(found, expected):
            assert np.array_equal(a["y"], b)
        try:
            pool.apply(model.run, ([],))
        except deconv_ir.InputError as error:
            assert "no array for input 'x'" in str(error)
            assert error.file == sys.argv[1]
        else:
            raise AssertionError("no error")
"""


def test_a_pool_that_spawns(tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(SPAWN)
    subprocess.run([sys.executable, str(script), str(BLOCK)], check=True, timeout=300)


def test_models_of_bytes(tmp_path: Path) -> None:
    """As in onnxruntime and OpenVINO, the contents of files are accepted in place of paths."""
    xml, weights = BLOCK.read_bytes(), BLOCK.with_suffix(".bin").read_bytes()
    expected = deconv_ir.load(BLOCK).run(X)["y"]
    for kind in (bytes, bytearray, memoryview):
        model = deconv_ir.load(kind(xml), kind(weights))
        np.testing.assert_array_equal(model.run(X)["y"], expected)
    np.testing.assert_array_equal(
        deconv_ir.load(xml, BLOCK.with_suffix(".bin")).run(X)["y"], expected
    )
    np.testing.assert_array_equal(pickled(deconv_ir.load(xml, weights)).run(X)["y"], expected)
    deconv_ir.save(deconv_ir.load(xml, weights), tmp_path / "saved.xml")
    assert (tmp_path / "saved.bin").read_bytes() == weights
    with pytest.raises(deconv_ir.WeightsError, match=r"the model has 2 constants, but no weights"):
        deconv_ir.load(xml)
    with pytest.raises(deconv_ir.WeightsError, match="past the end of weights, which has 9 bytes"):
        deconv_ir.load(xml, weights[:9])
    ir = IR()
    ir.result(ir.parameter("x", "2"))
    model = deconv_ir.load(ir.save(tmp_path).read_bytes())
    assert model.run(np.ones(2, np.float32))["x"].tolist() == [1, 1]


@pytest.mark.parametrize("wrong", [3, None, object(), ["a"], 1.5, "a\0b"])
def test_what_cannot_be_loaded(wrong: object) -> None:
    with pytest.raises(deconv_ir.InputError, match=r"^path"):
        deconv_ir.load(wrong)  # type: ignore[arg-type]
    if wrong is not None:
        with pytest.raises(deconv_ir.InputError, match=r"^weights"):
            deconv_ir.load(BLOCK, wrong)  # type: ignore[arg-type]
    with pytest.raises(deconv_ir.IRError):
        deconv_ir.load(b"")
    with pytest.raises(deconv_ir.DeconvError):
        deconv_ir.load(BLOCK, semantics=wrong)  # type: ignore[arg-type]
