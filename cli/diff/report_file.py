"""A report of a difference to attach to an issue: a .zip file with all that repeats it."""

from __future__ import annotations

import json
import platform
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from deconv_ir.compare.cut import cut
from deconv_ir.compare.diff import ModelDifference
from deconv_ir.compare.sides import import_runtime
from deconv_ir.compare.smallest import OTHER, PART, Compared, SmallPart, find_smallest, run_part
from deconv_ir.compare.verdict import show_pair
from deconv_ir.errors import SettingError, one_line
from deconv_ir.formats import npy
from deconv_ir.formats.dumps import TensorFile, name_files, write_manifest
from deconv_ir.formats.files import output_errors, replace_file
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.version import __version__

from .repeating import SCRIPTS

TEXT = "issue.md"


class BugReport(NamedTuple):
    """The result of `write_report`.

    Attributes
    ----------
    layers : int
        Number of layers of the part, without constants.
    size : int
        Bytes of the file.
    sentence : str
        The verdict on the part.
    stripped : bool
        Whether noise replaces the weights.
    shows : bool
        Whether the part of the report shows the difference.
    kept : tuple of str
        Constants that were kept among stripped weights.
    """

    layers: int
    size: int
    sentence: str
    stripped: bool
    shows: bool
    kept: tuple[str, ...] = ()


def write_report(
    compared: Compared, whole: ModelDifference, path: Path, strip_weights: int | None = None
) -> BugReport:
    """Write the smallest part that shows a difference, with all that repeats it.

    Equal arguments give equal bytes on one machine.

    Parameters
    ----------
    compared : Compared
        What was compared.
    whole : ModelDifference
        The comparison, with a verdict.
    path : Path
        The .zip file.
    strip_weights : int, optional
        Seed of noise that replaces the weights of the part, as in `cut`.

    Raises
    ------
    SettingError
        `strip_weights` with an ONNX model, or with the tensors of another tool.
    InputError
        No part shows the difference.
    OutputError
        The file cannot be written.
    """
    if strip_weights is not None and (compared.dumps or compared.runtime == "onnxruntime"):
        what = "the tensors of a folder" if compared.dumps else "an ONNX model"
        raise SettingError(f"weights cannot be stripped: {what} would not change with them")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        part = find_smallest(compared, whole, folder)
        kept: tuple[str, ...] = ()
        shows = True
        if strip_weights is not None:
            kept = _strip(folder, strip_weights)
            part = run_part(compared, folder, part.inputs, part.layers)
            shows = part.shows(whole)
        _Writer(compared, part, folder).write(strip_weights is not None, shows)
        size = _pack(folder, path)
    assert part.found.verdict is not None
    sentence = part.found.verdict.sentence
    return BugReport(part.layers, size, sentence, strip_weights is not None, shows, kept)


def _strip(folder: Path, seed: int) -> tuple[str, ...]:
    """Replace the weights of the parts by noise."""
    kept: tuple[str, ...] = ()
    for name in (PART, OTHER[""]):
        if (folder / name).is_file():
            stripped = folder / name.replace(".xml", "-stripped.xml")
            kept += cut(folder / name, stripped, strip_weights=seed).kept
            for suffix in (".xml", ".bin"):
                if stripped.with_suffix(suffix).exists():
                    stripped.with_suffix(suffix).replace((folder / name).with_suffix(suffix))
    return tuple(dict.fromkeys(kept))


