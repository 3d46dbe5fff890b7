"""Results of earlier checks, by the contents of the files and the version of the linter."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from deconv_ir.errors import WeightsError, utf_8
from deconv_ir.findings import Finding, Fix, GraphLocation, Severity, plain
from deconv_ir.formats.files import replace_file
from deconv_ir.hints import Advice, Hint
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.linter.engine import FileResult
from deconv_ir.linter.options import CheckOptions
from deconv_ir.linter.weights import WeightsView, fingerprint
from deconv_ir.version import __version__

FORMAT = 4
"""Version of the format of entries."""
MAX_AGE_SECONDS = 30 * 24 * 3600


def default_folder() -> Path:
    """Return the cache folder: within the user's, so that no files are added to projects."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "deconv-lint"


class Cache:
    """Results by content; if the cache cannot be used, the file is checked again."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._stamp = _code_stamp()

    def key(
        self,
        data: bytes,
        options: CheckOptions,
        weights: str | None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> str:
        """Return the key of a file's bytes; it includes the .bin's name, which messages have."""
        name = "" if weights is None else os.path.basename(weights)
        rest = dataclasses.replace(options, rules=frozenset(), hidden=frozenset())
        chosen = [repr(rest), *sorted(options.rules), "hidden", *sorted(options.hidden)]
        settings = f"{' '.join(chosen)} {limits}"
        digest = hashlib.sha256(utf_8(f"{FORMAT} {self._stamp} {name} {settings}\0"))
        digest.update(data)
        return digest.hexdigest()

    def load(self, key: str, file: str, weights: str | None) -> FileResult | None:
        """Return the result for these bytes and this .bin; None if it is not cached."""
        try:
            entry = json.loads(self._path(key).read_bytes())
            if not _same_weights(entry["weights"], weights):
                return None
            return _decode(entry, file)
        except (OSError, ValueError, KeyError, TypeError, WeightsError):
            return None

    def store(self, key: str, result: FileResult, weights: str | None) -> None:
        """Store a result."""
        entry = _encode(result)
        entry["weights"] = _weights_state(result, weights)
        path = self._path(key)
        with contextlib.suppress(OSError, WeightsError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path, durable=False) as stream:
                stream.write(json.dumps(entry).encode())

    def prune(self) -> None:
        """Remove entries that have not been written for a month."""
        oldest = time.time() - MAX_AGE_SECONDS
        with contextlib.suppress(OSError):
            for path in self.folder.glob("??/*.json"):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"


@functools.cache
def _code_stamp() -> str:
    """Return the stamp of the linter: the version, and the times of its files.

    In a source tree the code changes without the version.
    """
    package = Path(__file__).resolve().parent.parent
    newest = max(
        os.stat(os.path.join(folder, name)).st_mtime_ns
        for folder, _, names in os.walk(package)
        for name in names
        if name.endswith(".py")
    )
    return f"{__version__} {newest}"


def _weights_state(result: FileResult, weights: str | None) -> dict[str, Any] | None:
    if result.reads is None or weights is None:
        return None
    return {
        "reads": result.reads,
        "hash": fingerprint(WeightsView(weights), result.reads),
    }


def _same_weights(state: dict[str, Any] | None, weights: str | None) -> bool:
    if state is None:
        return weights is None or not os.path.exists(weights)
    if weights is None:
        return False
    found: bool = fingerprint(WeightsView(weights), state["reads"]) == state["hash"]
    return found


def _encode(result: FileResult) -> dict[str, Any]:
    return {
        "findings": [_fields(finding) for finding in result.findings],
        "layers": result.layers,
        "passed_over": result.passed_over,
        "suppressed": result.suppressed,
        "hidden": [(severity.value, count) for severity, count in result.hidden],
        "lines": {str(number): text for number, text in result.lines.items()},
    }


def _fields(finding: Finding) -> dict[str, Any]:
    """Return the fields that are not defaults; of a fix, whether it is safe."""
    fix = finding.fix
    fields = finding._replace(
        file=None,
        location=_set(finding.part._asdict()),  # type: ignore[arg-type]
        expected=plain(finding.expected),
        actual=plain(finding.actual),
        fix=None if fix is None or fix.alternatives else fix.safe,  # type: ignore[arg-type]
        hint=None if finding.hint is None else _parts(finding.hint),  # type: ignore[arg-type]
        severity=finding.severity.value,  # type: ignore[arg-type]
    )
    return _set(fields._asdict())


def _set(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _finding(fields: dict[str, Any], file: str) -> Finding:
    safe, hint = fields.pop("fix", None), fields.pop("hint", None)
    severity = Severity(fields.pop("severity"))
    fix = None if safe is None else Fix(safe=safe)
    advice = None if hint is None else _advice(hint)
    location = GraphLocation(**fields.pop("location"))
    return Finding(file=file, location=location, hint=advice, fix=fix, severity=severity, **fields)


def _parts(advice: Advice) -> list[Any]:
    """Return the name and the values of a hint, some of which may be hints."""
    values = (_parts(v) if isinstance(v, Advice) else plain(v) for v in advice.values)
    return [advice.member.name, *values]


def _advice(parts: list[Any]) -> Advice:
    return Hint[parts[0]](*(_advice(v) if isinstance(v, list) else v for v in parts[1:]))


def _decode(entry: dict[str, Any], file: str) -> FileResult:
    return FileResult(
        file=file,
        findings=[_finding(fields, file) for fields in entry["findings"]],
        layers=entry["layers"],
        passed_over=tuple((kind, count) for kind, count in entry["passed_over"]),
        suppressed=entry["suppressed"],
        hidden=tuple((Severity(severity), count) for severity, count in entry["hidden"]),
        lines={int(number): text for number, text in entry["lines"].items()},
    )
