"""deconv-run --tile."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
import zarr
from support import IR, invoke
from tiling.exactness import is_exact

import deconv_ir
from deconv_ir.tiling.stream import Stream


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A folder with a model, and x.npy for it."""
    ir = IR()
    x = ir.parameter("x", "1,1,?,?")
    weights = ir.const(np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32))
    window = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    up = ir.layer("ConvolutionBackpropData", [x, weights], window, name="up")
    ir.result(ir.layer("SoftMax", [up], {"axis": "1"}, name="softmax"))
    ir.save(tmp_path)
    data = np.random.default_rng(1).standard_normal((1, 1, 9, 11)).astype(np.float32)
    np.save(tmp_path / "x.npy", data)
    return tmp_path


def run(folder: Path, *options: object, output: str = "y.npy") -> tuple[int, str]:
    found = invoke(
        folder / "model.xml",
        *("--input", folder / "x.npy", "--output", folder / output, "--accuracy", "direct"),
        *options,
    )
    return found.exit_code, found.output


def expected(folder: Path) -> np.ndarray:
    model = deconv_ir.load(folder / "model.xml", accuracy="direct")
    (found,) = model.run(np.load(folder / "x.npy")).values()
    return found


@pytest.mark.parametrize("tile", ["auto", "5,7", "100,100", "1,1"])
def test_the_result_is_that_of_a_run(network: Path, tile: str) -> None:
    code, text = run(network, "--tile", tile)
    assert code == 0, text
    assert is_exact(np.load(network / "y.npy"), expected(network))
    names = [".deconv-run.json", "model.bin", "model.xml", "x.npy", "y.npy"]
    assert sorted(p.name for p in network.iterdir()) == names


def test_the_summary_as_json(network: Path) -> None:
    code, text = run(network, "--tile", "8,8", "--json")
    found = json.loads(text)
    assert (code, found["tiles"], found["tile"], found["shape"]) == (
        0,
        9,
        [1, 2, 8, 8],
        [1, 2, 18, 22],
    )


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int) -> list[object]:
    """Interrupt the run after some tiles."""
    computed: list[object] = []
    compute = Stream.compute

    def counted(self: Stream, box: object) -> object:
        if len(computed) == after:
            raise KeyboardInterrupt
        computed.append(box)
        return compute(self, box)

    monkeypatch.setattr(Stream, "compute", counted)
    return computed


def test_an_interrupted_run_is_resumed(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, 4)
        assert run(network, "--tile", "8,8")[0] == 130
    assert not (network / "y.npy").exists()
    code, text = run(network, "--tile", "8,8")
    assert code == 2
    assert "--resume to continue it" in text
    with monkeypatch.context() as patch:
        computed = interrupt(patch, 100)
        code, text = run(network, "--tile", "8,8", "--resume")
        assert (code, len(computed)) == (0, 5)
    assert "4 of an earlier run" in text
    assert is_exact(np.load(network / "y.npy"), expected(network))


def test_a_changed_input_is_not_resumed(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, 4)
        run(network, "--tile", "8,8")
    np.save(network / "x.npy", np.ones((1, 1, 9, 11), np.float32))
    code, text = run(network, "--tile", "8,8", "--resume")
    assert code == 2
    assert "cannot be resumed: inputs changed" in text
    assert run(network, "--tile", "8,8", "--force")[0] == 0
    assert is_exact(np.load(network / "y.npy"), expected(network))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tile", "1,4,4"), "'softmax' (SoftMax, id 3): sees the whole of axis 1"),
        (("--tile", "4,x"), "invalid tile '4,x'"),
        (("--tile", "0,4"), "must be positive"),
        (("--tile", "1,1,1,1,1"), "a tile of 5 axes"),
        (("--tile", "4,4", "--cast"), "--cast cannot be combined with --tile"),
        (("--tile", "4,4", "--repeat", "3"), "--repeat cannot be combined with --tile"),
        (
            ("--tile", "auto", "--memory-limit", "1MiB"),
            "--memory-limit 1 MiB: with --tile the limit is that",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(
    network: Path, options: tuple[str, ...], message: str
) -> None:
    code, text = run(network, *options)
    assert code == 2
    assert message in text
    assert text.count("\n") == 1
    assert not list(network.glob("y.npy*"))


def test_an_output_that_exists_is_kept(network: Path) -> None:
    (network / "y.npy").write_bytes(b"mine")
    code, text = run(network, "--tile", "8,8")
    assert (code, "already exists" in text) == (2, True)
    code, text = run(network, "--tile", "8,8", "--force", output="x.npy")
    assert (code, "would overwrite" in text) == (2, True)
    assert run(network, "--tile", "8,8", output="y.txt")[0] == 2


def test_a_full_disk_is_told_and_the_run_is_resumed(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        write = io.FileIO.write
        written: list[object] = []

        class Full(io.FileIO):
            def write(self, data: object) -> int:
                if len(written) > 20:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written.append(data)
                return write(self, data)

        real = Path.open

        def opened(self: Path, mode: str = "r", buffering: int = -1, **how: object) -> object:
            found = mode == "r+b" and buffering == 0
            return Full(self, mode) if found else real(self, mode, buffering, **how)

        patch.setattr(Path, "open", opened)
        code, text = run(network, "--tile", "8,8")
    assert code == 2
    assert text == f"error: {network / 'y.npy.partial'}: No space left on device\n"
    code, text = run(network, "--tile", "8,8", "--resume")
    assert (code, "of an earlier run" in text) == (0, True), text
    assert is_exact(np.load(network / "y.npy"), expected(network))


@pytest.mark.parametrize("output", ["x.zarr", "link.zarr", "x.zarr/inner.zarr"])
def test_a_store_that_is_read_is_not_overwritten(network: Path, output: str) -> None:
    data = np.load(network / "x.npy")
    store = zarr.create_array(network / "x.zarr", shape=data.shape, dtype=data.dtype)
    store[:] = data
    (network / "link.zarr").symlink_to("x.zarr")
    found = invoke(
        network / "model.xml",
        *("--input", network / "x.zarr", "--output", network / output, "--tile", "8,8", "--force"),
    )
    assert (found.exit_code, "would overwrite" in found.output) == (2, True), found.output
    assert np.array_equal(zarr.open_array(network / "x.zarr", mode="r")[:], data)


def test_a_group_of_arrays_is_not_replaced(network: Path) -> None:
    group = zarr.open_group(network / "g.zarr", mode="w")
    group.create_array("0", shape=(2,), dtype="float32")
    (network / "y.npy").mkdir()
    (network / "empty.zarr").mkdir()
    for output in ("g.zarr", "y.npy", "empty.zarr"):
        code, text = run(network, "--tile", "8,8", "--force", output=output)
        message = f"error: {network / output} is a folder, not an array: --force does not replace"
        assert (code, text.startswith(message)) == (2, True), text
    assert zarr.open_array(network / "g.zarr" / "0", mode="r").shape == (2,)
    zarr.create_array(network / "a.zarr", shape=(2,), dtype="float32")
    assert run(network, "--tile", "8,8", "--force", output="a.zarr")[0] == 0
    assert is_exact(zarr.open_array(network / "a.zarr", mode="r")[:], expected(network))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--two-pass",), "--two-pass requires --tile"),
        (("--workers", "2"), "--workers requires --tile, or many files"),
        (("--scheduler", "tcp://x:1"), "--scheduler requires --tile, or many files"),
    ],
)
def test_options_of_tiles_and_clusters_alone(
    network: Path, option: tuple[str, ...], message: str
) -> None:
    code, text = run(network, *option)
    assert (code, message in text) == (2, True), text


