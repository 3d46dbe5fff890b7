"""The option --profile: times of the layers, and their trace in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.formats.files import output_errors, replace_file

from .common import Mistake, require_absent

if TYPE_CHECKING:
    from deconv_ir.execute.profile import Profile

    from .request import Request


def start_profile(request: Request) -> Profile | None:
    """Return a profile if --profile is given; require that its trace can be written."""
    if request.profile is None:
        return None
    if request.profile:
        trace = Path(request.profile)
        require_absent(trace, request.force)
        if not trace.parent.is_dir():
            raise Mistake(f"--profile {trace}: directory {trace.parent} does not exist")
    from deconv_ir.execute.profile import Profile

    return Profile()


def write_trace(profile: Profile | None, request: Request) -> None:
    """Write a profile as a Chrome trace to the file of --profile, if given."""
    if profile is None or not request.profile:
        return
    import json

    path = Path(request.profile)
    with output_errors(path, "the trace"), replace_file(path) as stream:
        stream.write(json.dumps(profile.trace()).encode())
