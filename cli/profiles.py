"""The option --profile: times of the layers, and their trace in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import OutputError
from deconv_ir.formats.files import replace_file

from .common import Mistake

if TYPE_CHECKING:
    from deconv_ir.execute.profile import Profile

    from .request import Request


def start_profile(request: Request) -> tuple[Profile | None, Path | None]:
    """Return what takes note of times, and the file for the trace."""
    if request.profile is None:
        return None, None
    from deconv_ir.execute.profile import Profile

    if not request.profile:
        return Profile(), None
    trace = Path(request.profile)
    if trace.exists() and not request.force:
        raise Mistake(f"{trace} already exists (use --force to overwrite)")
    if not trace.parent.is_dir():
        raise Mistake(f"--profile {trace}: directory {trace.parent} does not exist")
    return Profile(), trace


def write_trace(profile: Profile, path: Path) -> None:
    """Write a profile as a Chrome trace.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    import json

    try:
        with replace_file(path) as stream:
            stream.write(json.dumps(profile.trace()).encode())
    except OSError as error:
        raise OutputError(
            f"cannot write the trace: {error.strerror or error}", file=str(path)
        ) from error
