"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Only dependencies that users install count: development tools need not be compatible with each other
at their lowest versions.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    """Print the constraints, one per line."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = project["optional-dependencies"]
    given = {*project["dependencies"], *extras["diagrams"], *extras["samples"]}
    for requirement in sorted(given):
        if found := re.match(r"([\w-]+)>=([\w.]+)", requirement):
            print(f"{found[1]}=={found[2]}")


if __name__ == "__main__":
    main()
