"""Read hostile .npy and .npz files with the reader of deconv-run; see `runner`.

Each begins as a valid array.  Then fields of its header get a wrong kind or a value out of range,
go missing, are misspelt or reordered, and the version, the header length, the padding or the number
of bytes behind it changes.  Every fourth is an entry of a .npz file, which may be damaged too.
The reader must return the same array as NumPy.

    python tests/hostile/headers.py --count 12000 --seed 0

prints the figures of docs/reliability.md.
"""

from __future__ import annotations

import io
import math
import random
import re
import sys
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from hostile.runner import Maker, main, require_one_line

MAGIC = b"\x93NUMPY"
ELEMENTS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8")
DESCRIPTIONS = (
    *("'|b1'", "'?'", "'<f16'", "'>c16'", "'|S5'", "'<U3'", "'|V7'", "'|V0'", "'<M8[s]'"),
    *("'<m8[25us]'", "'<M8[lots]'", "'|O'", "'O8'", "'object'", "'float32'", "'bfloat16'"),
    *("'int'", "''", "'<'", "'f3'", "'<i16'", "'=f4'", "'|f4'", "'!f4'", "'<U99999999999'"),
    *("'<f4,<i4'", "'(2,)<f4'", "'(2,3)<i8,<f4'", "'3f4'", "('<f4', (2,))", "('<f4', 2)"),
    *("('|O', (2,))", "[('a', '<f4')]", "[('a', '<f4'), ('a', '<f4')]", "[('', '|V0')]"),
    *("[('a', '|O')]", "[('a', [('b', '<f4', (2, 2))])]", "[('a', '<f4', (-1,))]", "[]", "()"),
    *("{'names': ['a'], 'formats': ['<f4'], 'offsets': [-8]}", "{}", "None", "True", "4"),
    *("-1", "1.5", "b'<f4'", "['<f4']", "[(1, 2)]", "'\\x00'", "'\\ud800'", "[" * 60 + "]" * 60),
    *("'<f4' + '4'", "float", "lambda: 0", "'<f-4'", "'<f4\\n'", "1j", "...", "{'<f4'}"),
)
ORDERS = ("True", "False", "0", "1", "None", "'False'", "-1", "2.5", "[]", "(False,)", "not True")
EXTENTS = (
    *("True", "False", "-1", "-0", "1.0", "2.5", "nan", "1e3", "'2'", "b'2'", "None", "(2,)"),
    *("[2]", "()", "1j", "2L", "02", "0x2", "1_0", "+2", "--2", "2**40", "...", "{2: 2}"),
    *(str(n) for n in (2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30)),
    *(str(-(2**63)), "9" * 5000, "\u0662", "0"),
)
SHAPES = (
    *("()", "None", "3", "[2, 3]", "'(2,)'", "{2, 3}", "{}", "True", "2.5", "(2, 3", "2, 3"),
    *(f"({'1,' * 32})", f"({'1,' * 33})", f"({'1,' * 64})", f"({'1,' * 65})", "(0,) * 3", "(,)"),
    *(f"({'0,' * 64})", f"({'2,' * 40})", "(((2,),),)", "range(3)", "-1"),
)
LENGTHS = (0, 1, 15, 16, 117, 119, 65535)
VERSIONS = ((1, 0), (2, 0), (3, 0), (4, 0), (0, 0), (1, 1), (0, 1), (255, 255))
PADDINGS = ("\n", "", " ", " " * 15 + "\n", "\r\n", "\0\n", "\t\n", "# more\n", " " * 5000 + "\n")
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
NAMES = ("x.npy", "x.npy", "x.npy", "y.npy", "x", "x.npy.npy", "../x.npy", "", ".npy", "x.npy/")


class Headers(Maker):
    """Generate files from a seed and a number; equal seeds and numbers give equal files."""

    def files(self, seed: int, number: int) -> Mapping[str, bytes]:
        """Return a .npy file, or a .npz file."""
        draw = random.Random(f"headers/{seed}/{number}")
        if number % 4:
            return {"x.npy": _npy(draw)}
        return {"x.npz": _npz(draw)}

    def attempt(self, folder: Path, seed: int, number: int) -> str:
        """Read the file, and compare the array with NumPy's."""
        from deconv_ir import DeconvError
        from deconv_ir.formats import npy, npz

        path = folder / ("x.npy" if number % 4 else "x.npz")
        try:
            found = npy.read(str(path)) if number % 4 else npz.read(str(path), "x")
        except DeconvError as error:
            require_one_line(str(error))
            return f"refused: {_reason(str(error))}"
        _require_same(found, path)
        return "read"


