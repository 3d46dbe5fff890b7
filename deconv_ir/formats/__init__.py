"""Files and graphs: reading and writing each format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.errors import InputError, IRError
from deconv_ir.formats.files import is_json
from deconv_ir.formats.recognise import START, recognise
from deconv_ir.limits import Limits

if TYPE_CHECKING:
    from deconv_ir.formats.onednn_json.document import Document as OneDNNDocument
    from deconv_ir.formats.onednn_json.overrides import Overrides
    from deconv_ir.formats.openvino_xml.document import Document


def read_document(
    data: bytes, file: str | None, limits: Limits, overrides: Overrides | None = None
) -> Document | OneDNNDocument:
    """Read a file of any format by its contents, and keep the location of each part.

    Raises
    ------
    InputError
        `overrides` are given, and the format does not support them.
    """
    other = other_kind(data, file)
    if other is not None:
        from deconv_ir.formats.openvino_xml.document import Document

        document = Document(file)
        document.problems.append(other)
        return document
    if is_json(data, file):
        from deconv_ir.formats.onednn_json import reader

        return reader.read_document(data, file, limits, overrides)
    if overrides is not None:
        raise InputError(f"{file or 'the file'} is not a oneDNN Graph file, which overrides need")
    from deconv_ir.formats.openvino_xml import entry

    return entry.read_document(data, file, limits)


def other_kind(data: bytes, file: str | None) -> IRError | None:
    """Return the error for a file of another kind than a model, such as ONNX; None if it may be."""
    kind = recognise(data[:START], file)
    if kind is None or _is_text(data):
        return None
    message = f"the file is {kind.what}, not an IR"
    return IRError(message, file=file, line=1, rule="xml", hint=kind.hint_for(file))


def _is_text(data: bytes) -> bool:
    """Whether a file begins like XML or JSON, in any encoding."""
    start = data[:START].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").lower()
    return start[:1] in (b"<", b"{", b"[") and not start.startswith((b"<!doctype html", b"<html"))
