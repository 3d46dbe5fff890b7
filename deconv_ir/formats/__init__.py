"""Files and graphs: reading and writing each format.

A format is a `Format` in the registry; `parse_bytes` finds that of a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError, InputError, IRError
from deconv_ir.formats.files import read_input, similar_file
from deconv_ir.formats.format import ParsedFile
from deconv_ir.formats.onednn_json import ONEDNN_JSON
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.formats.recognise import START, recognise
from deconv_ir.formats.registry import find_format, suffixes
from deconv_ir.hints import Hint
from deconv_ir.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from deconv_ir.formats.onednn_json.overrides import Overrides


def read_file(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Return the bytes of a model's file, without the weights file."""
    try:
        return read_input(path, limits.xml_bytes, "the model", IRError)
    except DeconvError as error:
        name = os.fspath(path)
        stem = name if not os.path.splitext(name)[1] else os.path.splitext(name)[0]
        known = suffixes()
        there = [s for s in known if not os.path.exists(name) and os.path.isfile(stem + s)]
        if there and error.hint is None:
            error.hint = Hint.DID_YOU_MEAN(os.path.basename(stem + there[0]))
        error.hint = error.hint or similar_file(path, known)
        raise


def parse_bytes(
    data: bytes, file: str | None, limits: Limits, overrides: Overrides | None = None
) -> ParsedFile:
    """Read a file of any format by its contents, and keep the location of each part.

    Raises
    ------
    InputError
        `overrides` are given, and the format does not support them.
    """
    found = find_format(data, file)
    other = None if found else other_type(data, file)
    if other is not None:
        parsed = ParsedFile(file)
        parsed.errors.append(other)
        return parsed
    if overrides is not None:
        if found is not ONEDNN_JSON:
            name = file or "the file"
            raise InputError(f"{name} is not a oneDNN Graph file, which overrides need")
        return ONEDNN_JSON.read(data, file, limits, overrides)
    found = found or OPENVINO_XML  # its reader says what is wrong with other text
    return found.read(data, file, limits)


def other_type(data: bytes, file: str | None) -> IRError | None:
    """Return the error for a file of another kind than a model, such as ONNX; None if it may be."""
    file_type = recognise(data[:START], file)
    if file_type is None or find_format(data, file) is not None:
        return None
    message = f"the file is {file_type.what}, not an IR"
    return IRError(message, file=file, line=1, rule="xml", hint=file_type.hint_for(file))
