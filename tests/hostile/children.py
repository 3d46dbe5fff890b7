"""Run code in child processes with bounded memory, as the library promises bounds on memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MIB = 1 << 20

_BOUND = (
    "import resource, sys\n"
    "resource.setrlimit(resource.RLIMIT_AS, ({0}, {0}))\n"
    "import deconv_ir\n"
    "from deconv_ir import DeconvError\n"
    "try:\n"
    "    exec(sys.stdin.read())\n"
    "except DeconvError as error:\n"
    "    print('DeconvError:', error)\n"
)


def bounded(code: str, memory: int = 512 * MIB, seconds: float = 60) -> str:
    """Run Python code in a child with bounded address space; return its standard output.

    A `DeconvError` is printed; anything else that it raises fails the test.
    """
    done = subprocess.run(
        [sys.executable, "-c", _BOUND.format(memory)],
        input=code,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def start(script: str, *arguments: object, cwd: Path, **options: object) -> subprocess.Popen[bytes]:
    """Start a command as a child process."""
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [
            sys.executable,
            "-c",
            f"from deconv_cli.{script} import main; main()",
            *map(str, arguments),
        ],
        cwd=cwd,
        env=environment(),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def run(script: str, *arguments: object, cwd: Path, **options: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, standard output and standard error."""
    process = start(script, *arguments, cwd=cwd, **options)
    out, err = process.communicate(timeout=60)
    return process.returncode, (out or b"").decode(), (err or b"").decode()


def one_error_line(text: str) -> str:
    """Require one line that begins with ``error:``, and return it."""
    assert text.startswith("error: "), text
    assert text.count("\n") == 1, text
    return text.strip()


def environment() -> dict[str, str]:
    """Return the environment of child processes, in which this interpreter's modules are found."""
    # Each thread of the BLAS reserves address space, which is not measured here. The import path is
    # passed on, since neither package may be installed.
    paths = [p for p in sys.path if p]
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}


def die(_: object) -> None:
    """End this process as the system does when memory runs out."""
    os.kill(os.getpid(), 9)


def limit_file_size(size: int) -> None:
    """Bound the files that this process may write; for `preexec_fn`."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
