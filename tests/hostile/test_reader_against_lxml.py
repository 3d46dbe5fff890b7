"""Compare the reader's elements with lxml's tree, for unusual but well-formed documents.

The reader lets lxml check that a document is well formed, then scans the text itself to know
offsets.  The oracle is lxml's own tree.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from lxml import etree

from deconv_ir.formats.openvino_xml.scanner import Element, scan
from deconv_ir.formats.openvino_xml.text import XMLText

NAMES = ("net", "a", "layer", "x-y", "n:b", "\u00e9t\u00e9", "_.1")
TEXTS = (
    "",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "1",
    "a>b",
    "'",
    '"',
    "]]",
    "--",
    "\u00e9",
    "\U0001f600",
    "?>",
    "/>",
    "=",
)
ESCAPES = (
    "&lt;",
    "&gt;",
    "&amp;",
    "&quot;",
    "&apos;",
    "&#60;",
    "&#x3C;",
    "&#10;",
    "&#xe9;",
    "&#9;",
    "&#13;",
)
HIDDEN = (
    *("<!---->", "<!-- < & <a> ' \" -->", "<!--\n-->", "<!-- - -->", "<!--<![CDATA[-->"),
    *("<?p?>", "<?p <a> -->?>", "<?p ' ?>", "<?p\n??>"),
)
CDATA = ("<![CDATA[]]>", "<![CDATA[<a>&amp;</a>]]>", "<![CDATA[<!-- ]]>", '<![CDATA[]] >"]]>')
SPACES = ("", " ", "\n", "\t", "  ")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "iso-8859-1")


class Writer:
    """Write well-formed documents in random forms that XML allows."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def document(self) -> str:
        """Write a whole document."""
        before = "".join(self.some((*HIDDEN, "\n")))
        after = "".join(self.some((*HIDDEN, "\n")))
        return before + self.element(0, ' xmlns:n="u"') + after

    def some(self, choices: tuple[str, ...], most: int = 3) -> Iterator[str]:
        return (self.draw.choice(choices) for _ in range(self.draw.randrange(most)))

    def element(self, depth: int, more: str = "") -> str:
        draw = self.draw
        name = draw.choice(NAMES)
        written = name + "".join(self.attributes()) + more + draw.choice(SPACES)
        if draw.random() < 0.3:
            return f"<{written}/>"
        inner = "".join(
            self.element(depth + 1)
            if draw.random() < 0.4 and depth < 4
            else draw.choice(TEXTS + ESCAPES + HIDDEN + CDATA)
            for _ in range(draw.randrange(6))
        )
        return f"<{written}>{inner}</{name}{draw.choice(SPACES)}>"

    def attributes(self) -> Iterator[str]:
        draw = self.draw
        for name in draw.sample(("id", "name", "n:k", "\u00e9", "x-y"), draw.randrange(5)):
            quote = draw.choice("'\"")
            value = "".join(self.some(TEXTS + ESCAPES, 5)).replace(quote, "")
            equals = f"{draw.choice(SPACES)}={draw.choice(SPACES)}"
            yield f" {draw.choice(SPACES)}{name}{equals}{quote}{value}{quote}"


def own(element: Element) -> tuple:
    attributes = {k: v for k, v in element.attributes().items() if not k.startswith("xmlns")}
    return element.tag, attributes, text_of(element.text()), [own(c) for c in element.children]


def text_of(text: str) -> str:
    """Return the text as the reader uses it, without white space around and within it."""
    return "".join(text.split())


def oracle(element: etree._Element) -> tuple:
    def local(name: str) -> str:
        return name.replace("{u}", "n:")

    attributes = {local(k): v for k, v in element.attrib.items()}
    return (
        local(str(element.tag)),
        attributes,
        text_of(element.text or ""),
        [oracle(c) for c in element],
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_same_elements(encoding: str) -> None:
    compared = 0
    for seed in range(600):
        text = Writer(seed).document()
        if encoding in ("iso-8859-1", "utf-16-le"):
            declared = {"utf-16-le": "utf-16"}.get(encoding, encoding)
            text = f'<?xml version="1.0" encoding="{declared}"?>{text}'
        data = text.encode(encoding, "xmlcharrefreplace")
        parser = etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)
        try:
            tree = etree.fromstring(data, parser)
        except etree.XMLSyntaxError:
            continue  # a name outside the encoding, or "]]>" in text
        xml = XMLText(data)
        assert len(xml.markup) == len(xml.text)
        (root,) = scan(xml.markup)
        assert own(root) == oracle(tree), text
        assert xml.edited([]) == data
        compared += 1
    assert compared > 300


def test_spans_lead_to_what_they_name() -> None:
    for seed in range(300):
        xml = XMLText(Writer(seed).document().encode())
        stack = list(scan(xml.markup))
        while stack:
            element = stack.pop()
            stack += element.children
            assert xml.text[element.start : element.start + 1 + len(element.tag)] == (
                f"<{element.tag}"
            )
            assert xml.text[element.end - 1] == ">"
            for name, (start, first, last) in element.attribute_spans().items():
                assert xml.text.startswith(name, start)
                assert xml.text[first - 1] == xml.text[last] in "'\""
