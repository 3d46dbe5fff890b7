"""Judging IRs: findings, and the rules that make them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.ir.options import Semantics
from deconv_ir.limits import DEFAULT_LIMITS, Limits

__all__ = ["lint"]


def lint(
    path: str | os.PathLike[str],
    semantics: Semantics | str = Semantics.SPEC,
    *,
    weights: str | os.PathLike[str] | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    severity: Severity | str = Severity.WARNING,
    reshape: Mapping[str, Sequence[int]] | None = None,
    deep: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Finding]:
    """Return everything that is wrong with an IR, in the order of its file.

    Parameters
    ----------
    path : path-like
        The .xml file.
    semantics : Semantics or str
        ``spec`` or ``openvino``: whose rule decides where they differ.
    weights : path-like, optional
        The .bin file; by default the one beside the .xml.
    select, ignore : iterable of str
        Rules to run, and to leave out: codes, beginnings of codes, names or
        families.  Default: all rules of at least `severity`.
    severity : Severity or str
        ``error``, ``warning`` or ``info``: rules below it are not run.
        Notes on portability are ``info``.
    reshape : mapping, optional
        Input name -> shape: check whether the layers fit at other input
        shapes.  Declared dims are not compared then.
    deep : bool
        Read all weights, and look for NaN and infinity.
    limits : Limits
        Sizes beyond which the file is refused.

    Returns
    -------
    list of Finding
        Empty for a clean file.  A broken file gives findings, not an error.

    Raises
    ------
    DeconvError
        There is no such rule, severity, semantics or input.

    Examples
    --------
    >>> import deconv_ir
    >>> [f.rule for f in deconv_ir.lint("model.xml")]      # doctest: +SKIP
    ['declared-dims-differ']
    """
    from deconv_ir.linter.engine import check_file
    from deconv_ir.linter.options import choose

    options = choose(
        select=select,
        ignore=ignore,
        severity=severity,
        semantics=semantics,
        reshape={name: tuple(shape) for name, shape in (reshape or {}).items()},
        deep=deep,
    )
    return check_file(path, options, weights=weights, limits=limits).findings
