"""Files of other kinds, recognised by their first bytes, so that an error can name them."""

from __future__ import annotations

import os
from typing import Final

from deconv_ir.hints import Advice, Hint

START: Final = 64
"""Bytes of a file that `recognise` looks at."""

_LFS: Final = b"version https://git-lfs.github.com/spec/"


class FileType:
    """A kind of file.

    Attributes
    ----------
    what : str
        Its name with an article, such as ``an ONNX model``.
    hint : Hint or None
        What to do with it; its values are the name of the file, and that without suffix.
    """

    __slots__ = ("hint", "what")

    def __init__(self, what: str, hint: Hint | None = None) -> None:
        self.what = what
        self.hint = hint

    @property
    def is_image(self) -> bool:
        """Whether it is an image that inputs are read from."""
        return self.hint is Hint.IMAGE_BY_SUFFIX

    @property
    def is_text(self) -> bool:
        """Whether it is text that may contain examples of layers."""
        return self in (_XML, _HTML, _CSV, _TEXT)

    def hint_for(self, path: str | None) -> Advice | None:
        """Return the hint for a file of this name."""
        if self.hint is None:
            return None
        name = os.path.basename(path or "")
        return self.hint(name, os.path.splitext(name)[0])


_POINTER: Final = FileType("a Git LFS pointer", Hint.LFS_FETCHES)
_ONNX: Final = FileType("an ONNX model", Hint.OVC_CONVERTS)
_TENSORFLOW: Final = FileType("a TensorFlow model", Hint.OVC_CONVERTS)
_TFLITE: Final = FileType("a TensorFlow Lite model", Hint.OVC_CONVERTS)
_TORCH: Final = FileType("a PyTorch file", Hint.TORCH_CONVERTS)
_PADDLE: Final = FileType("a PaddlePaddle model", Hint.OVC_CONVERTS)
_KERAS: Final = FileType("a Keras model", Hint.TENSORFLOW_EXPORTS)
_HDF5: Final = FileType("an HDF5 file", Hint.TENSORFLOW_EXPORTS)
_CAFFE: Final = FileType("a Caffe model", Hint.OLD_OPTIMIZER_CONVERTS)
_SAFETENSORS: Final = FileType("a safetensors file", Hint.WEIGHTS_ALONE)
_NUMPY: Final = FileType("a .npy array")
_XML: Final = FileType("an XML file")
_HTML: Final = FileType("an HTML page", Hint.DOWNLOAD_FAILED)
_CSV: Final = FileType("a CSV file", Hint.NUMPY_CONVERTS)
_TEXT: Final = FileType("a text file", Hint.NUMPY_CONVERTS)

# Offset and bytes by which a kind is recognised.
_MAGIC: Final[tuple[tuple[int, bytes, FileType], ...]] = (
    (0, _LFS, _POINTER),
    (0, b"\x93NUMPY", _NUMPY),
    (0, b"\x89PNG\r\n", FileType("a PNG image", Hint.IMAGE_BY_SUFFIX)),
    (0, b"\xff\xd8\xff", FileType("a JPEG image", Hint.IMAGE_BY_SUFFIX)),
    (0, b"\x89HDF\r\n", _HDF5),
    (0, b"\x1f\x8b", FileType("a gzip archive")),
    (0, b"%PDF", FileType("a PDF file")),
    (0, b"GGUF", FileType("a GGUF file", Hint.WEIGHTS_ALONE)),
    (4, b"TFL3", _TFLITE),
)
_TEXTS: Final = (
    (b"<!doctype html", _HTML),
    (b"<html", _HTML),
    (b"<?xml", _XML),
    (b"<net", _XML),
)
# Kinds that have no bytes of their own, or share them with others.
_SUFFIXES: Final = {
    ".onnx": _ONNX,
    ".pb": _TENSORFLOW,
    ".tflite": _TFLITE,
    ".pth": _TORCH,
    ".pt": _TORCH,
    ".ckpt": _TORCH,
    ".pdmodel": _PADDLE,
    ".keras": _KERAS,
    ".h5": _HDF5,
    ".caffemodel": _CAFFE,
    ".prototxt": _CAFFE,
    ".safetensors": _SAFETENSORS,
    ".blob": FileType("a compiled model", Hint.COMPILED_FROM_IR),
    ".bin": FileType("a weights file", Hint.GIVE_XML),
    ".npz": FileType("an .npz archive of arrays"),
    ".csv": _CSV,
    ".txt": _TEXT,
}


def recognise(start: bytes, path: str | None = None) -> FileType | None:
    """Return the kind of a file by its first `START` bytes, then by its suffix; None if unknown."""
    for offset, magic, file_type in _MAGIC:
        if start[offset : offset + len(magic)] == magic:
            return file_type
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for opening, file_type in _TEXTS:
        if text.startswith(opening):
            return file_type
    suffix = os.path.splitext(path or "")[1].lower()
    if start.startswith(b"PK\x03\x04"):
        return _SUFFIXES.get(suffix, FileType("a zip archive"))
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if _is_onnx(start):
        return _ONNX
    return _SAFETENSORS if start[8:10] == b'{"' and not any(start[4:8]) else None


def _is_onnx(start: bytes) -> bool:
    """Whether a file begins like an ONNX model: ir_version, then a field of text or the graph.

    Source: ONNX, onnx.proto, ModelProto: ir_version is field 1, producer_name 2, producer_version
    3, domain 4, doc_string 6, graph 7, opset_import 8.
    """
    return (
        len(start) > 4
        and start[0] == 0x08
        and 3 <= start[1] < 32
        and start[2] in (0x12, 0x1A, 0x22, 0x32, 0x3A, 0x42)
    )


def is_other_suffix(suffix: str) -> bool:
    """Whether files of this suffix, such as ``.onnx``, have a kind of their own."""
    return suffix.lower() in _SUFFIXES


def recognise_weights(start: bytes) -> FileType | None:
    """Return the kind of a file that cannot be weights, by its first bytes; None if it can be.

    Weights may begin with any bytes, so only kinds with long prefixes are recognised.
    """
    file_type = recognise(start)
    return file_type if file_type in (_POINTER, _NUMPY, _XML, _HTML) else None
