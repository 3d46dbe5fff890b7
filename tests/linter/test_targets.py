"""--target, --needs and --verify.

Expected releases are those of documents: "Available Operation Sets" (opset12 with 2023.1, opset14
with 2024.0), "OpenVINO API 2.0 Transition Guide" (IR version 11 with 2022.1), and pull request 1438
of openvino (no IR below version 10 since 2021.1). bench/targets.py measures that releases agree,
and tests/peers/test_targets.py that the installed one does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from deconv_ir.errors import InputError
from deconv_ir.findings import Severity
from deconv_ir.linter.engine import FileResult, check_bytes
from deconv_ir.linter.options import choose
from deconv_ir.linter.releases import OPSETS, RELEASES, parse_target, reads_ir
from deconv_ir.linter.targets.table import Acceptance, measured, parse, ranges
from deconv_ir.linter.targets.trial import MissingOpenVINOError, Trial
from deconv_ir.linter.targets.verdict import shown_releases

from .conftest import Lint

HEAD = '<?xml version="1.0"?>\n<net name="a network" version="{version}">\n<layers>\n'
PADDING = (
    "<!--" + " more than the first bytes, which tell releases the kind of the file" * 8 + "-->\n"
)


def port(number: int, precision: str = "FP32") -> str:
    return f'<port id="{number}" precision="{precision}"><dim>2</dim><dim>4</dim></port>'


def layer(number: int, kind: str, opset: str, data: str = "", extra: str = "") -> str:
    """Write a layer from f32[2,4] to f32[2,4]; a Parameter has no input, a Result no output."""
    inputs = "" if kind == "Parameter" else f"<input>{port(0)}</input>"
    outputs = "" if kind == "Result" else f"<output>{port(int(bool(inputs)))}</output>"
    start = f'<layer id="{number}" name="{kind.lower()}" type="{kind}" version="{opset}">'
    return f"{start}{data}{inputs}{outputs}{extra}</layer>\n"


def network(
    kind: str = "ReLU", opset: str = "opset1", data: str = "", *, version: int = 11, extra: str = ""
) -> str:
    """Write a network of one layer, in line 5 or, after the padding, 6."""
    shape = '<data shape="2,4" element_type="f32"/>'
    return (
        HEAD.format(version=version)
        + PADDING
        + layer(0, "Parameter", "opset1", shape)
        + layer(1, kind, opset, data, extra)
        + layer(2, "Result", "opset1")
        + "</layers>\n<edges>\n"
        + '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>\n'
        + '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>\n</edges>\n</net>\n'
    )


def judged(text: str, target: str, **options: object) -> FileResult:
    return check_bytes(text.encode(), "m.xml", choose(targets=[target], **options))  # type: ignore[arg-type]


def word(text: str, target: str) -> str:
    (verdict,) = judged(text, target).verdicts
    return verdict.word


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (network(), "openvino=2023.0", "likely"),
        (network(), "openvino=2026.4", "likely"),
        (network(), "openvino>=2026.4", "likely"),
        # The opset of the layer
        (network("Gelu", "opset12"), "openvino=2023.1", "likely"),
        (network("ReLU", "opset12"), "openvino=2023.0", "blocked"),
        (network("ReLU", "opset14"), "openvino=2023.3", "blocked"),
        (network("ReLU", "opset14"), "openvino>=2023.0", "blocked"),
        (network("ReLU", "opset14"), "openvino=2024.0", "likely"),
        (network("Gelu", "opset7"), "openvino=2021.3", "blocked"),
        # Releases that were not measured are known only to refuse, and not what the release of the
        # previous opset and later ones may have of the next
        (network("Gelu", "opset7", version=10), "openvino=2021.2", "blocked"),
        (network("Gelu", "opset7", version=10), "openvino=2021.3", "unverified"),
        (network(version=10), "openvino=2021.4", "unverified"),
        (network(version=10), "openvino=2027.1", "unverified"),
        # The IR version
        (network(version=11), "openvino=2021.4", "blocked"),
        (network(version=10), "openvino=2023.0", "likely"),
        *((network(version=v), "openvino=2026.4", "blocked") for v in (2, 7, 8, 9, 12)),
        # An element type that the port contradicts: inference goes on with the port's
        (
            network().replace('element_type="f32"', 'element_type="u8"'),
            "openvino=2024.6",
            "unverified",
        ),
        # What nothing needs is not read
        (network("ReLU", "opset14").replace("Result", "Other"), "openvino=2023.3", "unverified"),
        # An operation of an extension, and an invalid file
        (network("Own", "extension"), "openvino=2024.6", "unverified"),
        (network("ReLU", "opset1").replace("</net>", ""), "openvino=2024.6", "unverified"),
        ("no file at all", "openvino=2024.6", "unverified"),
    ],
)
def test_verdicts(text: str, target: str, expected: str) -> None:
    assert word(text, target) == expected


OLD_IR = (
    HEAD
    + '<layer id="0" name="x" type="Input" precision="FP32"><output>'
    + ('<port id="0"><dim>2</dim></port></output></layer></layers></net>')
)


@pytest.mark.parametrize("version", range(2, 8))
@pytest.mark.parametrize(("target", "expected"), [("2020.4", "unverified"), ("2021.1", "blocked")])
def test_irs_of_version_2_to_7_were_read_up_to_2020_4(
    version: int, target: str, expected: str
) -> None:
    assert word(OLD_IR.format(version=version), f"openvino={target}") == expected
    assert [reads_ir(v, (2020, 4)) for v in range(1, 12)] == [
        *(False, *[True] * 6, False, False),  # 8 and 9 were never released
        *(True, False),
    ]


def test_no_static_verdict_says_verified() -> None:
    texts = [network(), network("Own", "extension"), network(opset="opset14")]
    words = {w for text in texts for _, w in judged(text, "openvino>=2020.1").verdicts[0].words}
    assert words == {"blocked", "unverified", "likely"}


def test_blocked_files_have_findings_and_name_the_layer() -> None:
    result = judged(network("ReLU", "opset14"), "openvino>=2022.1")
    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.line) == ("IR611", Severity.ERROR, 6)
    assert finding.layer == "'relu' (ReLU, id 1)"
    (verdict,) = result.verdicts
    (because,) = [b for b in verdict.because if b.blocks]
    assert because.line == 6
    assert (because.of[0], because.of[-1]) == ("2022.1", "2023.3")
    assert because.releases == "2022.1 to 2023.3"
    assert dict(verdict.words)["2023.3"] == "blocked"
    assert dict(verdict.words)["2024.0"] == "likely"


def test_layers_of_bodies_count() -> None:
    """A layer of opset14 in the body of a TensorIterator."""
    path = Path(__file__).parents[1] / "fixtures/bodies/tensor_iterator.xml"
    options = choose(targets=["openvino=2023.0"])
    text = path.read_text()
    head, tag, body = text.partition("<body>")
    newer = head + tag + body.replace('version="opset1"', 'version="opset14"')
    assert newer != text
    found = []
    for data in (text, newer):
        result = check_bytes(data.encode(), "m.xml", options, path.with_suffix(".bin"))
        found.append(result.verdicts[0].word)
    assert found == ["likely", "blocked"]


def test_findings_count_that_are_not_shown() -> None:
    """A wrong edge is an error: neither `ignore` nor a comment makes the file likely to run."""
    text = network().replace('to-layer="1" to-port="0"', 'to-layer="1" to-port="7"')
    silent = text.replace("<edge ", "<!-- deconv-lint: ignore --><edge ", 1)
    for changed, ignored in ((text, ["ALL"]), (silent, [])):
        (verdict,) = judged(changed, "openvino=2024.6", ignore=ignored).verdicts
        assert verdict.word in ("unverified", "blocked")
        assert any("IR204" in because.message for because in verdict.because)


@pytest.mark.parametrize("name", ["fused_names", "unheard_of"])
def test_runtime_info_is_looked_up(name: str) -> None:
    info = f'<rt_info><attribute name="{name}" version="0" value="a"/></rt_info>'
    assert word(network(extra=info), "openvino=2024.6") == "likely"


@pytest.mark.parametrize(
    "text",
    ["openvino", "openvino=lots", "openvino<2024.6", "tensorrt=10.0", "openvino=2022.9", "2024.6"],
)
def test_invalid_targets(text: str) -> None:
    with pytest.raises(InputError):
        parse_target(text)


def test_targets_are_read() -> None:
    assert parse_target("OpenVINO == 2024.6.0") == parse_target("openvino=2024.6")
    assert parse_target("openvino>=2026.3").releases == ((2026, 3), (2026, 4))
    assert set(OPSETS.values()) <= set(RELEASES)
    assert (
        shown_releases(frozenset({(2023, 3), (2024, 0), (2024, 2)})) == "2023.3 to 2024.0, 2024.2"
    )


class TestTable:
    TEXT = "releases 2023.0 2023.1 2023.2\n[Add-1]\n0-1?2: a b\n c\n-: d\n0,2: e\n"

    def test_lines_are_read(self) -> None:
        table = parse(self.TEXT)
        first, second, third = table.releases
        own = table.of("Add-1")
        assert own["c"] == own["a"] == Acceptance(frozenset({first, second}), frozenset({third}))
        assert own["d"].accepted == frozenset()
        assert own["e"].accepted == {first, third}
        assert table.of("Sub-1") == {}

    @pytest.mark.parametrize("written", ["0-2", "0,2", "1", "-"])
    def test_ranges_are_written_as_they_are_read(self, written: str) -> None:
        table = parse(f"releases 1.0 1.1 1.2\n[x]\n{written}: key\n")
        assert ranges(table.of("x")["key"].accepted, table.releases) == written

    def test_measured_opsets_are_those_of_the_documents(self) -> None:
        """A release reads the opset that the documents name for it, and a part of the next."""
        table = measured()
        assert len(table.releases) >= 9
        for opset, first in OPSETS.items():
            accepted = table.of("read")[f"ReLU-{opset}"].accepted
            assert {r for r in table.releases if r >= first} <= accepted


class TestCommand:
    @pytest.fixture(autouse=True)
    def _models(self, tmp_path: Path) -> None:
        (tmp_path / "models").mkdir()
        for name, text in {
            "new": network("ReLU", "opset14"),
            "old": network(version=10),
            "older": OLD_IR.format(version=6),
            "own": network("Own", "extension"),
        }.items():
            (tmp_path / f"models/{name}.xml").write_text(text)

    def test_text(self, lint: Lint) -> None:
        done = lint("models/new.xml", "--target", "openvino=2023.3")
        assert done.code == 1
        assert "models/new.xml: blocked on openvino=2023.3\n" in done.out
        assert "layer 'relu' (ReLU, id 1), line 6: OpenVINO 2023.3: " in done.out
        done = lint("models/new.xml", "--target", "openvino=2024.0")
        assert done.code == 0
        assert "models/new.xml: likely on openvino=2024.0\n" in done.out

    def test_json_and_the_cache(self, lint: Lint) -> None:
        arguments = (
            "models",
            "--target",
            "openvino>=2023.0",
            "--format",
            "json",
            "--cache-dir",
            "c",
        )
        first = lint(*arguments)
        assert first.code == 1
        files = {f["file"]: f["verdicts"] for f in json.loads(first.out)["files"]}
        (verdict,) = files["models/new.xml"]
        assert verdict["target"] == "openvino>=2023.0"
        assert verdict["verdict"] == "blocked"
        assert verdict["releases"]["2023.2"] == "blocked"
        assert verdict["reasons"][0]["layer"] == "'relu' (ReLU, id 1)"
        assert lint(*arguments) == first

    @pytest.mark.parametrize(
        ("format_", "part"),
        [("sarif", '"IR611"'), ("github", "::error title=IR611"), ("rdjson", '"IR611"')],
    )
    def test_services_get_what_blocks_as_findings(
        self, lint: Lint, format_: str, part: str
    ) -> None:
        assert (
            part in lint("models/new.xml", "--target", "openvino=2023.0", "--format", format_).out
        )

    def test_settings(self, lint: Lint, tmp_path: Path) -> None:
        (tmp_path / "deconv-lint.toml").write_text('target = ["openvino=2023.0"]')
        assert "blocked on openvino=2023.0" in lint("models/new.xml").out
        assert "openvino=2023.0" not in lint("models/new.xml", "--target", "openvino=2024.6").out
        (tmp_path / "deconv-lint.toml").write_text('target = ["openvino=23"]')
        done = lint("models/new.xml")
        assert done.code == 2
        assert "deconv-lint.toml" in done.err

    def test_needs(self, lint: Lint) -> None:
        rows = lint("--needs", "models").out.splitlines()
        new, old, older, own = rows
        assert new.startswith("models/new.xml: 2024.0: layer 'relu' (ReLU, id 1), line 6: ")
        assert old.startswith("models/old.xml: 2020.1 (likely from 2023.0 on)")
        assert older.startswith("models/older.xml: 2020.1 to 2020.4")
        assert "IR version 6 was read last by OpenVINO 2020.4" in older
        assert own.startswith(
            "models/own.xml: 2022.1 (likely on no release): OpenVINO 2020.1 to 2021.4"
        )

    def test_needs_for_programs(self, lint: Lint) -> None:
        (row,) = json.loads(lint("--needs", "models/new.xml", "--format", "json").out)
        assert (row["oldest"], row["likely"], row["last"]) == ("2024.0", "2024.0", None)
        assert (row["layer"], row["line"]) == ("'relu' (ReLU, id 1)", 6)

    @pytest.mark.parametrize(
        "arguments", [("--needs", "--target", "openvino=2024.6"), ("--needs", "--fix")]
    )
    def test_mistakes(self, lint: Lint, arguments: tuple[str, ...]) -> None:
        assert lint("models", *arguments).code == 2


class TestTrial:
    """The process that has OpenVINO, here a program that answers by the name of the file."""

    ANSWERS = """#!{python}
