"""The option --profile: times of the layers, and their trace in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.formats.files import output_errors, replace_file

from ..shared.common import Mistake, require_absent

if TYPE_CHECKING:
    from deconv_ir.execute.profile import LayerTime, Profile

    from .request import RunRequest


class RunProfiles:
    """The profile of the counted runs, and that of the first of all if it is a warm-up run."""

    def __init__(self) -> None:
        from deconv_ir.execute.profile import Profile

        self.counted = Profile()
        self._first = Profile()
        self._begun = False

    def of_run(self, counts: bool = True) -> Profile | None:
        """Return the profile for the next run; None for a warm-up run after the first."""
        first, self._begun = not self._begun, True
        if counts:
            return self.counted
        return self._first if first else None

    @property
    def cold_counts(self) -> bool:
        """Whether the first run of all is one of the counted runs."""
        return not self._first.layers

    @property
    def cold(self) -> list[LayerTime]:
        """The times of the first run of all."""
        return self._first.layers or [row for row in self.counted.layers if not row.run]


def start_profiles(request: RunRequest) -> RunProfiles | None:
    """Return profiles if --profile is given; require that the trace can be written."""
    if request.profile is None:
        return None
    if request.profile:
        trace = Path(request.profile)
        require_absent(trace, request.force)
        if not trace.parent.is_dir():
            raise Mistake(f"--profile {trace}: directory {trace.parent} does not exist")
    return RunProfiles()


def write_trace(profiles: RunProfiles | None, request: RunRequest) -> None:
    """Write the counted runs as a Chrome trace to the file of --profile, if given."""
    if profiles is None or not request.profile:
        return
    import json

    path = Path(request.profile)
    with output_errors(path, "the trace"), replace_file(path) as stream:
        stream.write(json.dumps(profiles.counted.trace()).encode())
