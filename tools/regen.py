"""Write the generated files, or check that they are up to date (--check)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Script -> the files that it writes.
GENERATORS: dict[str, tuple[str, ...]] = {
    "tools/regen_kernel_interface.py": ("deconv_ir/kernels/runtime/interface.py",),
    "tools/regen_ops_index.py": ("deconv_ir/ops/_index.py",),
    "tools/regen_operations_doc.py": ("docs/operations.md", "docs/onednn.md"),
    "tools/regen_lint_docs.py": ("docs/rules.md",),
    "tools/regen_lint_settings.py": ("docs/linting.md", "docs/deconv-lint.schema.json"),
    "samples/upsample/make.py": (
        "samples/upsample/bilinear_x2.xml",
        "samples/upsample/bilinear_x2.bin",
    ),
    "samples/onednn/make.py": ("samples/onednn",),
    "tools/regen_spec_samples.py": ("samples/spec",),
}


def snapshot(names: tuple[str, ...]) -> dict[str, bytes]:
    """Read the generated files; a folder stands for all files in it."""
    files: dict[str, bytes] = {}
    for name in names:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                files[str(file.relative_to(ROOT))] = file.read_bytes()
    return files


def main() -> None:
    """Run each generator; with --check, exit with 1 if a generator changed a file."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for script, names in GENERATORS.items():
        before = snapshot(names)
        subprocess.run([sys.executable, str(ROOT / script)], check=True)
        after = snapshot(names)
        stale += [n for n in before.keys() | after.keys() if before.get(n) != after.get(n)]
    if check and stale:
        sys.exit(f"not up to date, now rewritten: {', '.join(sorted(stale))}")


if __name__ == "__main__":
    main()
