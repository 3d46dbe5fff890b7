"""Known findings: those in a baseline are accepted, new ones are errors."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from deconv_ir.errors import DeconvError, utf_8
from deconv_ir.findings import Finding
from deconv_ir.formats.files import output_errors, read_input, replace_file
from deconv_ir.hints import Hint

MAX_BYTES: Final = 64 << 20
"""Size above which a baseline is rejected."""

_LINE: Final = re.compile(r"line \d+")
_NO_BASELINE: Final = (
    *(ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError),
)


class Baseline:
    """Fingerprints of known findings, with the number of occurrences.

    A fingerprint has no line, so that findings stay known when lines move.  Its path is relative to
    `root`: the folder of the settings file, or else that of the baseline.
    """

    def __init__(
        self, file: Path, root: Path | None = None, counts: Counter[str] | None = None
    ) -> None:
        self.file = file
        self.root = (file.parent if root is None else root).absolute()
        self.counts: Counter[str] = counts if counts is not None else Counter()

    @classmethod
    def read(cls, file: Path, root: Path | None = None) -> Baseline:
        """Read a baseline.

        Raises
        ------
        DeconvError
            The file cannot be read, or is not a baseline.
        """
        data = read_input(file, MAX_BYTES, "the baseline", hint=Hint.BASELINE_IS_WRITTEN())
        try:
            content = json.loads(data)
            counts = Counter({str(k): int(v) for k, v in content["findings"].items()})
        except _NO_BASELINE as error:
            raise DeconvError("not a baseline of deconv-lint", file=str(file)) from error
        return cls(file, root, counts)

    def new(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that are not in the baseline."""
        left = self.counts
        fresh = []
        for finding in findings:
            keys = self.fingerprint(finding), self.fingerprint_of_message(finding)
            key = next((key for key in keys if left[key] > 0), None)
            if key is None:
                fresh.append(finding)
            else:
                left[key] -= 1
        return fresh

    def update(self, checked: Mapping[str, Collection[str]], findings: Iterable[Finding]) -> None:
        """Replace the entries of some files by these findings, and write the baseline.

        `checked` has the codes of the rules with which each file was checked.  Entries of other
        rules are kept, and those of other files, unless the files no longer exist.
        """
        rules = {self._path(file): codes for file, codes in checked.items()}
        kept: Counter[str] = Counter()
        for key, count in self.counts.items():
            path, _, rest = key.rpartition(":")[0].rpartition(":")
            run = rules.get(path)
            if (self.root / path).exists() if run is None else rest not in run:
                kept[key] = count
        self.counts = kept + Counter(map(self.fingerprint, findings))
        content = {"version": 1, "findings": dict(sorted(self.counts.items()))}
        with output_errors(self.file, "the baseline"), replace_file(self.file) as stream:
            stream.write(json.dumps(content, indent=1).encode() + b"\n")

    def fingerprint(self, finding: Finding) -> str:
        """Return the key of a finding, which does not change when the file is edited elsewhere."""
        return self._key(finding, finding.identity.partition("\0")[2])

    def fingerprint_of_message(self, finding: Finding) -> str:
        """Return the key of a finding in baselines of version 0.2.0 and before."""
        message = _LINE.sub("line", finding.message)
        return self._key(finding, "\0".join((finding.layer or "", message)))

    def _key(self, finding: Finding, text: str) -> str:
        digest = hashlib.sha256(utf_8(text)).hexdigest()[:16]
        return f"{self._path(finding.file or '')}:{finding.code}:{digest}"

    def _path(self, file: str) -> str:
        try:
            return Path(os.path.relpath(file or os.curdir, self.root)).as_posix()
        except ValueError:  # another drive
            return Path(file).as_posix()
