"""Where people read findings: formats of services, lists of fixes, --watch, the GitHub Action."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from deconv_cli.lint.request import LintRequest
from deconv_cli.lint.run import lint as run_lint
from deconv_cli.lint.watch import watch

from .conftest import Done, Lint, line_of

ROOT = Path(__file__).parents[2]

PLAIN = 'name="act"'
ODD = 'name="a|`@é]`;%25&lt;b&gt;"'
"""A name with what formats give a meaning to, and a letter of two bytes."""


@pytest.fixture
def odd(bad: Path) -> Path:
    """The IR with two mistakes, an odd name of a layer, and an attribute unknown after it."""
    text = bad.read_text("utf-8")
    bad.write_text(text.replace(f"{PLAIN} ", f'{ODD} unknown="1" ', 1), "utf-8")
    return bad


def test_rdjson(lint: Lint, odd: Path) -> None:
    """Fields, severities and ranges of reviewdog's reviewdog.proto: columns count bytes."""
    report = json.loads(lint(str(odd), "--format", "rdjson").out)
    assert report["source"] == {"name": "deconv-lint"}
    unknown, declared, _ = report["diagnostics"]
    line = line_of(odd, "unknown=", "<net")
    start = odd.read_bytes().split(b"\n")[line - 1].index(b'unknown="1"') + 1
    assert unknown["severity"] == "WARNING"
    assert unknown["code"]["value"] == "IR107"
    assert unknown["location"]["path"] == "models/bad.xml"
    assert unknown["location"]["range"]["start"] == {"line": line, "column": start}
    line = line_of(odd, "<dim>10</dim>", 'names="y"')
    assert declared["severity"] == "ERROR"
    assert declared["location"]["range"] == {
        "start": {"line": line, "column": 11},
        "end": {"line": line, "column": 13},
    }
    assert declared["message"].startswith("layer ")


def test_azure(lint: Lint, odd: Path) -> None:
    """Azure DevOps, "Logging commands": properties end with ';', and %, ; and ] are escaped."""
    odd.rename(odd.with_name("a;b]%.xml"))
    odd.with_suffix(".bin").rename(odd.with_name("a;b]%.bin"))
    *issues, summary = lint("models", "--format", "azure").out.splitlines()
    line = line_of(odd.with_name("a;b]%.xml"), "<dim>10</dim>", 'names="y"')
    head = "##vso[task.logissue type=error;sourcepath=models/a%3Bb%5D%AZP25.xml;"
    assert issues[1].startswith(f"{head}linenumber={line};columnnumber=11;code=IR401;]layer ")
    assert issues[0].startswith("##vso[task.logissue type=warning;")
    assert "%AZP2525" in issues[1]
    assert len(issues) == 3
    assert summary.startswith("Found 2 errors, 1 warning in 1 of 1 file.")


def test_pylint(lint: Lint, odd: Path) -> None:
    """Pylint, "Pylint output": the format that parsers of its output read."""
    lines = lint(str(odd), "--format", "pylint").out.splitlines()
    form = r"(?P<path>[^:]+):(?P<line>\d+): \[(?P<id>\w+)\((?P<symbol>[\w-]+)\), (.*?)\] (.*)"
    found = [re.fullmatch(form, line) for line in lines]
    assert [(m["path"], m["id"], m["symbol"]) for m in found if m] == [
        ("models/bad.xml", "IR107", "unknown-attribute"),
        ("models/bad.xml", "IR401", "declared-dims-differ"),
        ("models/bad.xml", "IR209", "edge-dims-differ"),
    ]
    assert found[1] is not None
    assert int(found[1]["line"]) == line_of(odd, "<dim>10</dim>", 'names="y"')


def test_jsonl_has_the_findings_of_json_line_by_line(lint: Lint, odd: Path, good: Path) -> None:
    whole = json.loads(lint("models", "--format", "json").out)["findings"]
    lines = lint("models", "--format", "jsonl").out.splitlines()
    assert list(map(json.loads, lines)) == whole
    assert len(whole) == 3
    assert lint(str(good), "--format", "jsonl") == Done(0, "", "")


def test_markdown_has_no_markup_of_the_file(lint: Lint, odd: Path) -> None:
    out = lint(str(odd), "--format", "markdown").out
    rows = [row for row in out.splitlines() if row.startswith("|")]
    assert len(rows) == 2 + 3
    assert {row.count("|") for row in rows} == {6}
    assert "@&#96;" not in out
    assert "@é" not in out
    assert "`" not in out
    assert "<b>" not in out


