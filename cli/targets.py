"""Where outputs go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import npy
from .common import Mistake


def output_targets(
    names: Sequence[str], output: str | None, force: bool, comparing: bool
) -> dict[str, Path | None]:
    """Return where each output goes (None: standard output), before anything is computed."""
    targets: dict[str, Path | None]
    if output is None and comparing:
        return {}
    if output == npy.STREAM:
        if len(names) != 1:
            raise Mistake(
                f"--output - writes one output, the model has {len(names)} (name a directory)"
            )
        return {names[0]: None}
    folder = Path(output) if output else Path()
    if output and not folder.is_dir() and not output.endswith("/"):
        if len(names) > 1:
            raise Mistake(
                f"--output {output} is one file, the model has {len(names)} outputs "
                "(name an existing directory, or end the name with '/')"
            )
        targets = {names[0]: folder}
        folder = folder.parent
    else:
        targets = dict(zip(names, file_names(folder, names), strict=True))
        if output and output.endswith("/"):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise Mistake(f"{output}: cannot create the directory: {error.strerror}") from error
    if not folder.is_dir():
        raise Mistake(f"--output {output}: directory {folder} does not exist")
    for target in targets.values():
        if target is not None and target.exists():
            if target.is_dir():
                raise Mistake(f"{target} is a directory")
            if not force:
                raise Mistake(f"{target} already exists (use --force to overwrite)")
    return targets


def file_names(folder: Path, names: Sequence[str]) -> list[Path]:
    """Make file names of output names: safe characters, no two alike."""
    paths: list[Path] = []
    for name in names:
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:150].lstrip(".")
        stem = safe or "output"
        path, number = folder / f"{stem}.npy", 1
        while path in paths:
            number += 1
            path = folder / f"{stem}.{number}.npy"
        paths.append(path)
    return paths
