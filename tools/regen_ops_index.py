"""Write deconv_ir/ops/_index.py: which file holds which operation type."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "deconv_ir" / "ops" / "_index.py"


def main() -> None:
    """Import every file in ops/ and list what each registers."""
    if not TARGET.exists():
        TARGET.write_text("MODULES: dict[str, str] = {}\n")
    import deconv_ir.ops
    from deconv_ir.ops.base import REGISTRY

    modules: dict[str, str] = {}
    for info in pkgutil.walk_packages(deconv_ir.ops.__path__, "deconv_ir.ops."):
        importlib.import_module(info.name)
    for kind, versions in REGISTRY.items():
        files = {cls.__module__.removeprefix("deconv_ir.ops.") for cls in versions.values()}
        if len(files) > 1:
            sys.exit(f"{kind} is registered in more than one file: {', '.join(sorted(files))}")
        modules[kind] = files.pop()
    lines = [
        '"""Which file holds which operation type; written by `make regen`."""',
        "",
        "MODULES: dict[str, str] = {",
        *(f'    "{kind}": "{module}",' for kind, module in sorted(modules.items())),
        "}",
        "",
    ]
    TARGET.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