class TestFixes:
    @pytest.fixture
    def bad(self, good: Path) -> Path:
        """An IR with one finding, IR401, which has a safe fix."""
        head, mark, tail = good.read_text().partition('names="y"')
        good.write_text(head + mark + tail.replace("<dim>9</dim>", "<dim>10</dim>", 1))
        return good

    def test_show_fixes_lists_what_was_fixed(self, lint: Lint, bad: Path) -> None:
        before = bad.read_text()
        done = lint(str(bad), "--diff", "--show-fixes")
        assert done.err == f"{bad}: fixed\n  IR401 declared-dims-differ: 1\n"
        assert bad.read_text() == before
        done = lint(str(bad), "--fix", "--show-fixes")
        assert "IR401 declared-dims-differ: 1\n" in done.out

    def test_programs_get_the_numbers(self, lint: Lint, bad: Path) -> None:
        (file,) = json.loads(lint(str(bad), "--fix", "--format", "json").out)["files"]
        assert file["fixes"] == {"IR401": 1}

    @pytest.mark.parametrize(
        ("arguments", "is_fixed"),
        [
            ((), True),
            (("--fixable", "IR401"), True),
            (("--fixable", "IR209"), False),
            (("--unfixable", "IR401"), False),
            (("--unfixable", "shapes"), False),
            (("--unfixable", "IR4", "--fixable", "IR401"), True),  # the more specific wins
            (("--fixable", "IR4", "--unfixable", "declared-dims-differ"), False),
        ],
    )
    def test_rules_are_chosen(
        self, lint: Lint, bad: Path, arguments: tuple[str, ...], is_fixed: bool
    ) -> None:
        before = bad.read_text()
        out = lint(str(bad), *arguments).out
        assert ("fixable with --fix" in out) is is_fixed
        lint(str(bad), "--fix", *arguments)
        assert (bad.read_text() != before) is is_fixed

    @pytest.mark.parametrize(
        ("setting", "is_fixed"), [('unfixable = ["IR401"]', False), ('fixable = ["IR2"]', False)]
    )
    def test_settings(self, lint: Lint, bad: Path, setting: str, is_fixed: bool) -> None:
        (bad.parent / "deconv-lint.toml").write_text(setting)
        assert ("fixable with --fix" in lint(str(bad)).out) is is_fixed

    @pytest.mark.parametrize(
        "arguments",
        [("--show-fixes",), ("--watch", "--diff"), ("--watch", "-"), ("--fixable", "IR999")],
    )
    def test_mistakes(self, lint: Lint, bad: Path, arguments: tuple[str, ...]) -> None:
        done = lint(str(bad), *arguments)
        assert done.code == 2
        assert done.err.startswith("error: ")


class _EnoughError(Exception):
    """Ends a watch."""


