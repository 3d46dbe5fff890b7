"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

Those of the dependencies that users install: tools for development need not go together at
their lowest.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    """Print them, one a line."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = project["optional-dependencies"]
    given = {*project["dependencies"], *extras["diagrams"], *extras["samples"]}
    for requirement in sorted(given):
        if found := re.match(r"([\w-]+)>=([\w.]+)", requirement):
            print(f"{found[1]}=={found[2]}")


if __name__ == "__main__":
    main()
