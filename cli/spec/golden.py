"""deconv-spec generate and verify: from the user's paths to files and reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.formats.files import output_errors, replace_file

from ..shared.common import EXIT_DIFFERS, EXIT_OK
from ..shared.guard import Guard
from .report import report_generated, report_verified

if TYPE_CHECKING:
    from .request import GenerateRequest, VerifyRequest


def generate_files(request: GenerateRequest) -> int:
    """Make a golden directory; files are written after all of them are made."""
    from deconv_ir.spec_examples.generate import PageFormat, generate
    from deconv_ir.spec_examples.specfile import read_spec

    stated = read_spec(request.spec)
    files = generate(stated, PageFormat(request.page_format), diagrams=request.diagram)
    guard = Guard([("the specification", request.spec)])
    for name in files:
        guard.allow("--out", Path(request.out, name))
    _write(files, Path(request.out))
    if not request.quiet:
        report_generated(request.out, stated.examples, files)
    return EXIT_OK


def _write(files: Mapping[str, bytes], root: Path) -> None:
    """Write files atomically; the manifest, which has their hashes, is last."""
    for name in sorted(files, key=lambda n: (n == "manifest.json", n)):
        path = root / name
        with output_errors(path, "the file"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as stream:
                stream.write(files[name])


def verify_files(request: VerifyRequest) -> int:
    """Verify a golden directory, and outputs against it; return the exit code."""
    from deconv_ir.spec_examples.verify import verify

    result = verify(request.directory, request.actual, rtol=request.rtol, atol=request.atol)
    report_verified(result, quiet=request.quiet)
    return EXIT_DIFFERS if result.findings else EXIT_OK
