"""The linter: rules and their findings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from deconv_ir.findings import Finding, Severity
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
    """Check an IR by the lint rules.

    Parameters
    ----------
    path : path-like
        The .xml file.
    semantics : Semantics or str
        ``spec`` or ``openvino``: the rule for cases in which the two differ.
    weights : path-like, optional
        The .bin file; by default the one next to the .xml.
    select, ignore : iterable of str
        Rules to run, and rules to skip: codes, beginnings of codes, names or
        families.  Default: all rules of at least `severity`.
    severity : Severity or str
        ``error``, ``warning`` or ``info``: rules below it are not run.
        Notes on portability are ``info``.
    reshape : mapping, optional
        Input name -> shape: check whether the layers fit at other input
        shapes.  Declared dims are not compared then.
    deep : bool
        Whether to read all weights, and search them for NaN and infinity.
    limits : Limits
        Sizes above which the file is rejected.

    Returns
    -------
    list of Finding
        In the order of the file; empty for a clean file.  An invalid file gives findings, not an
        error.

    Raises
    ------
    DeconvError
        A rule, severity, semantics or input is unknown.

    Examples
    --------
    >>> from pathlib import Path
    >>> import deconv_ir
    >>> deconv_ir.lint("samples/block/block.xml")
    []
    >>> text = Path("samples/documents/convolution_backprop_data_1.xml").read_text()
    >>> _ = Path("wrong.xml").write_text(text.replace("447", "448", 1))
    >>> [(f.code, f.rule, f.line) for f in deconv_ir.lint("wrong.xml")]
    [('IR401', 'declared-dims-differ', 21)]
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
