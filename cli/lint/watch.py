"""--watch: check again whenever a file changes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import click

from deconv_ir.errors import DeconvError
from deconv_ir.formats.openvino_xml.weights import weights_beside
from deconv_ir.linter.config import FILE_NAME, PROJECT

from ..shared.common import Mistake
from .paths import find_files

if TYPE_CHECKING:
    from .request import LintRequest

INTERVAL = 0.5
"""Seconds between two looks at the files."""

Snapshot = dict[str, tuple[int, int] | None]
"""Path -> time of change and size; None: the file does not exist."""


def watch(
    request: LintRequest,
    check: Callable[[LintRequest], int],
    wait: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Check, and check again after each change, until the user interrupts.

    A mistake, such as a file that is gone for a moment, is reported, and watching continues.
    """
    seen: Snapshot | None = None
    while True:
        now = snapshot(request)
        if now != seen:
            if seen is not None and sys.stdout.isatty():
                click.clear()
            try:
                check(request)
            except (Mistake, DeconvError) as error:
                click.echo(f"error: {error}", err=True)
            # Fixes change files; they are not changes of the user.
            seen = snapshot(request) if request.fix else now
        wait(INTERVAL)


def snapshot(request: LintRequest) -> Snapshot:
    """Return the state of the files that a run reads: models, weights, settings, baseline."""
    try:
        models = [file for file, _ in find_files(request.paths or (os.curdir,))]
    except Mistake:
        models = list(request.paths)
    files = {request.config, request.baseline, request.weights}
    for model in models:
        files |= {model, weights_beside(model)}
        folder = os.path.dirname(model)
        while True:
            files |= {os.path.join(folder, FILE_NAME), os.path.join(folder, PROJECT)}
            above = os.path.dirname(os.path.abspath(folder))
            if above == os.path.abspath(folder):
                break
            folder = above
    return {file: _state(file) for file in sorted(filter(None, files))}


def _state(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