def test_two_passes(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,2,90,80")
    axes = ir.const(np.array([2, 3], np.int64))
    mean = ir.layer("ReduceMean", [x, axes], {"keep_dims": "true"}, name="mean")
    ir.result(ir.layer("Subtract", [x, mean]))
    ir.save(tmp_path)
    data = np.random.default_rng(1).standard_normal((1, 2, 90, 80)).astype(np.float32)
    np.save(tmp_path / "x.npy", data)
    code, text = run(tmp_path, "--tile", "40,50")
    assert (code, "'mean' (ReduceMean, id 2): sees the whole of axes 2, 3" in text) == (2, True)
    code, text = run(tmp_path, "--tile", "40,50", "--two-pass")
    assert code == 0, text
    assert np.allclose(np.load(tmp_path / "y.npy"), expected(tmp_path), rtol=0, atol=1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deconv_cli.run.tiled.default_budget", lambda: 50_000)
        code, text = run(tmp_path, "--tile", "auto", output="z.npy")
        assert (code, "of memory" in text) == (2, True)
        code, text = run(tmp_path, "--tile", "auto", "--two-pass", output="z.npy")
    assert code == 0, text
    assert "1 tiles" not in text
    assert np.allclose(np.load(tmp_path / "z.npy"), expected(tmp_path), rtol=0, atol=1e-6)


def test_two_passes_are_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statistics are computed again, in the order of the interrupted run."""
    ir = IR()
    x = ir.parameter("x", "1,2,90,80", "f64")
    axes = ir.const(np.array([2, 3], np.int64))
    how = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}
    ir.result(ir.layer("MVN", [x, axes], how, version="opset6", precision="FP64"))
    ir.save(tmp_path)
    data = np.random.default_rng(1).standard_normal((1, 2, 90, 80))
    np.save(tmp_path / "x.npy", data + 1000)
    results = []
    for budget, output in ((30_000, "y.npy"), (200_000, "z.npy")):
        monkeypatch.setattr("deconv_cli.run.tiled.default_budget", lambda n=budget: n)
        code, text = run(tmp_path, "--tile", "auto", "--two-pass", output=output)
        assert code == 0, text
        results.append(np.load(tmp_path / output))
    assert not np.array_equal(*results)  # because the sums are added in another order
    monkeypatch.setattr("deconv_cli.run.tiled.default_budget", lambda: 30_000)
    with monkeypatch.context() as patch:
        interrupt(patch, 2)
        assert run(tmp_path, "--tile", "auto", "--two-pass", output="w.npy")[0] == 130
    monkeypatch.setattr("deconv_cli.run.tiled.default_budget", lambda: 200_000)
    code, text = run(tmp_path, "--tile", "auto", "--two-pass", "--resume", output="w.npy")
    assert (code, "2 of an earlier run" in text) == (0, True), text
    assert np.array_equal(np.load(tmp_path / "w.npy"), results[0])


@pytest.mark.parametrize("tile", [5, ["a"] * 4, [0] * 4, None, [1]])
def test_a_damaged_journal_is_refused(
    network: Path, monkeypatch: pytest.MonkeyPatch, tile: object
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, 0)
        run(network, "--tile", "8,8")
    journal = network / "y.npy.partial.tiles"
    first, _, rest = journal.read_text().partition("\n")
    journal.write_text(json.dumps(json.loads(first) | {"tile": tile, "passes": tile}) + "\n" + rest)
    code, text = run(network, "--tile", "auto", "--resume")
    assert (code, "cannot be resumed: tile, passes changed" in text) == (2, True), text