def _pack(folder: Path, path: Path) -> int:
    """Write the files of a folder as a .zip file, whole or not at all; return its size."""
    import zipfile

    with output_errors(path, "the report"), replace_file(path) as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(p for p in folder.rglob("*") if p.is_file()):
                # Without an explicit time, an entry is dated 1980.
                entry = zipfile.ZipInfo(file.relative_to(folder).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                with (
                    archive.open(entry, "w", force_zip64=True) as target,
                    file.open("rb") as source,
                ):
                    while block := source.read(1 << 20):
                        target.write(block)
        return stream.tell()


class _Writer:
    """Writes the files beside the part: arrays, scripts, and the text."""

    def __init__(self, compared: Compared, part: SmallPart, folder: Path) -> None:
        self.compared = compared
        self.part = part
        self.folder = folder
        assert part.found.verdict is not None
        self.verdict = part.found.verdict
        self.sides = tuple(one_line(side) for side in self.verdict.sides)
        self.second = (folder / OTHER.get(compared.runtime, "")).is_file()
        self.inputs: dict[str, str] = {}

    def write(self, stripped: bool, shows: bool) -> None:
        """Write all files."""
        names = self._write_arrays("inputs", self.part.inputs)
        self.inputs = {name: f"inputs/{file}" for name, file in names.items()}
        for side, array in zip((*self.sides, "exact"), self.part.results, strict=True):
            self._write_arrays(f"outputs/{side}", {self.part.output: array})
        runtime = self.compared.runtime
        if runtime:
            files = json.dumps([*self.inputs.values()])
            settings = json.dumps(dict(self.compared.settings), sort_keys=True)
            model = OTHER["onnxruntime"] if runtime == "onnxruntime" else PART
            if runtime == "openvino" and self.second:
                model = OTHER[""]
            script = SCRIPTS[runtime]
            for place, value in (("FILES", files), ("SETTINGS", settings), ("MODEL", model)):
                script = script.replace(f"{{{place}}}", value)
            (self.folder / f"run_{runtime}.py").write_text(script, encoding="utf-8")
        lines = "\n".join(self._text(stripped, shows))
        (self.folder / TEXT).write_text(lines + "\n", encoding="utf-8")

    def _write_arrays(self, name: str, arrays: Mapping[str, Array]) -> dict[str, str]:
        """Write a folder of arrays; return their files by name."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        entries: list[TensorFile] = name_files(arrays)
        for entry in entries:
            npy.write(arrays[entry.name], folder / entry.file)
        if not all(entry.is_plain for entry in entries):
            write_manifest(folder, entries)
        return {entry.name: entry.file for entry in entries}

    def commands(self) -> Iterator[tuple[str, str]]:
        """Iterate over the commands: what they run, and the command."""
        compared, part = self.compared, self.part
        a, b = (_semantics(one) for one in compared.semantics)
        direct = ["--accuracy", "direct"] if compared.accuracy is Accuracy.DIRECT else []
        given = [w for n, f in self.inputs.items() for w in ("--input", f"{n}={f}")]
        other = zip(part.names_of_b, self.inputs.values(), strict=True)
        given_b = [word for name, file in other for word in ("--input", f"{name}={file}")]
        if len(compared.dumps) < 2:
            run = ["deconv-run", PART, *given, "--output", "a.npy", *a, *direct]
            yield self.sides[0], shlex.join(run)
        if compared.runtime:
            yield compared.runtime, f"python run_{compared.runtime}.py"
        elif not compared.dumps:
            model = OTHER[""] if self.second else PART
            run = ["deconv-run", model, *given_b, "--output", "b.npy", *b]
            yield self.sides[1], shlex.join(run)
        both = ["deconv-diff", PART]
        if compared.dumps:
            for side in self.sides[2 - len(compared.dumps) :]:
                both += ["--against", f"outputs/{side}"]
        elif compared.runtime == "onnxruntime":
            both += [OTHER["onnxruntime"], "--against", "onnxruntime"]
        elif compared.runtime:
            both += [OTHER[""]] * self.second + ["--against", "openvino"]
            for name, value in sorted(compared.settings.items()):
                both += ["--setting", f"{name}={value}"]
        else:
            both.append(OTHER[""] if self.second else PART)
            if compared.semantics[0] is not compared.semantics[1]:
                both += ["--other-semantics", compared.semantics[1].value]
        both += [*given, "--verdict", "always", *a, *direct]
        if compared.rtol != 1e-4:
            both += ["--rtol", f"{compared.rtol:g}"]
        if compared.atol:
            both += ["--atol", f"{compared.atol:g}"]
        yield "both, with the verdict", shlex.join(both)

    def _text(self, stripped: bool, shows: bool) -> Iterator[str]:
        layers = f"{self.part.layers} layer{'s' * (self.part.layers != 1)}"
        yield f"# {one_line(self.verdict.sentence)}"
        yield ""
        yield f"`{PART}` has {layers}, cut out of a larger network."
        if stripped:
            still = "is still there" if shows else "is **not** there any more"
            yield f"Noise replaces its weights: the fault {still} (recomputed)."
        for note in self.verdict.notes:
            yield one_line(note)
        yield ""
        yield f"Output `{one_line(self.part.output)}`:"
        yield ""
        yield from self._table()
        yield ""
        yield "To repeat it, in the folder of this file (`pip install deconv-ir` for the commands):"
        yield ""
        for what, command in self.commands():
            yield f"    # {what}"
            yield f"    {command}"
        yield ""
        yield (
            "`inputs/` and `outputs/` have the arrays; `outputs/exact` was computed in f64 from the"
            " same inputs and weights."
        )
        yield ""
        yield "| | |"
        yield "|---|---|"
        for name, value in versions(self.compared.runtime):
            yield f"| {name} | {value} |"
        for name, value in sorted(self.compared.settings.items()):
            yield f"| {one_line(name)} | {one_line(value)} |"

    def _table(self) -> Iterator[str]:
        """Iterate over a table of the element with the largest error, and of the errors."""
        import numpy as np

        *both, exact = self.part.results
        yield "| | element | value | exact | largest error, of the scale |"
        yield "|---|---|---|---|---|"
        for side, array in zip(self.sides, both, strict=True):
            if array.shape != exact.shape:
                yield f"| {side} | | shape {list(array.shape)} | shape {list(exact.shape)} | |"
                continue
            x, y = array.astype(np.float64), exact.astype(np.float64)
            with np.errstate(all="ignore"):
                error = np.abs(x - y)
            error[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
            error[np.isnan(error)] = np.inf
            at = np.unravel_index(int(error.argmax()), error.shape) if error.size else ()
            scale = float(np.abs(y[np.isfinite(y)]).max(initial=0))
            value, other = show_pair(array[at].item(), exact[at].item()) if error.size else ("", "")
            share = float(error.max(initial=0)) / scale if scale else float(error.max(initial=0))
            place = [int(k) for k in at]
            yield f"| {side} | {place} | {value} | {other} | {share:.2g} |"


def _semantics(semantics: Semantics) -> list[str]:
    return [] if semantics is Semantics.SPEC else ["--semantics", semantics.value]


def versions(runtime: str) -> Iterator[tuple[str, str]]:
    """Iterate over names and versions of the software and the processor."""
    import numpy as np

    from deconv_ir.kernels.runtime.extension import compiled_module

    yield "deconv-ir", __version__
    if runtime:
        module = import_runtime(runtime)
        found = getattr(module, "__version__", "")
        yield runtime, str(found)
    yield "NumPy, Python", f"{np.__version__}, {platform.python_version()}"
    yield "system", f"{platform.system()} {platform.machine()}"
    compiled = compiled_module()
    best = "" if compiled is None else f", {compiled.isas()[-1]}"
    yield "processor", f"{_processor()}{best}"


def _processor() -> str:
    """Return the name of the processor."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return one_line(value.strip())
    except OSError:
        pass
    return platform.processor() or "unknown"
