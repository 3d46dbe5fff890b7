"""The Python code in README.md is well typed under mypy's strict mode."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def check(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Let mypy check code as that of a user who has installed the package."""
    file = folder / "example.py"
    file.write_text(code)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_python_of_the_readme_is_typed(tmp_path: Path) -> None:
    assert any("model.run" in block for block in BLOCKS)
    found = check("\n\n".join(BLOCKS), tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr


def test_types_of_the_library_are_seen(tmp_path: Path) -> None:
    """The check must be able to fail: code that the types forbid is rejected."""
    code = (
        "import deconv_ir\n"
        "from deconv_ir.operations import ConvolutionBackpropData\n"
        'model = deconv_ir.load("model.xml")\n'
        'reveal_type(model.graph.operation("up", ConvolutionBackpropData).strides)\n'
        "model.run(3, outputs=4)\n"
        'model.graph.find("up").operation\n'
    )
    found = check(code, tmp_path)
    assert found.returncode == 1
    assert 'Revealed type is "tuple[int, ...] | None"' in found.stdout.replace("builtins.", "")
    assert 'incompatible type "int"' in found.stdout
    assert 'has no attribute "operation"' in found.stdout
