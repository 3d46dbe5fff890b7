"""The step of action.yml: annotate the lines of a pull request, and post one comment.

Sources: GitHub documentation, "Workflow commands for GitHub Actions" (annotations, outputs, job
summaries), "REST API endpoints for issue comments", "Variables" (GITHUB_EVENT_PATH and others).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MARK = "<!-- deconv-lint: summary -->"
"""The first line of the comment, by which later runs find it."""
MAX_CHARACTERS = 65_000
"""GitHub takes comments of 65536 characters."""
MAX_PAGES = 30
"""Pages of 100 comments in which the earlier comment is sought."""


def main() -> int:
    """Run deconv-lint, publish what it found, and return its exit code."""
    command = [sys.executable, "-c", "from deconv_cli.lint.command import main; main()"]
    command += shlex.split(os.environ.get("LINT_PATHS", ""))
    for target in os.environ.get("LINT_TARGET", "").split():
        command += ["--target", target]
    command += shlex.split(os.environ.get("LINT_ARGUMENTS", ""))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.md"
        command += ["--cache-dir", str(Path(folder) / "cache")]
        code = subprocess.run([*command, "--format", "github"], check=False).returncode
        if code in (0, 1):
            written = [*command, "--format", "markdown", "--output", str(report)]
            subprocess.run(written, check=False, stderr=subprocess.DEVNULL)
        text = report.read_text("utf-8") if report.exists() else "### deconv-lint\n\nIt failed.\n"
    _append("GITHUB_STEP_SUMMARY", text)
    _append("GITHUB_OUTPUT", f"exit-code={code}\n")
    number = pull_request()
    if number is not None and os.environ.get("LINT_COMMENT", "true") == "true":
        try:
            publish(number, f"{MARK}\n{text}"[:MAX_CHARACTERS])
        except urllib.error.URLError as error:  # a fork's token may not write
            print(f"::notice title=deconv-lint::no comment was posted: {error}")
    return code


def _append(variable: str, text: str) -> None:
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)


def pull_request() -> int | None:
    """Return the number of the pull request that started the run."""
    path = os.environ.get("GITHUB_EVENT_PATH")
    if not path:
        return None
    event = json.loads(Path(path).read_text("utf-8"))
    number = event.get("pull_request", {}).get("number")
    return number if isinstance(number, int) else None


def publish(number: int, text: str) -> None:
    """Replace the comment of an earlier run, or post the first one.

    Raises
    ------
    urllib.error.URLError
        GitHub refuses, or cannot be reached.
    """
    comments = f"issues/{number}/comments"
    for page in range(1, MAX_PAGES + 1):
        found = _ask("GET", f"{comments}?per_page=100&page={page}")
        for comment in found:
            if str(comment.get("body", "")).startswith(MARK):
                _ask("PATCH", f"issues/comments/{int(comment['id'])}", {"body": text})
                return
        if len(found) < 100:
            break
    _ask("POST", comments, {"body": text})


def _ask(method: str, path: str, content: dict[str, str] | None = None) -> Any:
    base = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    request = urllib.request.Request(
        f"{base}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        data=None if content is None else json.dumps(content).encode(),
        method=method,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ.get('LINT_TOKEN', '')}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


if __name__ == "__main__":
    sys.exit(main())
