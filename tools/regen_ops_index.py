"""Write deconv_ir/ops/_index.py: which file holds which operation type.

The index saves each command 40 ms of imports (bench/startup.py).
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "deconv_ir" / "ops" / "_index.py"


def main() -> None:
    """Import every file in ops/ and list the operations that each registers."""
    if not TARGET.exists():
        TARGET.write_text("MODULES: dict[str, str] = {}\n")
    import deconv_ir.ops
    from deconv_ir.ops.base import REGISTRY

    types: dict[str, list[str]] = {}
    for info in pkgutil.walk_packages(deconv_ir.ops.__path__, "deconv_ir.ops."):
        importlib.import_module(info.name)
    for type_name, versions in sorted(REGISTRY.items()):
        files = {cls.__module__.removeprefix("deconv_ir.ops.") for cls in versions.values()}
        if len(files) > 1:
            sys.exit(f"{type_name} is registered in more than one file: {', '.join(sorted(files))}")
        types.setdefault(files.pop(), []).append(type_name)
    lines = [
        '"""Index of the files of operation types; written by `make regen`."""',
        "",
        '_TYPES = """',
    ]
    for module, kinds in sorted(types.items()):
        lines += textwrap.wrap(f"{module}: {' '.join(kinds)}", 96, subsequent_indent="    ")
    lines += [
        '"""',
        "",
        "MODULES: dict[str, str] = {}",
        "for _word in _TYPES.split():",
        '    if _word.endswith(":"):',
        "        _module = _word[:-1]",
        "    else:",
        "        MODULES[_word] = _module",
        "",
    ]
    TARGET.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
