"""Write kernels/runtime/interface.py: the functions that pack arguments for C, from interface.h."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "deconv_ir" / "kernels"
HEADER = KERNELS / "_native" / "interface.h"

HEAD = '''"""What Python and C have to agree on.

Generated from _native/interface.h by tools/regen_kernel_interface.py; do not edit.
"""

# ruff: noqa: D103

from __future__ import annotations

from struct import Struct

INTERFACE = 0x{digest}
"""The hash of the header."""
'''
Fields = list[tuple[str, str]]
"""Kind (I, D or V) and name of each field."""


def fields_of(body: str, macros: dict[str, str]) -> Fields:
    """Return the fields in the body of a macro, including those of macros that it uses."""
    found: Fields = []
    for macro, letter, name in re.findall(r"(\w+)\(I, D, V\)|\b([IDV])\((\w+)\)", body):
        found += fields_of(macros[macro], macros) if macro else [(letter, name)]
    return found


def function_of(table: str, fields: Fields, axes: int) -> str:
    """Return the function that packs a table."""
    letters = {"I": "q", "D": "d", "V": "q" * axes}
    types = {"I": "int", "D": "float", "V": "tuple[int, ...]"}
    parameters = ", ".join(f"{name}: {types[letter]}" for letter, name in fields)
    numbers = {
        name: ", ".join(f"{name}_{axis}" for axis in range(axes)) if letter == "V" else name
        for letter, name in fields
    }
    # A vector of another length must not shift the fields after it.
    unpacked = "".join(
        f"    {numbers[name]} = {name}\n" for letter, name in fields if letter == "V"
    )
    layout = "".join(letters[letter] for letter, _ in fields)
    return (
        f'_{table} = Struct("={layout}").pack\n\n\n'
        f"def {table}_fields(*, {parameters}) -> bytes:\n{unpacked}"
        f"    return _{table}({', '.join(numbers.values())})\n"
    )


def main() -> None:
    """Write the module."""
    data = HEADER.read_bytes()
    text = re.sub(r"/\*.*?\*/", "", data.decode("ascii"), flags=re.DOTALL).replace("\\\n", " ")
    macros = dict(re.findall(r"#define (\w+_FIELDS)\(I, D, V\)(.*)", text))
    (axes,) = re.findall(r"#define AXES (\d+)", text)
    (tables,) = re.findall(r"#define TABLES\(T\)(.*)", text)
    parts = [HEAD.format(digest=hashlib.sha256(data).hexdigest()[:7]), f"AXES = {axes}\n"]
    for members in re.findall(r"enum \w+ \{([^}]*)\}", text):
        names = [name.strip() for name in members.split(",")]
        parts.append(f"{', '.join(names)} = range({len(names)})\n")
    for table, macro in re.findall(r"\bT\((\w+), (\w+)\)", tables):
        parts.append("\n" + function_of(table, fields_of(macros[macro], macros), int(axes)))
    path = KERNELS / "runtime" / "interface.py"
    ruff = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", str(path)]
    done = subprocess.run(ruff, input="\n".join(parts), text=True, capture_output=True, check=True)
    path.write_text(done.stdout, "ascii")


if __name__ == "__main__":
    main()
