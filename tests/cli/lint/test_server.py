"""deconv-lint server, spoken to by pygls' client over the pipes of a process."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from linter.network import NETWORK, WEIGHTS
from support import deconvolution_ir

pytest.importorskip("pygls")

from deconv_cli.lint.server import DELAY_SECONDS
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

START = "from deconv_cli.lint.command import main; main()"
ROOT = Path(__file__).parents[3]


class Editor(LanguageClient):
    """An editor with documents open; it keeps the last diagnostics of each."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

    async def open(self, path: Path, text: str, language: str = "xml") -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(path.as_uri(), language, 1, text)
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    def change(self, path: Path, version: int, text: str) -> None:
        self.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version, path.as_uri()),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        published = await asyncio.wait_for(self.published.get(), 30)
        return list(published.diagnostics)

    async def hover(self, path: Path, text: str, part: str) -> tuple[str, str]:
        """Return the text of a hover over a part, and the text to which it applies."""
        found = await self.text_document_hover_async(
            lsp.HoverParams(identifier(path), position(text, text.index(part) + 1))
        )
        assert found is not None
        assert isinstance(found.contents, lsp.MarkupContent)
        assert found.range is not None
        return found.contents.value, part_of(text, found.range)

    async def actions(
        self, path: Path, where: lsp.Range, only: list[str] | None = None
    ) -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext([], only)
        found = await self.text_document_code_action_async(
            lsp.CodeActionParams(identifier(path), where, context)
        )
        return [action for action in found or () if isinstance(action, lsp.CodeAction)]


def identifier(path: Path) -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(path.as_uri())


