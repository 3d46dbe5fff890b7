"""Results of earlier checks, by the contents of the files and the version of the linter.

An entry begins with the hash of its key and contents, and belongs to the user, so that a damaged
entry, one of another file or version and one that another user wrote are treated as absent.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deconv_ir.errors import WeightsError, utf_8
from deconv_ir.findings import Finding, Fix, GraphLocation, Severity, plain
from deconv_ir.formats.files import open_regular, replace_file
from deconv_ir.hints import Advice, Hint
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.linter.catalogue import RULES
from deconv_ir.linter.engine import FileResult
from deconv_ir.linter.options import CheckOptions
from deconv_ir.linter.weights import RecordedWeights, fingerprint
from deconv_ir.version import __version__

if TYPE_CHECKING:
    from deconv_ir.linter.targets.verdict import Because, TargetVerdict

FORMAT = 6
"""Version of the format of entries."""
MAX_AGE_SECONDS = 30 * 24 * 3600
MAX_ENTRY_BYTES = 64 << 20
"""Size above which a result is not stored, and an entry is not read."""

_HEAD: Final = b'{"sha256": "%s", "entry": '
_END: Final = b"}"
_NUMBERS: Final = ("line", "column", "end_column")
_TEXTS: Final = ("message", "layer", "attribute", "rule", "code")
_PLAIN: Final = (str, int, float, bool, type(None))
_PLACES: Final = {
    **dict.fromkeys(("layer", "edge", "port", "axis"), int),
    **dict.fromkeys(("side", "attribute", "child"), str),
    "own": bool,
}


def default_folder() -> Path:
    """Return the cache folder: within the user's, so that no files are added to projects."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "deconv-lint"


