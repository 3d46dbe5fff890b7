"""Run code in child processes with bounded memory, as the library promises bounds on memory."""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from hostile.template import Template

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
    done = python(_BOUND.format(memory), env=environment(), input=code, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def start(script: str, *arguments: object, cwd: Path, **options: object) -> subprocess.Popen[bytes]:
    """Start a command as a child process."""
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [
            sys.executable,
            "-c",
            f"from deconv_cli.{script}.command import main; main()",
            *map(str, arguments),
        ],
        cwd=cwd,
        env=environment(),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def run(script: str, *arguments: object, cwd: Path, **options: Any) -> tuple[int, str, str]:
    """Run a command; return its exit code, standard output and standard error."""
    if options.keys() <= {"stdin"}:
        code = f"from deconv_cli.{script}.command import main; main()"
        done = python(code, *arguments, cwd=cwd, env=environment(), **options)
        return done.returncode, done.stdout.decode(), done.stderr.decode()
    process = start(script, *arguments, cwd=cwd, **options)
    out, err = process.communicate(timeout=60)
    return process.returncode, (out or b"").decode(), (err or b"").decode()


def python(
    code: str,
    *arguments: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,  # noqa: A002 (as in subprocess.run)
    stdin: int | IO[Any] = subprocess.DEVNULL,
    text: bool = False,
    timeout: float = 60,
) -> subprocess.CompletedProcess[Any]:
    """Run ``python -c CODE ARGUMENTS``: a fork of a process that has imported the package.

    Settings that are read when the package is imported take a process of their own.
    """
    words = (sys.executable, "-c", code, *map(str, arguments))
    env = dict(os.environ if env is None else env)
    usual = environment()
    if _having(env, "DECONV_", "OPENBLAS_") not in ({}, _having(usual, "DECONV_", "OPENBLAS_")):
        given = {"input": input} if input is not None else {"stdin": stdin}
        return subprocess.run(
            words, cwd=cwd, env=env, text=text, timeout=timeout, capture_output=True, check=False,
            **given,
        )  # fmt: skip
    with tempfile.TemporaryFile() as given:
        if input is not None:
            given.write(input.encode() if isinstance(input, str) else input)
            given.seek(0)
            stdin = given
        elif stdin == subprocess.DEVNULL:
            stdin = null()
        started = template(tuple(sorted(_having(env, "PYTHON", "LANG", "LC_").items())))
        status, out, errors = started.run(
            code, words[3:], cwd=cwd or Path.cwd(), environment=env, stdin=stdin, seconds=timeout
        )
    done = subprocess.CompletedProcess(words, status, out, errors)
    if text:
        done.stdout, done.stderr = out.decode(), errors.decode()
    return done


def _having(env: Mapping[str, str], *begins: str) -> dict[str, str]:
    """Return the variables whose names begin with one of these words."""
    return {name: value for name, value in env.items() if name.startswith(begins)}


@functools.cache
def template(variables: tuple[tuple[str, str], ...]) -> Template:
    """Start a process with these variables, and one thread of the BLAS."""
    return Template({**environment(), **dict(variables)})


@functools.cache
def null() -> int:
    """Return an open /dev/null."""
    return os.open(os.devnull, os.O_RDONLY)


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