def position(text: str, offset: int) -> lsp.Position:
    """Return a position in UTF-16 code units."""
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return lsp.Position(line, len(text[start:offset].encode("utf-16-le")) // 2)


def offset(text: str, at: lsp.Position) -> int:
    start = sum(len(line) + 1 for line in text.split("\n")[: at.line])
    units = text[start:].encode("utf-16-le")[: 2 * at.character]
    return start + len(units.decode("utf-16-le"))


def part_of(text: str, where: lsp.Range) -> str:
    return text[offset(text, where.start) : offset(text, where.end)]


def edited(text: str, action: lsp.CodeAction) -> str:
    """Apply an action as an editor does, from the last edit to the first."""
    assert action.edit is not None
    assert action.edit.changes is not None
    ((_, edits),) = action.edit.changes.items()
    for edit in sorted(edits, key=lambda e: offset(text, e.range.start), reverse=True):
        start, end = offset(text, edit.range.start), offset(text, edit.range.end)
        text = text[:start] + edit.new_text + text[end:]
    return text


def speak(talk: Callable[[Editor], Awaitable[None]], *options: str) -> None:
    """Start a server, talk to it, and say goodbye."""

    async def run() -> None:
        editor = Editor()
        await editor.start_io(sys.executable, "-c", START, "server", *options)
        answer = await editor.initialize_async(
            lsp.InitializeParams(capabilities=lsp.ClientCapabilities())
        )
        assert answer.server_info is not None
        assert answer.server_info.name == "deconv-lint"
        editor.initialized(lsp.InitializedParams())
        try:
            await asyncio.wait_for(talk(editor), 60)
        finally:
            await editor.shutdown_async(None)
            editor.exit(None)
            await editor.stop()

    asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The .xml does not exist, since the editor has not saved the file yet; the .bin does."""
    (tmp_path / "model.bin").write_bytes(WEIGHTS)
    return tmp_path / "model.xml"


CLEAN = NETWORK.read_text("utf-8")
WRONG = CLEAN.replace("<dim>11</dim>", "<dim>12</dim>", 1)
assert WRONG != CLEAN


def test_diagnostics_follow_the_text(path: Path) -> None:
    async def talk(editor: Editor) -> None:
        (found, *_) = await editor.open(path, WRONG)
        assert (found.code, found.severity) == ("IR401", lsp.DiagnosticSeverity.Error)
        assert part_of(WRONG, found.range) == "12"
        assert found.source == "deconv-lint"
        # Only the last of two quick changes is checked.
        editor.change(path, 2, WRONG.replace("<net", "<ne"))
        editor.change(path, 3, CLEAN)
        assert await editor.diagnostics() == []
        # A document that is being typed is not well-formed: one diagnostic, at the error.
        half = CLEAN.replace("</input>", "</inp", 1)
        editor.change(path, 4, half)
        (broken,) = await editor.diagnostics()
        assert broken.code == "IR102"
        assert abs(broken.range.start.line - half.count("\n", 0, half.index("</inp\n"))) <= 1
        editor.text_document_did_close(lsp.DidCloseTextDocumentParams(identifier(path)))
        assert await editor.diagnostics() == []

    speak(talk)


def test_saving_sees_another_bin(path: Path) -> None:
    async def talk(editor: Editor) -> None:
        assert await editor.open(path, CLEAN) == []
        path.with_suffix(".bin").write_bytes(WEIGHTS[:100])
        editor.text_document_did_save(lsp.DidSaveTextDocumentParams(identifier(path)))
        assert {d.code for d in await editor.diagnostics()} == {"IR502"}

    speak(talk)


def test_hover_shows_sizes_of_dynamic_models_as_expressions(tmp_path: Path) -> None:
    """A kernel of 2 and a stride of 2 without pads: Y = 2*(X - 1) + 2 = 2*X."""
    attributes = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    ir = deconvolution_ir("?,2,?,?", (2, 3, 2, 2), attributes, "-1,3,-1,-1")
    path = ir.save(tmp_path)
    text = path.read_text("utf-8")

    async def talk(editor: Editor) -> None:
        await editor.open(path, text)
        tensor, _ = await editor.hover(path, text, '<port id="2" precision="FP32" names="y">')
        assert tensor.endswith(", sizes `[N,3,2*H,2*W]`")
        part = "<dim>-1</dim>\n</port>"
        size, _ = await editor.hover(path, text, part)
        assert ", size `2*W`" in size

    speak(talk)


def test_hover(path: Path) -> None:
    # A name before the position has a character of two UTF-16 units.
    text = CLEAN.replace('name="deconv" type', 'name="\U0001d53b" type')

    async def talk(editor: Editor) -> None:
        await editor.open(path, text)
        formula, about = await editor.hover(path, text, "<dim>11</dim>")
        assert about == "<dim>11</dim>"
        # Y = stride (X - 1) + ((K - 1) dilation + 1) - pads: semantics.md, by hand.
        assert "2*(6 - 1) + ((3 - 1)*1 + 1) - 1 - 1 + 0 = 11" in formula
        declared, about = await editor.hover(path, text, "strides=")
        assert about.startswith('strides="')
        assert declared.startswith("**strides** of ConvolutionBackpropData")
        assert "positive whole numbers separated by commas" in declared
        kind, _ = await editor.hover(path, text, 'type="ConvolutionBackpropData"')
        assert "Transposed convolution." in kind
        assert "`output_padding`" in kind
        edge, _ = await editor.hover(path, text, '<edge from-layer="0"')
        assert "'x' (Parameter, id 0)" in edge
        assert "`[1,4,5,6]` f32" in edge
        unknown = text.replace("strides=", "stride=")
        editor.change(path, 2, unknown)
        await editor.diagnostics()
        said, _ = await editor.hover(path, unknown, "stride=")
        assert "not an attribute of ConvolutionBackpropData" in said
        assert "`strides`" in said

    speak(talk)


def test_quick_fixes(path: Path) -> None:
    # Only one output of the act layer is wrong, and every neighbour confirms it: a safe fix.
    at = CLEAN.rindex("<dim>11</dim>", 0, CLEAN.rindex("<layer "))
    text = f"{CLEAN[:at]}<dim>77</dim>{CLEAN[at + 13 :]}"
    text = text.replace('name="deconv" type', 'name="\U0001d53b" type')

    async def talk(editor: Editor) -> None:
        found = await editor.open(path, text)
        wrong = next(d for d in found if d.code == "IR401")
        (action,) = await editor.actions(path, wrong.range)
        assert action.title == "IR401: declares the computed dims"
        assert (action.kind, action.is_preferred) == (lsp.CodeActionKind.QuickFix, True)
        assert edited(text, action) == text.replace("<dim>77</dim>", "<dim>11</dim>")
        (every,) = await editor.actions(path, wrong.range, ["source.fixAll"])
        assert edited(text, every) == text.replace("<dim>77</dim>", "<dim>11</dim>")
        nowhere = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
        assert await editor.actions(path, nowhere) == []
        # All dims contradict the stride: a person must decide whether to rewrite them.
        doubtful = CLEAN.replace('strides="2, 2"', 'strides="2, 3"').replace(
            'strides="2,2"', 'strides="2,3"'
        )
        assert doubtful != CLEAN
        editor.change(path, 2, doubtful)
        await editor.diagnostics()
        whole = lsp.Range(lsp.Position(0, 0), position(doubtful, len(doubtful)))
        actions = await editor.actions(path, whole)
        assert not any(action.is_preferred for action in actions)
        assert all("(unsafe" in action.title for action in actions)
        (action,) = (a for a in actions if a.title.startswith("IR416"))
        assert action.title == 'IR416: strides="2,2" (unsafe: review it)'
        # One action for each of several candidates, with its own title.
        tied = CLEAN.replace('pads_begin="1, 1"', 'pads_begin="2, 2"')
        assert tied != CLEAN
        editor.change(path, 3, tied)
        await editor.diagnostics()
        whole = lsp.Range(lsp.Position(0, 0), position(tied, len(tied)))
        titles = [a.title for a in await editor.actions(path, whole) if "IR416" in a.title]
        assert len(titles) == len(set(titles)) > 1
        assert await editor.actions(path, whole, ["source.fixAll.deconv-lint"]) == []

    speak(talk)


def test_declared_encoding_is_the_file_s(path: Path) -> None:
    """The editor sends text in its own encoding, whichever encoding the file declares."""
    text = WRONG.replace('<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-16"?>')
    text = text.replace('name="act"', 'name="größe"')
    assert "UTF-16" in text

    async def talk(editor: Editor) -> None:
        found = next(d for d in await editor.open(path, text) if d.code == "IR401")
        assert part_of(text, found.range) == "12"

    speak(talk)


def test_files_of_other_kinds_are_left_alone(path: Path) -> None:
    async def talk(editor: Editor) -> None:
        assert await editor.open(path.with_name("pom.xml"), "<project/>") == []
        assert await editor.open(path.with_name("a.json"), '{"name": 1}', "json") == []
        graph = (ROOT / "samples/onednn/int8.json").read_text()
        wrong = graph.replace('"kind": "ConvTranspose"', '"kind": "ConvTranspoze"')
        assert wrong != graph
        assert await editor.open(path.with_name("b.json"), wrong, "json") != []

    speak(talk)


def test_settings(path: Path) -> None:
    path.with_name("deconv-lint.toml").write_text('docs-url = "https://example.org/rules.md"')

    async def talk(editor: Editor) -> None:
        (found, *_) = await editor.open(path, WRONG)
        assert found.code_description == lsp.CodeDescription(
            "https://example.org/rules.md#ir401-declared-dims-differ"
        )
        path.with_name("deconv-lint.toml").write_text('ignore = ["IR4", "IR2"]')
        editor.text_document_did_save(lsp.DidSaveTextDocumentParams(identifier(path)))
        assert await editor.diagnostics() == []
        path.with_name("deconv-lint.toml").write_text("selct = []")
        editor.text_document_did_save(lsp.DidSaveTextDocumentParams(identifier(path)))
        (mistake,) = await editor.diagnostics()
        assert "did you mean 'select'?" in mistake.message

    speak(talk)


def test_options_of_the_command_line(path: Path) -> None:
    path.with_name("deconv-lint.toml").write_text("selct = []")

    async def talk(editor: Editor) -> None:
        assert await editor.open(path, WRONG) == []

    speak(talk, "--stdio", "--isolated", "--ignore", "IR401")


@pytest.mark.parametrize("name", ["a b", "größe", "a#b", "100%"])
def test_percent_encoded_uri(name: str, path: Path) -> None:
    """RFC 3986, section 2.1; Windows paths are always encoded, with the drive's colon (c%3A)."""

    async def talk(editor: Editor) -> None:
        file = path.with_name(f"{name}.xml")
        file.with_suffix(".bin").write_bytes(WEIGHTS)
        assert "%" in file.as_uri()
        assert [d.code for d in await editor.open(file, WRONG)] == ["IR401"]
        editor.change(file, 2, CLEAN)
        assert await editor.diagnostics() == []
        editor.change(file, 3, WRONG)
        assert [d.code for d in await editor.diagnostics()] == ["IR401"]
        # A document that was closed meanwhile is not checked.
        editor.change(file, 4, CLEAN)
        editor.text_document_did_close(lsp.DidCloseTextDocumentParams(identifier(file)))
        assert await editor.diagnostics() == []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(editor.published.get(), 2 * DELAY_SECONDS)

    speak(talk)


@pytest.mark.parametrize(
    ("last", "code"), [(("shutdown", "exit"), 0), (("exit",), 1), (("shutdown",), 0), ((), 0)]
)
def test_exit_code(last: tuple[str, ...], code: int) -> None:
    """LSP 3.17, "Exit Notification": 0 after shutdown, otherwise 1.  Then the pipe is closed."""
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}}},
        {"method": "initialized", "params": {}},
        *({"method": name} | ({"id": 2} if name == "shutdown" else {}) for name in last),
    ]
    bodies = [json.dumps({"jsonrpc": "2.0"} | message).encode() for message in messages]
    done = subprocess.run(
        [sys.executable, "-c", START, "server"],
        input=b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(b), b) for b in bodies),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, b"")
    assert b'"id": 1' in done.stdout


def test_without_pygls(tmp_path: Path) -> None:
    code = f"import sys; sys.modules['pygls'] = sys.modules['lsprotocol'] = None; {START}"
    done = subprocess.run(
        [sys.executable, "-c", code, "server"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: the language server needs pygls "
        "(pip install '.[editor]' in a checkout of deconv-ir)\n"
    )


def test_linting_imports_no_pygls(tmp_path: Path) -> None:
    assert importlib.util.find_spec("pygls") is not None
    (tmp_path / "m.xml").write_text(CLEAN)
    code = (
        "import sys; from deconv_cli.lint.command import command; "
        "command.main(['m.xml', '--exit-zero'], standalone_mode=False); "
        "assert not {'pygls', 'lsprotocol', 'asyncio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