class Cache:
    """Results by content; if the cache cannot be used, the file is checked again."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._stamp = code_stamp()

    def key(
        self,
        data: bytes,
        options: CheckOptions,
        weights: str | None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> str:
        """Return the key of a file's bytes; it includes the .bin's name, which messages have."""
        name = "" if weights is None else os.path.basename(weights)
        rest = options._replace(rules=frozenset(), hidden=frozenset())
        chosen = [repr(rest), *sorted(options.rules), "hidden", *sorted(options.hidden)]
        settings = f"{' '.join(chosen)} {limits}"
        digest = hashlib.sha256(utf_8(f"{FORMAT} {self._stamp} {name} {settings}\0"))
        digest.update(data)
        return digest.hexdigest()

    def load(self, key: str, file: str, weights: str | None) -> FileResult | None:
        """Return the result for these bytes and this .bin; None if it is not cached."""
        try:
            entry = json.loads(_checked(_read_own(self._path(key)), key))
            if not _same_weights(entry["weights"], weights):
                return None
            return _decode(entry, file)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, WeightsError):
            return None
        except RecursionError:  # arrays nested more deeply than Python's parser goes
            return None

    def store(self, key: str, result: FileResult, weights: str | None) -> None:
        """Store a result."""
        path = self._path(key)
        with contextlib.suppress(OSError, WeightsError):
            entry = _encode(result)
            entry["weights"] = _weights_state(result, weights)
            text = json.dumps(entry).encode()
            if len(text) > MAX_ENTRY_BYTES // 2:
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path, durable=False) as stream:
                stream.write(_HEAD % _hash(key, text) + text + _END)

    def prune(self) -> None:
        """Remove entries that have not been written for a month."""
        oldest = time.time() - MAX_AGE_SECONDS
        with contextlib.suppress(OSError):
            for path in self.folder.glob("??/*.json"):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"


def _read_own(path: Path) -> bytes:
    """Return the bytes of an entry that this user wrote; other files are an OSError."""
    with open_regular(path) as stream:
        state = os.fstat(stream.fileno())
        if hasattr(os, "geteuid") and state.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        if state.st_size > MAX_ENTRY_BYTES:
            raise OSError(f"{path} has {state.st_size} bytes")
        return stream.read(state.st_size)


def _hash(key: str, text: bytes) -> bytes:
    """Return the hash that binds the contents of an entry to its key."""
    return hashlib.sha256(key.encode() + b"\0" + text).hexdigest().encode()


def _checked(data: bytes, key: str) -> bytes:
    """Return the contents of an entry; a ValueError if they are not those stored for the key."""
    start = len(_HEAD % _hash("", b""))
    text = data[start : -len(_END)]
    if data != _HEAD % _hash(key, text) + text + _END:
        raise ValueError("not an entry for this key")
    return text


@functools.cache
def code_stamp() -> str:
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
        "hash": fingerprint(RecordedWeights(weights), result.reads),
    }


def _same_weights(state: dict[str, Any] | None, weights: str | None) -> bool:
    if state is None:
        return weights is None or not os.path.exists(weights)
    if weights is None:
        return False
    reads = [(_count(offset), _count(size)) for offset, size in state["reads"]]
    found: bool = fingerprint(RecordedWeights(weights), reads) == state["hash"]
    return found


def _encode(result: FileResult) -> dict[str, Any]:
    return {
        "findings": [_fields(finding) for finding in result.findings],
        "layers": result.layers,
        "passed_over": result.passed_over,
        "suppressed": result.suppressed,
        "hidden": [(severity.value, count) for severity, count in result.hidden],
        "verdicts": result.verdicts,
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
    for name in _NUMBERS:
        _count(fields.get(name, 0))
    for name in _TEXTS:
        _typed(fields.get(name, ""), str)
    for name in ("expected", "actual"):
        _typed(fields.get(name, ""), str, int, float)
    if RULES[fields["code"]].name != fields["rule"]:
        raise ValueError("the rule has another name")
    safe, hint = fields.pop("fix", None), fields.pop("hint", None)
    severity = Severity(fields.pop("severity"))
    fix = None if safe is None else Fix(safe=_typed(safe, bool))
    advice = None if hint is None else _advice(hint)
    location = fields.pop("location")
    for name, value in location.items():
        _typed(value, _PLACES[name])
    place = GraphLocation(**location)
    return Finding(file=file, location=place, hint=advice, fix=fix, severity=severity, **fields)


def _typed(value: Any, *types: type) -> Any:
    """Return a value of an entry; a ValueError if it has another type."""
    if type(value) not in types:
        raise ValueError(f"expected {types}, found {value!r}")
    return value


def _count(value: Any) -> int:
    """Return a number of an entry that is not negative."""
    number: int = _typed(value, int)
    if number < 0:
        raise ValueError("expected a number that is not negative")
    return number


def _parts(advice: Advice) -> list[Any]:
    """Return the name and the values of a hint, some of which may be hints."""
    values = (_parts(v) if isinstance(v, Advice) else plain(v) for v in advice.values)
    return [advice.member.name, *values]


def _advice(parts: list[Any]) -> Advice:
    values = (_advice(v) if isinstance(v, list) else _typed(v, *_PLAIN) for v in parts[1:])
    advice = Hint[parts[0]](*values)
    _typed(advice.command, str)  # raises if the values do not fit the wording
    return advice


def _decode(entry: dict[str, Any], file: str) -> FileResult:
    lines = {int(number): _typed(text, str) for number, text in entry["lines"].items()}
    return FileResult(
        file=file,
        findings=[_finding(fields, file) for fields in entry["findings"]],
        layers=_count(entry["layers"]),
        passed_over=tuple(
            (_typed(type_name, str), _count(n)) for type_name, n in entry["passed_over"]
        ),
        suppressed=_count(entry["suppressed"]),
        hidden=tuple((Severity(severity), _count(n)) for severity, n in entry["hidden"]),
        lines=lines,
        verdicts=tuple(map(_verdict, entry["verdicts"])),
    )


def _verdict(entry: list[Any]) -> TargetVerdict:
    from deconv_ir.linter.targets.verdict import Because, TargetVerdict

    target, word, because, words = entry
    return TargetVerdict(
        _typed(target, str),
        _typed(word, str),
        tuple(_because(Because(*fields)) for fields in because),
        tuple((_typed(release, str), _typed(said, str)) for release, said in words),
    )


def _because(found: Because) -> Because:
    for text in (found.message, found.layer or "", *found.of):
        _typed(text, str)
    for number in (found.line or 0, found.more, int(_typed(found.blocks, bool))):
        _count(number)
    return found._replace(of=tuple(found.of))