import json, os, sys
print(json.dumps(["version", "2026.4.1-1-abc"]), flush=True)
for line in sys.stdin:
    path, weights, compiles = json.loads(line)
    if "crash" in path:
        os._exit(3)
    if "hang" in path:
        sys.stdin.read()
    answer = ["compiling", "no\\nsuch layer"] if "bad" in path else ["accepted", ""]
    print(json.dumps(answer), flush=True)
"""

    @pytest.fixture
    def python(self, tmp_path: Path) -> str:
        path = tmp_path / "python"
        path.write_text(self.ANSWERS.replace("{python}", sys.executable))
        path.chmod(0o755)
        return str(path)

    def test_each_end_is_an_answer(self, python: str) -> None:
        with Trial(python, timeout=5) as trial:
            steps = [trial.ask(f).step for f in ("good", "crash", "bad", "good", "crash", "good")]
        assert steps == ["accepted", "crash", "compiling", "accepted", "crash", "accepted"]
        with Trial(python, timeout=0.3) as trial:
            assert [trial.ask(f).step for f in ("hang", "good")] == ["timeout", "accepted"]

    def test_without_openvino(self, tmp_path: Path) -> None:
        path = tmp_path / "python"
        path.write_text(f'#!{sys.executable}\nprint(\'["missing", "No module named openvino"]\')')
        path.chmod(0o755)
        with pytest.raises(MissingOpenVINOError, match="No module"):
            Trial(str(path)).start()

    def test_verify(
        self, lint: Lint, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("good", "bad", "crash"):
            (tmp_path / f"{name}.xml").write_text(network())
        monkeypatch.setattr(sys, "executable", python)
        done = lint("good.xml", "--verify")
        assert done.code == 0
        assert "good.xml: verified on openvino=2026.4.1\n" in done.out
        done = lint("bad.xml", "crash.xml", "--verify")
        assert done.code == 1
        assert "bad.xml: blocked on openvino=2026.4.1\n" in done.out
        assert "OpenVINO 2026.4: compiling: no such layer" in done.out
        assert "crash.xml: blocked on openvino=2026.4.1\n" in done.out

    def test_verify_without_openvino(
        self, lint: Lint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "good.xml").write_text(network())
        monkeypatch.setattr(sys, "executable", "/bin/false")
        done = lint("good.xml", "--verify")
        assert done.code == 2
        assert done.err.startswith("error: --verify needs OpenVINO")


class TestMeasuring:
    """How tools/check_targets.py concludes from answers to small networks."""

    @staticmethod
    def rows(answers: dict[str, str]) -> dict[str, str]:
        """Return the state of each part, for networks whose parts are separated by blanks."""
        from check_targets import table
        from target_answers import Answers, File
        from target_forms import Network

        forms = [Network("Own-1", tuple(p.split()), 0, p, b"") for p in answers]
        by_key = {File(parts, b"").key: said for parts, said in answers.items()}
        release = (2024, 6)
        found = table([Answers(release, by_key)], forms)["Own-1"]
        return {
            key: "yes" if release in yes else "unclear" if release in unclear else "no"
            for key, (yes, unclear) in found.items()
        }

    @pytest.mark.parametrize(
        ("answers", "expected"),
        [
            (
                {"a b": "accepted", "a c": "compiling"},
                {"a": "yes", "b": "yes", "c": "no", "*": "yes"},
            ),
            # Two parts that nothing accepts: either may be at fault.
            ({"a": "accepted", "b c": "crash"}, {"a": "yes", "b": "unclear", "c": "unclear"}),
            # Accepted alone, refused together
            ({"a c": "accepted", "b d": "accepted", "a b": "crash"}, {"a&b": "no", "a": "yes"}),
            # The same parts, accepted and refused: something else decides.
            ({"a b": "accepted", "b a": "reading"}, {"a&b": "unclear", "a": "yes"}),
            # No form is accepted: only the plugin's word for an unknown operation is clear.
            ({"a": "compiling"}, {"*": "unclear"}),
            ({"a": "compiling Unsupported operation of type"}, {"*": "no"}),
        ],
    )
    def test_parts(self, answers: dict[str, str], expected: dict[str, str]) -> None:
        found = self.rows(answers)
        assert {key: found[key] for key in expected} == expected

    def test_rules(self) -> None:
        """Eight refused files with one finding alone block; three accepted ones are harmless."""
        from target_answers import Answers, File
        from target_rules import Mutant, rule_rows

        mutants, by_key = [], {File("base", b"").key: "accepted"}
        for code, answers in {
            "IR1": ["reading"] * 8,
            "IR2": ["accepted"] * 3,
            "IR3": ["reading"] * 7,
            "IR4": [*["accepted"] * 9, "crash"],
        }.items():
            for number, said in enumerate(answers):
                text = f"{code} {number}"
                mutants.append(Mutant(text, b"", frozenset({code}), ("base", b"")))
                by_key[File(text, b"").key] = said
        found = rule_rows(mutants, [Answers((2024, 6), by_key)])
        state = {code: (len(yes), len(unclear)) for code, (yes, unclear) in found.items()}
        assert state == {"IR1": (0, 0), "IR2": (1, 0), "IR3": (0, 1), "IR4": (0, 1)}

    def test_a_release_between_two_is_asked_where_they_differ(self) -> None:
        from target_answers import Answers, File, completed, disputed

        files = [File(text, b"") for text in "abcd"]
        keys = [file.key for file in files]
        said = ("reading", "reading", "accepted", "crash")
        old = Answers((2023, 0), dict(zip(keys, said, strict=True)))
        new = Answers((2025, 0), dict(zip(keys, ["reading", *["accepted"] * 3], strict=True)))
        assert disputed((2024, 0), [old, new], files) == [files[1], files[3]]
        middle = Answers((2024, 0), {keys[1]: "accepted", keys[3]: "reading"})
        _, found, _ = completed([old, middle, new], files)
        assert [found.of(file) for file in files] == ["reading", "accepted", "accepted", "reading"]
        with pytest.raises(SystemExit):
            completed([old, middle], files)
