"""Files of other kinds in place of a model, weights or an array: named, with the next step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support import LFS_POINTER, deconvolution_ir, invoke, invoke_script

import deconv_ir
from deconv_ir import IRError, WeightsError, load

ONNX = b"\x08\x08\x12\x07pytorch\x1a\x052.0.0:\x9a\x01"
ZIP = b"PK\x03\x04" + bytes(60)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("det.onnx", ONNX, ("an ONNX model", "ovc det.onnx writes an IR")),
        ("saved_model.pb", b"\x08\x01\x12\x00", ("a TensorFlow model", "ovc saved_model.pb")),
        ("m.tflite", b"\x1c\0\0\0TFL3\0\0", ("a TensorFlow Lite model", "ovc m.tflite")),
        ("m.pth", ZIP, ("a PyTorch file", "convert_model")),
        ("m.pt", b"\x80\x02\x8a\n", ("a PyTorch file", "convert_model")),
        ("m.blob", b"\x01\x02", ("a compiled model", "the IR that was compiled")),
        ("unet.bin", bytes(100), ("a weights file", "unet.xml")),
        ("det", ONNX, ("an ONNX model", "ovc det writes an IR")),  # by its bytes alone
        ("det.xml", ONNX, ("an ONNX model", "ovc det.xml writes an IR")),
        ("m.pdmodel", b"\x0a\x05\xff", ("a PaddlePaddle model", "ovc m.pdmodel")),
        ("m.keras", ZIP, ("a Keras model", "model.export")),
        ("m.h5", b"\x89HDF\r\n\x1a\n", ("an HDF5 file", "model.export")),
        ("m.caffemodel", b"\x0a\x03abc", ("a Caffe model", "OpenVINO 2023")),
        ("m.safetensors", b"\x02" + bytes(7) + b'{"', ("a safetensors file", "no graph")),
        ("m", b"\x40" + bytes(7) + b'{"a":', ("a safetensors file", "no graph")),
        ("m", b"GGUF\x03\0\0\0", ("a GGUF file", "no graph")),
        ("m.xml", LFS_POINTER, ("a Git LFS pointer", "git lfs pull")),
        ("m.json", LFS_POINTER, ("a Git LFS pointer", "git lfs pull")),
        ("m.xml", b"\x89PNG\r\n\x1a\n", ("a PNG image",)),
        ("m.xml", b"\xff\xd8\xff\xe0", ("a JPEG image",)),
        ("m.xml", b"<!DOCTYPE html>\n<html></html>", ("an HTML page", "download")),
        ("m.xml", b"\x93NUMPY\x01\0", ("a .npy array",)),
    ],
)
def test_in_place_of_a_model(
    name: str, data: bytes, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(IRError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:1: the file is {words[0]}, not an IR")
    # deconv-lint takes a .bin as the name of its model, as pre-commit passes both.
    for command in ("run", "show", "diff", "cut", *(() if name.endswith(".bin") else ("lint",))):
        done = invoke_script(command, *_arguments(command, path))
        text = done.output + done.stderr
        assert done.exit_code == (1 if command == "lint" else 2), text
        assert all(word in text for word in words), text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        # Without a NUL byte the file could be text in some encoding.
        ("det.onnx", ONNX, "an ONNX model, not a document (ovc det.onnx writes an IR"),
        ("det.onnx", ONNX + bytes(8), "an ONNX model, not a document (ovc det.onnx writes an IR"),
        ("m.pb", b"\x08\x01\x12", "a TensorFlow model, not a document (ovc m.pb"),
        ("m.tflite", b"\x1c\0\0\0TFL3", "a TensorFlow Lite model, not a document (ovc m.tflite"),
        ("unet.bin", b"\x01\x02", "a weights file, not a document (give unet.xml)"),
        ("page.md", b"\x89PNG\r\n\x1a\n", "a PNG image, not a document\n"),
        ("page.md", b"\xff\xd8\xff\xe0", "a JPEG image, not a document\n"),
        ("page.md", b"%PDF-1.7", "a PDF file, not a document\n"),
        ("page.md", LFS_POINTER, "a Git LFS pointer, not a document ('git lfs pull'"),
    ],
)
def test_in_place_of_a_document(
    command: str, name: str, data: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    done = invoke_script("spec", command, path)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {path}: the file is {message}")
    assert path.read_bytes() == data


@pytest.mark.parametrize("name", ["page.html", "layer.xml", "page.txt", "page.csv", "page"])
def test_documents_of_any_kind_of_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("<!DOCTYPE html>\n" if "html" in name else "<!-- no layer -->\n")
    assert invoke_script("spec", "check", path).exit_code == 0


def _arguments(command: str, path: Path) -> list[object]:
    page, part = path.parent / "page.html", path.parent / "part.xml"
    return {
        "show": [path, "--output", page],
        "diff": [path, path],
        "cut": [path, "--from", "x", "--to", "y", "--output", part],
    }.get(command, [path])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (LFS_POINTER, "it is a Git LFS pointer; 'git lfs pull' fetches the content"),
        (LFS_POINTER + b" " * 4096, "it is a Git LFS pointer"),
        (b"<?xml version='1.0'?>\n<net name='n'/>" + bytes(4096), "it is an XML file"),
        (b"\n<net name='n' version='11'>" + bytes(4096), "it is an XML file"),
        (b"<!doctype html>" + bytes(4096), "it is an HTML page; a download may have failed"),
        (b"\x93NUMPY\x01\0" + bytes(4096), "it is a .npy array"),
    ],
)
def test_in_place_of_weights(data: bytes, words: str, tmp_path: Path) -> None:
    path = deconvolution_ir(declared="1,3,11,11").save(tmp_path)
    weights = path.with_suffix(".bin")
    other = tmp_path / "other"
    other.write_bytes(data)
    for given in (other, data):
        with pytest.raises(WeightsError) as caught:
            load(path, given)
        assert words in str(caught.value)
    weights.write_bytes(data)
    (finding,) = [f for f in deconv_ir.lint(path) if f.code == "IR501"]
    assert f"the model has constants, but model.bin: {words}" in finding.message
    part = tmp_path / "part.xml"
    for command, arguments in {
        "run": [path, "--random-inputs", "0", "--no-output"],
        "diff": [path, path],
        "cut": [path, "--from", "x", "--to", "up", "--output", part],
    }.items():
        done = invoke_script(command, *arguments)
        assert (done.exit_code, f"model.bin: {words}" in done.stderr) == (2, True), done.stderr
        assert not part.exists()


def test_weights_may_begin_with_any_number(tmp_path: Path) -> None:
    """Numbers whose bytes begin like short prefixes of other kinds."""
    path = deconvolution_ir().save(tmp_path)
    data = path.with_suffix(".bin").read_bytes()
    for start in (b"PK\x03\x04", b"\x1f\x8b\x08\0", b"\xff\xd8\xff\0", b"\x08\x08\x12\0"):
        load(path, start + data[4:])


def test_in_place_of_an_array(tmp_path: Path) -> None:
    path = deconvolution_ir().save(tmp_path)
    for name, data, words in (
        ("x.npy", b"\x89PNG\r\n\x1a\n", "a PNG image (an input whose name ends in .png"),
        ("x", b"\xff\xd8\xff\xe0", "a JPEG image"),
        ("x.csv", b"1,2\n", "a CSV file (numpy.loadtxt and numpy.save convert it)"),
        ("x.txt", b"1 2\n", "a text file"),
        ("x.npy", LFS_POINTER, "a Git LFS pointer"),
        ("x.npy", ONNX, "an ONNX model (ovc x.npy writes an IR"),
        ("x.safetensors", b"\x02" + bytes(7) + b"{}", "a safetensors file"),
        ("x.npy", json.dumps([1]).encode(), None),
    ):
        (tmp_path / name).write_bytes(data)
        done = invoke(path, "--input", tmp_path / name, "--no-output")
        assert done.exit_code == 2
        reason = "the magic bytes are missing" if words is None else f"it is {words}"
        assert f"{name}: not a .npy file: {reason}" in done.stderr


def test_arrays_named_like_types(tmp_path: Path) -> None:
    x = np.ones((1, 2, 5, 5), np.float32)
    np.savez(tmp_path / "x.npz", bfloat16=x)
    path = deconvolution_ir().save(tmp_path)
    done = invoke(path, "--input", tmp_path / "x.npz", "--no-output")
    assert done.exit_code == 0, done.stderr
