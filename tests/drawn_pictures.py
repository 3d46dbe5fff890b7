"""Reads the pictures of the page back."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np


def decoded(picture: dict[str, Any]) -> np.ndarray:
    """Decode the palette entries of a picture, whose rows have no filter."""
    data = base64.b64decode(picture["source"].partition(",")[2])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, parts = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (
            zlib.crc32(kind + body),
        )
        parts[kind] = body
        at += 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]
