"""Write samples/spec/NAME/ from each samples/spec/NAME.toml."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deconv_ir.spec_examples.generate import generate  # noqa: E402
from deconv_ir.spec_examples.specfile import read_spec  # noqa: E402


def main() -> None:
    """Make all samples before writing: a mistake in one file leaves all folders unchanged."""
    specs = sorted((ROOT / "samples" / "spec").glob("*.toml"))
    made = {spec: generate(read_spec(spec), diagrams=True) for spec in specs}
    for spec, files in made.items():
        folder = spec.with_suffix("")
        shutil.rmtree(folder, ignore_errors=True)
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


if __name__ == "__main__":
    main()
