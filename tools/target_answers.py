"""Files that releases of OpenVINO tried, and their answers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from deconv_ir.linter.releases import Release, release_of
from deconv_ir.linter.targets.trial import Trial

NO_OPSET = "unsupported opset"
"""What the reader says of a type that an opset lacks."""
NO_LAYER = "Unsupported operation of type"
"""What the CPU plugin says of an operation that it does not compute."""

Rows = dict[str, tuple[set[Release], set[Release]]]
"""Key -> releases that accept it, and those of which it is not known."""


class File(NamedTuple):
    """A file to try."""

    text: str
    weights: bytes
    compiles: bool = True

    @property
    def key(self) -> str:
        """The hash of what is tried."""
        digest = sha256(self.text.encode())
        digest.update(self.weights + bytes([self.compiles]))
        return digest.hexdigest()[:24]


class Answers(NamedTuple):
    """The answers of one release."""

    release: Release
    by_key: dict[str, str]

    def of(self, file: File) -> str | None:
        """Return the step at which the release failed, or ``accepted``; None: not asked."""
        return self.by_key.get(file.key)


def ask(python: str, files: list[File], folder: Path) -> str:
    """Have a release try the files that it has not tried yet; return the release."""
    folder.mkdir(parents=True, exist_ok=True)
    with Trial(python, timeout=30) as trial, tempfile.TemporaryDirectory(dir=_memory()) as place:
        trial.start()
        version = trial.version.split("-")[0]
        kept = folder / f"{version}.json"
        answers: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
        path = Path(place) / "m.xml"
        for file in files:
            if file.key not in answers:
                path.write_text(file.text)
                path.with_suffix(".bin").write_bytes(file.weights or b"\0")
                step, message = trial.ask(str(path), compiles=file.compiles)
                said = next((w for w in (NO_OPSET, NO_LAYER) if w in message), "")
                answers[file.key] = f"{step} {said}".strip()
                if len(answers) % 1000 == 0:
                    kept.write_text(json.dumps(answers))
    kept.write_text(json.dumps(answers))
    return version


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def answers_in(folder: Path) -> list[Answers]:
    """Return the answers of all releases in a folder, in order of the releases."""
    found = [
        Answers(release_of(path.stem), json.loads(path.read_text()))
        for path in folder.glob("*.json")
    ]
    return sorted(found, key=lambda answers: answers.release)


def version_of(python: str) -> Release:
    """Return the release that a Python has."""
    with Trial(python) as trial:
        trial.start()
        return release_of(trial.version)


def disputed(
    release: Release, every: list[Answers], files: list[File], plain: Collection[File] = ()
) -> list[File]:
    """Return the files of which the releases around one give different answers.

    The `plain` ones that both accept are among them: a release may refuse what others accept.
    """
    around = _around(release, every, files)
    if around is None:
        return files
    keys = {file.key for file in plain}
    said = [(f, _kind(around[0].of(f)), _kind(around[1].of(f))) for f in files]
    return [f for f, a, b in said if a != b or (a[0] and f.key in keys)]


def completed(
    every: list[Answers], files: list[File], plain: Collection[File] = ()
) -> list[Answers]:
    """Add to releases that were not asked for all files what the releases around them agree on.

    A release that was not asked for the files that `disputed` returns is left out.
    """
    found = []
    for answers in every:
        around = _around(answers.release, every, files)
        if around is not None and not _is_full(answers, files):
            asked = disputed(answers.release, every, files, plain)
            if not _is_full(answers, asked):
                print(f"{answers.release} was not asked for all that it needs: left out")
                continue
            agreed = {
                file.key: said
                for file in files
                if (said := around[0].of(file)) is not None
                and _kind(said) == _kind(around[1].of(file))
            }
            answers = answers._replace(by_key=agreed | answers.by_key)
        if not _is_full(answers, files):
            raise SystemExit(f"{answers.release} was not asked for all files")
        found.append(answers)
    return found


def _around(
    release: Release, every: list[Answers], files: list[File]
) -> tuple[Answers, Answers] | None:
    """Return the nearest releases before and after one that were asked for all files."""
    full = [answers for answers in every if _is_full(answers, files)]
    before = [answers for answers in full if answers.release < release]
    after = [answers for answers in full if answers.release > release]
    return (before[-1], after[0]) if before and after else None


def _is_full(answers: Answers, files: Collection[File]) -> bool:
    return all(file.key in answers.by_key for file in files)


def _kind(said: str | None) -> tuple[bool, bool]:
    return said == "accepted", said is not None and NO_OPSET in said
