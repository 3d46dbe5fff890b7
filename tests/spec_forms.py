"""One correct example, in every form in which documents print it."""

from __future__ import annotations

import html
import re
import textwrap

# 2*(4 - 1) + 3 - 1 - 1 = 7 and, with dilation 2 on the second axis, 2*(5 - 1) + 5 - 1 - 1 = 11.
XML = """\
<layer id="5" name="up" type="ConvolutionBackpropData">
    <data dilations="1,2" pads_begin="1,1" pads_end="1,1" strides="2,2"/>
    <input>
        <port id="0">
            <dim>1</dim>
            <dim>20</dim>
            <dim>4</dim>
            <dim>5</dim>
        </port>
        <port id="1">
            <dim>20</dim>
            <dim>10</dim>
            <dim>3</dim>
            <dim>3</dim>
        </port>
    </input>
    <output>
        <port id="0" precision="FP32">
            <dim>1</dim>
            <dim>10</dim>
            <dim>7</dim>
            <dim>11</dim>
        </port>
    </output>
</layer>
"""
SHAPE = (1, 10, 7, 11)


def pygments(xml: str) -> str:
    """Colour XML as Sphinx does."""
    text = html.escape(xml, quote=False)
    text = re.sub(r"&lt;(/?)(\w+)", r'<span class="nt">&lt;\1\2</span>', text)
    text = re.sub(r'(\w+)=("[^"]*")', r'<span class="na">\1=</span><span class="s">\2</span>', text)
    text = re.sub(r"(/?)&gt;", r'<span class="nt">\1&gt;</span>', text)
    # The spans' own attributes were coloured too: restore them.
    return re.sub(
        r'<span <span class="na">class=</span><span class="s">("\w+")</span>',
        r"<span class=\1",
        text,
    )


def prism(xml: str) -> str:
    """Colour XML as Prism does, with separate spans for bracket and name."""
    text = html.escape(xml)
    text = re.sub(
        r"&lt;(/?)(\w+)",
        r'<span class="token tag"><span class="token punctuation">&lt;\1</span>\2</span>',
        text,
    )
    return text.replace("&gt;", '<span class="token punctuation">&gt;</span>')


def indented(xml: str, prefix: str) -> str:
    """Put a prefix before each line."""
    return textwrap.indent(xml, prefix)


def spread(xml: str) -> str:
    """Damage the layout: no indentation, blank lines between lines, dims' text on its own line."""
    lines = [line.strip() for line in xml.splitlines()]
    return re.sub(r"<dim>(\d+)</dim>", r"<dim>\n\n\1\n\n</dim>", "\n\n".join(lines))


def curly(xml: str) -> str:
    """Damage the characters: make quotation marks and dashes typographic."""
    return re.sub(r'"([^"]*)"', "\u201c\\1\u201d", xml).replace("--", "\u2013")


FORMS = {
    "plain text": f"Example\n\n{XML}\nMore text.\n",
    "without a last line end": f"Example\n\n{XML}".rstrip(),
    "Markdown, fenced": f"# Op\n\n```xml\n{XML}```\n\nText.\n",
    "Markdown, fenced with tildes": f"# Op\n\n~~~~\n{XML}~~~~\n",
    "Markdown, indented": f"# Op\n\n{indented(XML, '    ')}\nText.\n",
    "Markdown, in a quotation": f"# Op\n\n{indented(XML, '> ')}\n",
    "Markdown, fenced in a list": f"1. One\n\n{indented(f'```xml{chr(10)}{XML}```', '   ')}\n",
    "reStructuredText, code-block": (
        f"Op\n==\n\n.. code-block:: xml\n   :force:\n\n{indented(XML, '   ')}\nText.\n"
    ),
    "reStructuredText, literal block": f"Op\n==\n\nExample::\n\n{indented(XML, '  ')}\nText.\n",
    "HTML, escaped": f"<html><body><pre>\n{html.escape(XML)}</pre></body></html>\n",
    "HTML, numeric entities": (
        "<pre>" + XML.replace("<", "&#60;").replace(">", "&#x3E;") + "</pre>\n"
    ),
    "HTML, coloured by Pygments": f'<div class="highlight"><pre>\n{pygments(XML)}</pre></div>\n',
    "HTML, coloured by Prism": f"<pre><code>{prism(XML)}</code></pre>\n",
    "HTML, with non-breaking spaces": (
        "<p>" + html.escape(XML).replace("    ", "&nbsp;" * 4).replace("\n", "<br/>\n") + "</p>\n"
    ),
    "damaged: blank lines everywhere": f"Example\n{spread(XML)}",
    "damaged: typographic quotes": f"Example\n{curly(XML)}",
    "damaged: all on one line": f"Example {' '.join(XML.split())} and on.\n",
    "damaged: no </layer>": f"Example\n\n{XML.replace('</layer>', '')}\nMore text ...\n",
    "damaged: no </input> and </output>": re.sub(r"</(in|out)put>", "", XML),
    "damaged: no </port>": XML.replace("</port>", ""),
    "damaged: no </dim>": XML.replace("</dim>", ""),
    "damaged: commas between attributes": XML.replace('" ', '", '),
    "elided: layer attributes": XML.replace('id="5" name="up"', "...").replace(
        'Data">', 'Data" ...>'
    ),
    "line ends of Windows": XML.replace("\n", "\r\n"),
    "line ends of old Macs": XML.replace("\n", "\r"),
    "single quotes": XML.replace('"', "'"),
    "spaces in dims and attributes": XML.replace("<dim>", "<dim> ").replace('="', ' = "'),
}
