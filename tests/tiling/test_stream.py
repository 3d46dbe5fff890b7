"""Tiles between files, and the choice of the tile."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import zarr
from support import IR, traced_peak
from tiling.exactness import is_exact

import deconv_ir
from deconv_ir.errors import InputError, ResourceError
from deconv_ir.formats.volumes import Journal, NpyVolume, create_volume, open_volume
from deconv_ir.ir.boxes import as_slices
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.tiling.grid import Grid, fit_tile
from deconv_ir.tiling.stream import Stream, choose_tile, parse_tile, spare_bytes


def convolution(shape: str = "1,2,20,24", element_type: str = "f32") -> deconv_ir.Model:
    ir = IR()
    x = ir.parameter("x", shape, element_type)
    numbers = np.random.default_rng(0).standard_normal((3, 2, 3, 3))
    weights = ir.const(numbers.astype(parse_element_type(element_type).numpy()))
    ones = "1,1"
    window = {"strides": ones, "dilations": ones, "pads_begin": ones, "pads_end": ones}
    ir.result(ir.layer("Convolution", [x, weights], window, precision="dynamic"))
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), accuracy="direct", warn=False)


@pytest.mark.parametrize("order", ["C", "F"])
def test_boxes_of_npy_files(tmp_path: Path, order: str) -> None:
    array = np.arange(60).reshape(3, 4, 5)
    path = tmp_path / "a.npy"
    np.save(path, np.array(array, order=order))
    volume = open_volume(str(path))
    assert (volume.shape, volume.dtype) == ((3, 4, 5), array.dtype)
    box = ((1, 3), (0, 2), (4, 5))
    assert np.array_equal(volume.read(box), array[1:3, 0:2, 4:5])
    volume.write(box, np.zeros((2, 2, 1)))
    array[1:3, 0:2, 4:5] = 0
    assert np.array_equal(np.load(path), array)


def test_any_box_is_written_where_it_belongs(tmp_path: Path) -> None:
    shape = (2, 3, 4, 5)
    spans = [[(a, b) for a in range(n) for b in range(a + 1, n + 1)] for n in shape]
    create_volume(tmp_path / "a.npy", shape, np.dtype(np.int32), shape)
    volume = open_volume(str(tmp_path / "a.npy"))
    expected = np.zeros(shape, np.int32)
    for number, box in enumerate(itertools.islice(itertools.product(*spans), 0, None, 7)):
        part = np.full([b - a for a, b in box], number) + np.arange(box[3][1] - box[3][0])
        volume.write(box, part)
        expected[as_slices(box)] = part
        assert np.array_equal(np.load(tmp_path / "a.npy", mmap_mode="r"), expected), box


def test_a_chunk_that_cannot_be_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    create_volume(path, (4, 4), np.dtype(np.float32), (4, 4))
    volume = open_volume(str(path), "r+")
    volume.write(((0, 4), (0, 4)), np.ones((4, 4), np.float32))
    (chunk,) = (p for p in (path / "c").rglob("*") if p.is_file())
    chunk.write_bytes(b"garbage")
    with pytest.raises(InputError, match=r"a\.zarr: cannot read the Zarr array"):
        volume.read(((0, 2), (0, 2)))


def test_an_array_in_a_group(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("0", shape=(4, 4), dtype="float32", fill_value=3)
    assert open_volume(str(tmp_path / "g.zarr" / "0")).read(((0, 1), (0, 2))).tolist() == [[3, 3]]
    with pytest.raises(InputError, match=r"name an array in it"):
        open_volume(str(tmp_path / "g.zarr"))


def test_a_created_file_has_holes(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    create_volume(path, (1 << 14, 1 << 14), np.dtype(np.float32), (64, 64))
    assert path.stat().st_size > 1 << 30
    assert path.stat().st_blocks * 512 < 1 << 20
    NpyVolume(str(path)).write(((5, 6), (7, 8)), np.ones((1, 1), np.float32))
    assert np.load(path, mmap_mode="r")[5, 6:9].tolist() == [0, 1, 0]


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.npy and \.zarr"):
        open_volume(str(tmp_path / "a.tif"))


@pytest.mark.parametrize("element_type", ["f32", "bf16"])
def test_a_stream_gives_the_bits_of_a_run(tmp_path: Path, element_type: str) -> None:
    model = convolution(element_type=element_type)
    dtype = parse_element_type(element_type).numpy()
    x = np.random.default_rng(1).standard_normal((1, 2, 20, 24)).astype(dtype)
    raw = x.view("V2") if dtype == ml_dtypes.bfloat16 else x
    np.save(tmp_path / "x.npy", raw)
    run = model.tiled()
    create_volume(tmp_path / "y.npy", run.shape, run.dtype, (1, 3, 7, 9))
    output = open_volume(str(tmp_path / "y.npy"))
    stream = Stream(run, {"x": open_volume(str(tmp_path / "x.npy"))}, output)
    for box in Grid(run.shape, (1, 3, 7, 9)).boxes():
        stream.compute(box)
    (expected,) = model.run(x).values()
    assert is_exact(np.load(tmp_path / "y.npy").view(expected.dtype), expected)


def test_other_element_types_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 2, 20, 24)))
    volume = open_volume(str(tmp_path / "x.npy"))
    with pytest.raises(InputError, match="takes float32, found float64"):
        Stream(convolution().tiled(), {"x": volume}, volume)
    with pytest.raises(InputError, match="no array for input 'x'"):
        Stream(convolution().tiled(), {}, volume)
    np.save(tmp_path / "single.npy", np.zeros((1, 2, 20, 24), np.float32))
    single = open_volume(str(tmp_path / "single.npy"))
    # IRs of version 10 take it.
    with pytest.raises(InputError, match="takes float16, found float32"):
        Stream(convolution(element_type="f16").tiled(), {"x": single}, single)


def test_the_chosen_tile_fits_its_budget() -> None:
    run = convolution("1,2,400,600").tiled()
    for budget in (4 << 20, 1 << 20):
        tile = choose_tile(run, budget)
        box = tuple((0, extent) for extent in tile)
        assert tile[:2] == (1, 3)  # channels cannot be tiled
        assert run.bytes_of(run.tile(box)) <= budget
    assert choose_tile(run, 1 << 30) == run.shape
    with pytest.raises(ResourceError, match="1,3,1,1"):
        choose_tile(run, 16)


def test_memory_is_kept_from_tile_to_tile_where_that_costs_little() -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,64,64")
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "2,2", "pads_end": "2,2"}
    for _ in range(2):
        x = ir.layer("Convolution", [x, ir.const(np.ones((1, 1, 5, 5), np.float32))], window)
    ir.result(x)
    run = deconv_ir.load(
        ir.xml().encode(), bytes(ir.weights), accuracy="direct", warn=False
    ).tiled()
    kept = []
    for budget in (1 << 20, 48 << 10, 4 << 10):
        tile = choose_tile(run, budget)
        middle = tuple(
            (n // extent // 2 * extent, (n // extent // 2 + 1) * extent)
            for n, extent in zip(run.shape, tile, strict=True)
        )
        taken = run.bytes_of(run.tile(middle))
        kept.append(spare_bytes(run, tile, budget))
        assert kept[-1] in (0, budget - taken)
        assert (kept[-1] > 0) == (2 * taken <= budget)
    assert kept[0] > kept[2] == 0  # the halos of small tiles cost more than memory does


def test_tiles_as_they_are_written() -> None:
    assert parse_tile("auto") is None
    assert parse_tile("64,32") == (64, 32)
    for wrong in ("", "64,", "a", "-1", "6.5"):
        with pytest.raises(ValueError, match="invalid tile"):
            parse_tile(wrong)
    assert fit_tile((1, 3, 100, 200), (64, 256)) == (1, 3, 64, 200)
    for wrong_tile in ((1, 1, 1), (0,)):
        with pytest.raises(ValueError, match="tile"):
            fit_tile((5, 5), wrong_tile)


def test_a_journal_keeps_what_was_added(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", {"a": (1, 2)})
    assert journal.read() is None
    with pytest.raises(InputError, match="given up"):
        journal.has(0)
    journal.start({3}, 8)
    journal.add(5)
    assert journal.read() == ({"a": [1, 2]}, {3, 5})
    assert [journal.has(n) for n in range(8)] == [n in (3, 5) for n in range(8)]
    with pytest.raises(InputError, match="given up"):
        Journal(journal.path, {"a": (1, 3)}).has(3)
    # The disk was full when the journal was written.
    journal.path.write_bytes(journal.path.read_bytes()[:-5])
    assert journal.read() == ({"a": [1, 2]}, {3})
    journal.add(6)
    assert journal.read() == ({"a": [1, 2]}, {3, 6})


def test_a_tile_is_looked_up_without_the_others(tmp_path: Path) -> None:
    """The memory, and the bytes read, do not grow with the number of tiles."""
    read = []
    for count in (10, 1_000_000):
        journal = Journal(tmp_path / "j", {})
        journal.start((), count)
        read.append(traced_peak(functools.partial(journal.has, count - 1)))
    assert read[1] < read[0] + 10_000
