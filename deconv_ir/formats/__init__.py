"""Files and graphs: reading and writing each format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.errors import InputError
from deconv_ir.formats.files import is_json
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
    if is_json(data, file):
        from deconv_ir.formats.onednn_json import reader

        return reader.read_document(data, file, limits, overrides)
    if overrides is not None:
        raise InputError(f"{file or 'the file'} is not a oneDNN Graph file, which overrides need")
    from deconv_ir.formats.openvino_xml import entry

    return entry.read_document(data, file, limits)