def test_watch_checks_again_after_each_change(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turns: no change; the .xml; the .bin; settings appear; the .xml goes and returns."""
    monkeypatch.chdir(bad.parent.parent)
    text = bad.read_text()
    turns = iter(
        [
            lambda: None,
            lambda: bad.write_text(text.replace(PLAIN, 'name="other"')),
            lambda: bad.with_suffix(".bin").write_bytes(b""),
            lambda: Path("deconv-lint.toml").write_text('ignore = ["IR209"]'),
            bad.unlink,
            lambda: bad.write_text(text),
        ]
    )
    counts = []

    def check(request: LintRequest) -> int:
        counts.append(request.paths)
        return run_lint(request)

    def wait(_: float) -> None:
        turn = next(turns, None)
        if turn is None:
            raise _EnoughError
        turn()

    request = LintRequest(**_options(), paths=("models/bad.xml",), watch=True)
    with pytest.raises(_EnoughError):
        watch(request, check, wait)
    assert len(counts) == 6


def _options() -> dict[str, Any]:
    from deconv_cli.lint.command import command

    context = command.make_context("deconv-lint", [], resilient_parsing=True)
    return {k: v for k, v in context.params.items() if k not in ("paths", "watch")}


class TestAction:
    """action.yml and its step, with a server in place of GitHub's."""

    @pytest.fixture
    def server(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        asked: list[tuple[str, str, Any]] = []
        comments = [{"id": n, "body": "unrelated"} for n in range(100)]

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                content = json.loads(self.rfile.read(size)) if size else None
                asked.append((self.command, self.path, content))
                found: Any = {}
                if self.command == "GET":
                    page = int(self.path.rpartition("=")[2])
                    found = comments[100 * (page - 1) : 100 * page]
                elif self.command == "POST":
                    comments.append({"id": 4711, "body": content["body"]})
                data = json.dumps(found).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = _answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        found = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{found.server_port}")
        yield asked
        found.shutdown()
        thread.join()
        found.server_close()

    def test_annotations_and_one_comment(
        self,
        server: list[tuple[str, str, Any]],
        bad: Path,
        good: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        event = tmp_path / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 12}}))
        summary, output = tmp_path / "summary.md", tmp_path / "output.txt"
        monkeypatch.chdir(tmp_path)
        for name, value in {
            "GITHUB_REPOSITORY": "owner/models",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
            "LINT_PATHS": "models\n",
            "LINT_TARGET": "openvino=2021.4",
            "LINT_ARGUMENTS": "--ignore IR209",
            "LINT_COMMENT": "true",
            "LINT_TOKEN": "secret",
        }.items():
            monkeypatch.setenv(name, value)
        main = runpy.run_path(str(ROOT / "tools/github_action.py"))["main"]
        assert main() == 1
        annotation = "::error title=IR401 declared-dims-differ,file=models/bad.xml"
        assert annotation in capfd.readouterr().out
        assert output.read_text() == "exit-code=1\n"
        method, path, content = server[-1]
        assert (method, path) == ("POST", "/repos/owner/models/issues/12/comments")
        assert "IR401" in content["body"]
        assert "openvino=2021.4" in summary.read_text()
        server.clear()
        bad.unlink()
        monkeypatch.setenv("LINT_TARGET", "")
        assert main() == 0
        assert [asked[:2] for asked in server] == [
            ("GET", "/repos/owner/models/issues/12/comments?per_page=100&page=1"),
            ("GET", "/repos/owner/models/issues/12/comments?per_page=100&page=2"),
            ("PATCH", "/repos/owner/models/issues/comments/4711"),
        ]
        assert "No problem found" in server[-1][2]["body"]

    def test_the_steps_run_as_a_runner_runs_them(
        self, server: list[tuple[str, str, Any]], bad: Path, tmp_path: Path
    ) -> None:
        """The shell code of both steps, with GitHub's variables; pip only notes what it installs.

        GitHub, "Workflow syntax": `shell: bash` runs a file with -e and -o pipefail.
        """
        steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
        tools = tmp_path / "bin"
        tools.mkdir()
        python = tools / "python3"
        # `python3 -m venv FOLDER` makes a folder with this Python and a pip.
        python.write_text(
            f"""#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\nexec {sys.executable} "$@"\n' > "$3/bin/python"
printf '#!/bin/sh\necho "$@" > {tmp_path}/installed\n' > "$3/bin/pip"
chmod +x "$3/bin/python" "$3/bin/pip"
"""
        )
        python.chmod(0o755)
        (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 12}}))
        (tmp_path / "runner temp").mkdir()
        environment = os.environ | {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path / "runner temp"),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_REPOSITORY": "owner/models",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_OUTPUT": str(tmp_path / "output.txt"),
            "LINT_PATHS": "'models/bad.xml'\nmodels",
            "LINT_TARGET": "openvino=2024.6 openvino>=2026.0",
            "LINT_TOKEN": "secret",
        }
        ends = []
        for number, step in enumerate(steps):
            script = tmp_path / f"step{number}.sh"
            script.write_text(step["run"])
            command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
            ends.append(
                subprocess.run(
                    command, env=environment, cwd=tmp_path, capture_output=True, text=True
                )
            )
        assert [end.returncode for end in ends] == [0, 1], ends
        assert (tmp_path / "installed").read_text() == f"install --quiet {ROOT}\n"
        assert "::error title=IR401 declared-dims-differ,file=models/bad.xml" in ends[1].stdout
        assert (tmp_path / "output.txt").read_text() == "exit-code=1\n"
        summary = (tmp_path / "summary.md").read_text()
        assert "openvino=2024.6" in summary
        assert "OpenVINO 2026.0 to 2026.4" in summary
        assert [asked[0] for asked in server] == ["GET", "GET", "POST"]

    def test_the_inputs_are_no_part_of_commands(self) -> None:
        """GitHub, "Security hardening": expressions in scripts let names run commands."""
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        steps = action["runs"]["steps"]
        assert action["runs"]["using"] == "composite"
        assert all("${{" not in step["run"] for step in steps)
        assert all(step["shell"] == "bash" for step in steps)
        passed = " ".join(value for step in steps for value in step.get("env", {}).values())
        assert set(re.findall(r"inputs\.([\w-]+)", passed)) == set(action["inputs"])
        read = (ROOT / "tools/github_action.py").read_text()
        names = {name for step in steps for name in step.get("env", {})}
        assert names == set(re.findall(r"LINT_\w+", read))
