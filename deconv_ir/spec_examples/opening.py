"""Opening a document: plain text of any markup, or a notebook."""

from __future__ import annotations

import os

from deconv_ir.formats.files import is_json, read_input
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.spec_examples.notebook import SUFFIX, Notebook
from deconv_ir.spec_examples.text import Document


def open_document(data: bytes, name: str = "<document>") -> Document:
    """Return the document that some bytes are; messages call it `name`."""
    if name.lower().endswith(SUFFIX) or (is_json(data) and b'"nbformat"' in data):
        return Notebook(data, name)
    return Document(data, name)


def read_document(
    path: str | os.PathLike[str], limit: int = DEFAULT_LIMITS.document_bytes
) -> Document:
    """Read a document from a file of at most `limit` bytes."""
    return open_document(read_input(path, limit), os.fspath(path))
