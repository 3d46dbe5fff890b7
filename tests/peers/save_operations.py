"""Save the IRs that the study of the linter mutates: ``python -m peers.save_operations`` in tests.

There is one for each of the newer operations, as OpenVINO writes it.
"""

from __future__ import annotations

from pathlib import Path

from .operations.harness import ov
from .test_control_flow import variable
from .test_converted import FIRST, NEW

FOLDER = Path(__file__).parents[1] / "fixtures/operations"


def main() -> None:
    models = {name: FIRST[name].model() for name in NEW}
    models |= {
        f"ReadValue-{version}": variable("f32", False, version=version)[0] for version in (3, 6)
    }
    for name, model in models.items():
        ov.save_model(model, FOLDER / f"{name}.xml", compress_to_fp16=False)


if __name__ == "__main__":
    main()
