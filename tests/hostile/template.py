"""A process that has imported the package and forks for each command that tests run in a child.

Starting Python and importing NumPy takes most of the time of a short command.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

MODULES = (
    "lxml.etree", "numpy", "deconv_ir.loading", "deconv_ir.execute.executor",
    "deconv_cli.shared.common", "deconv_cli.lint.command", "deconv_cli.run.command",
    "deconv_cli.spec.command",
)  # fmt: skip
"""Imported before the first fork."""


def serve(connection: socket.socket) -> None:
    """Fork for each request; only the forked process returns, to run its code."""
    import importlib

    for name in MODULES:
        importlib.import_module(name)
    while message := connection.recv(4):
        size = int.from_bytes(message, "big")
        given, files, _, _ = socket.recv_fds(connection, size, 3)
        while len(given) < size:
            given += connection.recv(size - len(given))
        request = json.loads(given)
        pid = os.fork()
        if pid == 0:
            connection.close()
            become(request, files)
            return
        for file in files:
            os.close(file)
        connection.sendall(pid.to_bytes(4, "big"))
        _, status = os.waitpid(pid, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    os._exit(0)


def become(request: dict[str, Any], files: Sequence[int]) -> None:
    """Take over the streams, folder and environment of a request, and run its code."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[:] = ["-c", *request["arguments"]]
    main = sys.modules["__main__"].__dict__
    exec(compile(request["code"], "<string>", "exec"), main)


class Template:
    """The client's side of the process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.lock = threading.Lock()
        self.connection, other = socket.socketpair()
        code = (
            f"import socket, runpy; m = runpy.run_path({__file__!r});"
            f" m['serve'](socket.socket(fileno={other.fileno()}))"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[other.fileno()],
        )
        other.close()
        self.connection.settimeout(60)
        atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self.process.wait()

    def run(
        self,
        code: str,
        arguments: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stdin: int | IO[Any],
        seconds: float,
    ) -> tuple[int, bytes, bytes]:
        """Run code as ``python -c CODE ARGUMENTS``: return exit code, output and errors."""
        request = {
            "code": code,
            "arguments": list(arguments),
            "cwd": str(cwd),
            "env": dict(environment),
        }
        message = json.dumps(request).encode()
        with self.lock, TemporaryFile() as out, TemporaryFile() as errors:
            files = [stdin if isinstance(stdin, int) else stdin.fileno()]
            files += [out.fileno(), errors.fileno()]
            self.connection.sendall(len(message).to_bytes(4, "big"))
            sent = socket.send_fds(self.connection, [message], files)
            self.connection.sendall(message[sent:])
            self.connection.settimeout(60)
            pid = int.from_bytes(self.receive(), "big")
            self.connection.settimeout(seconds)
            try:
                status = int.from_bytes(self.receive(), "big", signed=True)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self.connection.settimeout(60)
                self.receive()
                raise
            out.seek(0)
            errors.seek(0)
            return status, out.read(), errors.read()

    def receive(self) -> bytes:
        """Receive one number."""
        data = b""
        while len(data) < 4:
            more = self.connection.recv(4 - len(data))
            if not more:
                raise RuntimeError("the template process ended")
            data += more
        return data