def _require_same(found: Any, path: Path) -> None:
    """Require NumPy's array, which must not have more bytes than the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning about headers that Python 2 wrote
        expected = _by_numpy(path)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        raise AssertionError(f"{found.dtype}{found.shape}, NumPy {expected.dtype}{expected.shape}")
    if found.tobytes() != expected.tobytes():
        raise AssertionError("other elements than NumPy reads")


def _by_numpy(path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    # NumPy's own reader of archives finds entries by other rules.
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        named = [entry for entry in entries if entry.filename == "x.npy"] or entries
        with archive.open(named[-1]) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)


def _reason(message: str) -> str:
    """Return the constant beginning of a message."""
    found = re.sub(
        r"^.*?x\.np[yz](, array .*?)?: (not a .npy file: (invalid header: )?)?", "", message
    )
    return re.split(r"['\"\[(|\d:]|dtype", found)[0].strip()


def _npy(draw: random.Random) -> bytes:
    """Return an array file, valid except for disturbed fields."""
    element = draw.choice("<<>") + draw.choice(ELEMENTS)
    shape = tuple(draw.choice((0, 1, 1, 2, 3, 5)) for _ in range(draw.choice((0, 1, 2, 2, 3, 4))))
    data = draw.randbytes(math.prod(shape) * np.dtype(element).itemsize)
    fields = {
        "descr": f"'{element}'",
        "fortran_order": draw.choice(("False", "False", "True")),
        "shape": str(shape),
    }
    version = draw.choice(((1, 0), (1, 0), (2, 0)))
    padding, lie, prefix = "\n", None, MAGIC
    for _ in range(draw.choice((0, 1, 1, 1, 1, 2, 2, 3))):
        kind = draw.random()
        if kind < 0.55:
            _disturb_fields(draw, fields, shape)
        elif kind < 0.65:
            data = _disturb_data(draw, data)
        elif kind < 0.75:
            version = draw.choice(VERSIONS)
        elif kind < 0.85:
            padding = draw.choice(PADDINGS)
        elif kind < 0.95:
            lie = draw.choice((*LENGTHS, 2**31 - 1, 2**32 - 1))
        else:
            prefix = draw.choice((MAGIC[:3], b"", MAGIC.lower(), b"PK\3\4", MAGIC * 2))
    pairs = [f"{key if key[:1] in '(b0' else repr(key)}: {value}" for key, value in fields.items()]
    if draw.random() < 0.1:
        draw.shuffle(pairs)
    if draw.random() < 0.04:
        pairs += [draw.choice(pairs) if pairs else "'shape': (1,)"]
    text = draw.choice(("{{{}}}",) * 20 + ("{{{},}}", "[{}]", "{}", "{{{}", "({{{}}},)"))
    header = (text.format(", ".join(pairs)) + padding).encode(
        draw.choice(("latin1", "utf-8")), "replace"
    )
    width = 2 if version[0] == 1 else 4
    length = (len(header) if lie is None else lie) & ((1 << 8 * width) - 1)
    made = prefix + bytes(version) + length.to_bytes(width, "little") + header + data
    return _flipped(draw, made) if draw.random() < 0.05 else made


def _disturb_fields(draw: random.Random, fields: dict[str, str], shape: tuple[int, ...]) -> None:
    kind = draw.random()
    if kind < 0.3:
        fields["descr"] = draw.choice(DESCRIPTIONS)
    elif kind < 0.4:
        fields["fortran_order"] = draw.choice(ORDERS)
    elif kind < 0.7:
        extents = [str(extent) for extent in shape] or ["1"]
        extents[draw.randrange(len(extents))] = draw.choice(EXTENTS)
        fields["shape"] = f"({', '.join(extents)},)"
    elif kind < 0.85:
        fields["shape"] = draw.choice(SHAPES)
    elif fields:
        key = draw.choice(list(fields))
        value = fields.pop(key)
        if draw.random() < 0.6:
            fields[draw.choice((key.upper(), key + " ", "extra", "b'shape'", "0", "(1,)"))] = value


def _disturb_data(draw: random.Random, data: bytes) -> bytes:
    more = data + draw.randbytes(draw.choice((1, 8, 4096)))
    return draw.choice((b"", data[:-1], data[: len(data) // 2], more, data * 3))


def _npz(draw: random.Random) -> bytes:
    """Return an archive of one or more arrays, sometimes damaged."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        names = dict.fromkeys(draw.choice(NAMES) for _ in range(draw.choice((0, 1, 1, 1, 2, 3))))
        for name in names:
            # Most arrays are valid, so that the reader gets past the archive.
            archive.writestr(zipfile.ZipInfo(name), _npy(draw), draw.choice(COMPRESSIONS))
    data = stream.getvalue()
    kind = draw.random()
    if kind < 0.5:
        return data
    if kind < 0.6:
        return data[: draw.randrange(len(data))]
    if kind < 0.65:
        return draw.randbytes(30) + data
    return _flipped(draw, data)


def _flipped(draw: random.Random, data: bytes) -> bytes:
    """Change some bytes: most of them at the end, where an archive has its directory."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 5, 30))):
        tail = max(0, len(changed) - 100) if draw.random() < 0.5 else 0
        changed[draw.randrange(tail, len(changed))] = draw.choice((0, 1, 255, draw.randrange(256)))
    return bytes(changed)


if __name__ == "__main__":
    sys.exit(main(Headers, __doc__))
