"""Judging IRs: findings, and the rules that make them."""

from __future__ import annotations

import os

from ..findings import Finding

__all__ = ["lint"]


def lint(path: str | os.PathLike[str], semantics: str = "spec") -> list[Finding]:
    """Return everything that is wrong with an IR, in the order of its file.

    Parameters
    ----------
    path : path-like
        The .xml file.
    semantics : str
        ``spec`` or ``openvino``.

    Returns
    -------
    list of Finding
        Empty for a clean file.  A broken file gives findings, not an error.
    """
    from .engine import check_file

    return check_file(path, semantics)
