"""Known findings: those in a baseline pass, new ones fail."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from deconv_ir.errors import DeconvError
from deconv_ir.formats.files import read_regular, replace_file
from deconv_ir.ir.findings import Finding

MAX_BYTES: Final = 64 << 20
"""Size beyond which a baseline is refused."""

_LINE: Final = re.compile(r"line \d+")


class Baseline:
    """Fingerprints of known findings, with how often each occurs.

    A fingerprint has no line, so that findings stay known when lines move.

    Parameters
    ----------
    file : Path
    counts : Counter
    """

    def __init__(self, file: Path, counts: Counter[str] | None = None) -> None:
        self.file = file
        self.counts: Counter[str] = counts if counts is not None else Counter()

    @classmethod
    def read(cls, file: Path) -> Baseline:
        """Read a baseline.

        Raises
        ------
        DeconvError
            It cannot be read, or is none.
        """
        try:
            content = json.loads(read_regular(file, MAX_BYTES))
            counts = Counter({str(k): int(v) for k, v in content["findings"].items()})
        except OSError as error:
            raise DeconvError(
                f"cannot read the baseline: {error.strerror}",
                file=str(file),
                hint="a baseline is written first",
            ) from error
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise DeconvError("this is no baseline of deconv-lint", file=str(file)) from error
        return cls(file, counts)

    def new(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings that are not known."""
        left = self.counts
        fresh = []
        for finding in findings:
            key = self.fingerprint(finding)
            if left[key] > 0:
                left[key] -= 1
            else:
                fresh.append(finding)
        return fresh

    def write(self, findings: Iterable[Finding]) -> int:
        """Write a baseline of these findings, and return how many they are."""
        counts = Counter(map(self.fingerprint, findings))
        content = {"version": 1, "findings": dict(sorted(counts.items()))}
        with replace_file(self.file) as stream:
            stream.write(json.dumps(content, indent=1).encode() + b"\n")
        return sum(counts.values())

    def fingerprint(self, finding: Finding) -> str:
        """Return what stays the same of a finding while the file is edited elsewhere."""
        path = finding.file or ""
        try:
            path = Path(os.path.relpath(path, self.file.absolute().parent)).as_posix()
        except ValueError:  # another drive
            path = Path(path).as_posix()
        text = "\0".join((finding.layer or "", _LINE.sub("line", finding.message)))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{path}:{finding.code}:{digest}"
