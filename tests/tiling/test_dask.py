"""Lazy Dask arrays of a model, and models on workers."""

from __future__ import annotations

import pickle
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from support import IR, deconvolution_ir
from tiling.exactness import is_exact

import deconv_ir
from deconv_ir.errors import InputError, UnsupportedError
from deconv_ir.formats.volumes import Journal, create_volume, open_volume
from deconv_ir.tiling.grid import Grid
from deconv_ir.tiling.remote import ModelFile, RemoteModel, TiledFiles, compute_tile

WINDOW = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


@pytest.fixture
def model(tmp_path: Path) -> deconv_ir.Model:
    path = deconvolution_ir("1,2,?,?", attributes=WINDOW).save(tmp_path)
    return deconv_ir.load(path, accuracy="direct")


def data() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((1, 2, 9, 13)).astype(np.float32)


def test_the_lazy_array_is_the_output(model: deconv_ir.Model) -> None:
    x = data()
    (expected,) = model.run(x).values()
    lazy = model.map_dask(da.from_array(x, chunks=(1, 1, 4, 5)), tile=(8, 9))
    assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
    assert lazy.chunks == ((1,), (3,), (8, 8, 1), (9, 9, 7))
    assert isinstance(lazy._meta, np.ndarray)
    assert is_exact(lazy.compute(scheduler="threads"), expected)
    part = lazy[:, :, 3:5, 10:12].compute(scheduler="sync")
    assert is_exact(part, expected[:, :, 3:5, 10:12])
    assert model.map_dask({"x": x}).numblocks == (1, 1, 1, 1)


def standardized() -> deconv_ir.Model:
    """Compute two statistics; the second depends on the first."""
    ir = IR()
    axes = ir.const(np.array([2, 3], np.int64))
    given = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}
    even = ir.layer("MVN", [ir.parameter("x", "1,2,?,?"), axes], given, version="opset6")
    peak = ir.layer("ReduceMax", [even, axes], {"keep_dims": "true"})
    ir.result(ir.layer("Divide", [even, peak]))
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)


@pytest.mark.parametrize("tile", [(25, 16), "auto"], ids=str)
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_two_passes(
    tile: str | tuple[int, ...], scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deconv_ir.tiling.dask_arrays.default_budget", lambda: 20_000)
    numbers = np.random.default_rng(0)
    source = np.empty((1, 2, 45, 40), np.float32)
    later = dask.delayed(lambda: source.copy())()
    x = da.from_delayed(later, source.shape, source.dtype).rechunk((1, 1, 20, 20))
    lazy = standardized().map_dask(x, tile=tile, two_pass=True)
    assert lazy.npartitions > 1
    for _ in range(2):  # the input is only read when the array is computed, and its statistics then
        source[...] = numbers.standard_normal(source.shape)
        even = (source - source.mean((2, 3), keepdims=True)) / source.std((2, 3), keepdims=True)
        found = lazy.compute(scheduler=scheduler)
        assert np.allclose(found, even / even.max((2, 3), keepdims=True), rtol=0, atol=1e-5)


def test_one_pass_does_not_do() -> None:
    model = standardized()
    with pytest.raises(UnsupportedError, match=r"sees the whole of axes 2, 3"):
        model.map_dask(data(), tile=(5, 6))
    ir = IR()
    ir.result(ir.layer("SoftMax", [ir.parameter("x", "1,2,9,13")], {"axis": "2"}))
    softmax = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    with pytest.raises(UnsupportedError, match=r"sees the whole of axis 2"):
        softmax.map_dask(data(), tile=(5, 6), two_pass=True)


def test_what_does_not_fit_is_refused_before_it_runs(model: deconv_ir.Model) -> None:
    with pytest.raises(UnsupportedError, match="sees the whole of axis 1"):
        model.map_dask(data(), tile=(1, 8, 8))
    with pytest.raises(InputError, match="takes float32, found float64"):
        model.map_dask(data().astype(np.float64))
    with pytest.raises(InputError, match="tile must be 'auto'"):
        model.map_dask(data(), tile="big")
    with pytest.raises(InputError, match="5 axes"):
        model.map_dask(data(), tile=(1, 1, 1, 1, 1))


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_a_tile_that_is_recorded_is_not_written_again(
    model: deconv_ir.Model, tmp_path: Path, suffix: str
) -> None:
    x = data()
    np.save(tmp_path / "x.npy", x)
    (expected,) = model.run(x).values()
    remote = pickle.loads(pickle.dumps(RemoteModel(model)))
    target, journal = tmp_path / f"y{suffix}", Journal(tmp_path / "journal", {"run": 1})
    create_volume(target, expected.shape, expected.dtype, (1, 3, 8, 8))
    boxes = list(Grid(expected.shape, (1, 3, 8, 8)).boxes())
    journal.start((), len(boxes))
    files = TiledFiles({"x": str(tmp_path / "x.npy")}, str(target), None, journal, None)
    for number, box in enumerate(boxes):
        assert compute_tile(remote, files, (), number, box) == number
    output = open_volume(str(target), "r+")
    whole = tuple((0, n) for n in expected.shape)
    assert is_exact(output.read(whole), expected)
    output.write(boxes[0], np.zeros([b - a for a, b in boxes[0]], np.float32))
    compute_tile(remote, files, (), 0, boxes[0])
    assert not output.read(boxes[0]).any()
    # A late task of a run that was given up does not change files of the next run.
    Journal(journal.path, {"run": 2}).start((), len(boxes))
    with pytest.raises(InputError, match="given up"):
        compute_tile(remote, files, (), 0, boxes[0])
    assert not output.read(boxes[0]).any()
    journal.path.unlink()
    with pytest.raises(InputError, match="given up"):
        compute_tile(remote, files, (), 0, boxes[0])
    assert not journal.path.exists()


def test_a_worker_with_another_model_stops(model: deconv_ir.Model, tmp_path: Path) -> None:
    path, weights = tmp_path / "model.xml", tmp_path / "model.bin"
    given = ModelFile.of(str(path), str(weights), {"accuracy": "direct"}, deconv_ir.load)
    found = pickle.loads(pickle.dumps(RemoteModel(given))).model
    assert found.run(data())["y"].tobytes() == model.run(data())["y"].tobytes()
    weights.write_bytes(weights.read_bytes()[::-1])
    with pytest.raises(InputError, match="another model"):
        RemoteModel(given).model  # noqa: B018
