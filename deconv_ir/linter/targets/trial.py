"""A release of OpenVINO in a process of its own, which reads and compiles files.

Some files end OpenVINO's process, and some are read for ever: both count as refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import IO, Final, NamedTuple, Self

TIMEOUT: Final = 120.0
"""Seconds for one file."""

_WAIT: Final = 0.2
"""Seconds after which a process that gives no answer is looked at."""

_SERVER: Final = r"""
import json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
try:
    import openvino
    try:
        from openvino import Core, get_version
    except ImportError:
        from openvino.runtime import Core, get_version
    version = get_version()
except Exception as error:
    print(json.dumps(["missing", str(error)]), file=answers, flush=True)
    sys.exit(1)
core = Core()
print(json.dumps(["version", version]), file=answers, flush=True)
for line in sys.stdin:
    path, weights, compiles = json.loads(line)
    step = "reading"
    try:
        model = core.read_model(path, weights) if weights else core.read_model(path)
        step = "compiling"
        if compiles:
            core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1})
        answer = ["accepted", ""]
    except Exception as error:
        answer = [step, str(error)[-2000:]]
    print(json.dumps(answer), file=answers, flush=True)
"""


class Answer(NamedTuple):
    """The answer of a release for one file."""

    step: str
    """``accepted``, or where it failed: ``reading``, ``compiling``, ``crash`` or ``timeout``."""
    message: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the file was read and compiled."""
        return self.step == "accepted"


class MissingOpenVINOError(Exception):
    """The interpreter has no OpenVINO."""


class Trial:
    """OpenVINO in a process, which is started again where a file ends it."""

    def __init__(self, python: str | None = None, timeout: float = TIMEOUT) -> None:
        self.python = python or sys.executable
        self.timeout = timeout
        self.version = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._fresh = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process, and learn its version.

        Raises
        ------
        MissingOpenVINOError
            OpenVINO cannot be imported there.
        """
        self._process = subprocess.Popen(
            [self.python, "-P", "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._fresh = True
        step, message = self._answer() or ("missing", "the process ended")
        if step != "version":
            self.close()
            raise MissingOpenVINOError(message)
        self.version = message

    def ask(self, path: str, weights: str | None = None, *, compiles: bool = True) -> Answer:
        """Read a file and compile it for the CPU.

        A process may end because of the file before, so a new one is asked once more.
        """
        while True:
            if self._process is None:
                self.start()
            fresh, self._fresh = self._fresh, False
            answer = self._asked(json.dumps([path, weights, compiles]).encode() + b"\n")
            if answer is not None:
                return answer
            self.close()
            if fresh:
                return Answer("crash", "the process of OpenVINO ended")

    def _asked(self, line: bytes) -> Answer | None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        found = self._answer()
        return None if found is None else Answer(*found)

    def _answer(self) -> tuple[str, str] | None:
        """Return the next answer; None: the process ended."""
        import select
        import time

        assert self._process is not None
        stream: IO[bytes] | None = self._process.stdout
        assert stream is not None
        end = time.monotonic() + self.timeout
        while not select.select([stream], [], [], _WAIT)[0]:
            if _main_thread_ended(self._process.pid):
                return None
            if time.monotonic() > end:
                self.close()
                return "timeout", f"no answer within {self.timeout:g} s"
        line = stream.readline()
        if not line:
            return None
        step, message = json.loads(line)
        return step, message

    def close(self) -> None:
        """End the process, and what it has started."""
        import contextlib
        import signal

        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._process = None


def _main_thread_ended(process: int) -> bool:
    """Whether a process is dead but for threads that hang; only Linux tells."""
    try:
        with open(f"/proc/{process}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False
