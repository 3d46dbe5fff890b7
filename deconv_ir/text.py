"""Text of messages and files: one line of bounded length, and paths as bytes."""

from __future__ import annotations

MAX_MESSAGE = 1000
MAX_NAME = 200


def one_line(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return a text that may hold parts of a hostile file as one line of bounded length.

    Control characters, which could move a terminal's cursor or break a log,
    are written as escapes; the middle of a text that is too long is left out.
    """
    if len(text) > limit:
        tail = limit // 4
        text = f"{text[: limit - tail]} ... {text[-tail:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def utf_8(text: str) -> bytes:
    """Encode a text that may hold paths.

    Bytes of a file name that are not UTF-8 are lone surrogates in a path (PEP 383); they are
    written as escapes, as `one_line` does.
    """
    return text.encode("utf-8", "backslashreplace")
