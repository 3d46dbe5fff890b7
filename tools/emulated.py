"""Run Python on an emulated 64-bit ARM: ``python tools/emulated.py WHEEL -m pytest ...``.

The first run downloads a Python from Debian and wheels of the dependencies into out/arm64, without
changing the system.  Needs qemu-user, apt and dpkg.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / "out" / "arm64"
SYSTEM, SITE, PYTHON = HOME / "system", HOME / "site", HOME / "bin" / "python"
# This path becomes `sys.executable`, so that processes that Python starts are emulated as well.
STARTER = f"""#!/bin/sh
export PYTHONHOME={SYSTEM}/usr
exec qemu-aarch64 -L {SYSTEM} -0 {PYTHON} {SYSTEM}/usr/bin/python3.11 "$@"
"""
PACKAGES = [
    "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libstdc++6",
    "libgcc-s1", "zlib1g", "libexpat1", "libffi8", "libbz2-1.0", "liblzma5", "libssl3",
    "libuuid1", "libsqlite3-0",
]  # fmt: skip
TESTS = ["pytest", "pytest-xdist", "hypothesis", "pillow", "jsonschema"]


def main() -> None:
    """Download and install missing parts, install the wheel, and run Python."""
    wheel, arguments = sys.argv[1], sys.argv[2:]
    if shutil.which("qemu-aarch64") is None:
        sys.exit("qemu-aarch64 is not installed; on Debian: apt-get install qemu-user")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *TESTS]
    ready = HOME / "ready"
    if not ready.exists() or ready.read_text() != repr(wanted):
        shutil.rmtree(HOME, ignore_errors=True)
        fetch_python()
        install(wanted)
        PYTHON.parent.mkdir()
        PYTHON.write_text(STARTER)
        PYTHON.chmod(0o755)
        ready.write_text(repr(wanted))
    for stale in (*SITE.glob("deconv_*"), *SITE.glob("deconv-*")):
        shutil.rmtree(stale)
    install(["--no-deps", wheel])
    # Debian's Python comes without bytecode, and pip, which runs here, writes that of this Python.
    subprocess.run([PYTHON, "-m", "compileall", "-q", SYSTEM / "usr" / "lib", SITE], check=True)
    for script in (SITE / "bin").glob("deconv-*"):
        command = PYTHON.parent / script.name
        command.write_text(f"#!{PYTHON}\n" + script.read_text().partition("\n")[2])
        command.chmod(0o755)
    environment = dict(os.environ, PYTHONPATH=str(SITE), PYTHONDONTWRITEBYTECODE="1")
    # Safe path: the sources in the working directory must not hide the installed wheel.
    environment["PYTHONSAFEPATH"] = "1"
    sys.exit(subprocess.run([PYTHON, *arguments], env=environment).returncode)


def fetch_python() -> None:
    """Unpack Debian's Python for arm64, with its own package lists and cache."""
    archives = HOME / "archives"
    archives.mkdir(parents=True)
    lists = HOME / "lists"
    (lists / "partial").mkdir(parents=True)
    own = [
        f"-oDir::State::Lists={lists}",
        "-oAPT::Architectures=arm64",
        "-oAPT::Architecture=arm64",
    ]
    own += ["-oAPT::Sandbox::User=", f"-oDir::Cache={archives}", "-qq"]
    subprocess.run(["apt-get", *own, "update"], check=True)
    subprocess.run(["apt-get", *own, "download", *PACKAGES], check=True, cwd=archives)
    for archive in archives.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(archive), str(SYSTEM)], check=True)


def install(requirements: list[str]) -> None:
    """Install wheels for arm64 together in `SITE`."""
    platforms = [f"manylinux_2_{minor}_aarch64" for minor in range(36, 16, -1)]
    platforms.append("manylinux2014_aarch64")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        "--target",
        str(SITE),
    ]
    command += ["--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:"]
    command += [f"--platform={name}" for name in platforms]
    subprocess.run([*command, "--disable-pip-version-check", *requirements], check=True)


if __name__ == "__main__":
    main()
