"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    """Print them, one a line."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = project["optional-dependencies"].values()
    given = {*project["dependencies"], *(one for extra in extras for one in extra)}
    for requirement in sorted(given):
        if found := re.match(r"([\w-]+)>=([\w.]+)", requirement):
            print(f"{found[1]}=={found[2]}")


if __name__ == "__main__":
    main()
