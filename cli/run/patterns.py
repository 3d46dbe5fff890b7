"""Options for many files: patterns, folders, and paths that a shell has expanded."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from deconv_ir.formats.dumps import SUFFIX, name_files, read_manifest

from ..shared.common import Mistake, warn
from ..shared.inputs import pair, stands_for_many
from ..shared.options import IMAGE_SUFFIXES, SEVERAL


def find(option: str, text: str) -> dict[Path, Path]:
    """Find the files of one or several paths, in order of the paths.

    The key of each is unique: its path without suffix below the folder that is
    searched.
    """
    if SEVERAL in text:
        paths = [Path(path) for path in text.split(SEVERAL)]
        root = Path(os.path.commonpath([path.parent for path in paths]))
    elif Path(text).is_dir():
        root = Path(text)
        wanted = (".npy", *IMAGE_SUFFIXES) if option == "--input" else (".npy",)
        paths = sorted(p for p in root.glob("**/*") if p.suffix.lower() in wanted)
        paths = [p for p in paths if not any(part[0] == "." for part in p.relative_to(root).parts)]
        if not paths:
            raise Mistake(
                f"{option} {text}: the folder has no .npy file"
                + (" or image" if len(wanted) > 1 else "")
            )
    else:
        root = _searched_folder(text)
        paths = [Path(p) for p in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207 - absolute too
    paths = [path for path in paths if not path.is_dir()]
    if not paths:
        raise Mistake(f"{option} {text}: no file matches")
    found: dict[Path, Path] = {}
    for path in paths:
        stem = path.relative_to(root).with_suffix("")
        if found.setdefault(stem, path) != path:
            raise Mistake(f"{option}: {found[stem]} and {path} would have the same output")
    return found


def _searched_folder(pattern: str) -> Path:
    parts = Path(pattern).parts
    magic = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:magic])


def show(text: str) -> str:
    """Return an option in the form quoted in messages."""
    paths = text.split(SEVERAL)
    return text if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def pair_references(
    expect: Sequence[str], outputs: Sequence[str], stems: Sequence[Path]
) -> list[dict[str, Path]]:
    """Find the references of each run, by name: ``refs/a.npy`` is that of ``frames/a.npy``.

    For a model with several outputs, the reference of output ``y`` is ``refs/a.y.npy``, the name
    that --output uses, unless the option is ``y=refs/``.

    `expect` are values of --expect, `stems` the keys of `find` for the inputs of the runs.
    """
    references: list[dict[str, Path]] = [{} for _ in stems]
    for text in expect:
        if not stands_for_many(text):
            raise Mistake(
                f"--expect {text} is one reference, the inputs are many "
                "(give a folder or a quoted pattern; files are paired by name)"
            )
        name, path = _split(text, outputs)
        found = find("--expect", path)
        wanted = list(outputs) if name is None else [name]
        used = _pair(show(text), found, wanted, outputs, stems, references, name is not None)
        if left := len(found) - len(used):
            extra = next(path for path in found.values() if path not in used)
            warn(
                f"--expect {show(text)}: {left} reference{'s have' if left > 1 else ' has'} "
                f"no input (the first is {extra})"
            )
    return references


def name_references(expect: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """Replace patterns and folders of one run by ``NAME=FILE``: files have the names of outputs."""
    named: list[str] = []
    for text in expect:
        if not stands_for_many(text):
            named.append(text)
            continue
        name, path = _split(text, outputs)
        found = find("--expect", path)
        known = read_manifest(Path(path)) if Path(path).is_dir() else ()
        labels = {entry.name: entry.file for entry in name_files(outputs, known)}
        for output in outputs if name is None else [name]:
            match = found.get(Path(labels[output].removesuffix(SUFFIX)))
            if match is None and len(found) == 1 and (name is not None or len(outputs) == 1):
                (match,) = found.values()
            if match is None:
                raise Mistake(f"--expect {show(text)}: no reference is called {labels[output]}")
            named.append(f"{output}={match}")
    return named


def _split(text: str, outputs: Sequence[str]) -> tuple[str | None, str]:
    """Split the name of an output, if any, from a value of --expect."""
    name = max((o for o in outputs if text.startswith(f"{o}=")), key=len, default=None)
    if name is not None:
        return name, text[len(name) + 1 :]
    if "=" in text:
        pair("--expect", [text], outputs)  # its error lists the names
    return None, text


def _pair(
    shown: str,
    found: Mapping[Path, Path],
    wanted: Sequence[str],
    outputs: Sequence[str],
    stems: Sequence[Path],
    references: Sequence[dict[str, Path]],
    plain: bool,
) -> set[Path]:
    """Give each run its references among the files of one option; return the used files."""
    plain = plain or len(outputs) == 1
    labels = {entry.name: entry.file.removesuffix(SUFFIX) for entry in name_files(outputs)}
    used: set[Path] = set()
    for stem, own in zip(stems, references, strict=True):
        names = [stem] if plain else []
        for output in wanted:
            labelled = stem.with_name(f"{stem.name}.{labels[output]}")
            match = next((found[n] for n in (*names, labelled) if n in found), None)
            if match is None:
                looked_for = names[0] if names else labelled
                raise Mistake(f"--expect {shown}: no reference is called {looked_for}.npy")
            own[output] = match
            used.add(match)
    return used
