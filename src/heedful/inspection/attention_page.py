"""The attention page: one file with its style, its program and its data, which asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import Any

# The viewer's modules, each behind those that it imports.
VIEWER_MODULES = (
    "attention_elements.js",
    "attention_document.js",
    "attention_selection.js",
    "attention_colours.js",
    "attention_outputs.js",
    "attention_matrix.js",
    "attention_lines.js",
    "attention_readout.js",
    "attention_image.js",
    "attention_overview.js",
    "attention_view.js",
)
VIEWER_STYLE = "attention_view.css"

_IMPORT = re.compile(r'^import [^;]*? from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)


def page_file(name: str) -> str:
    """The text of one of the page's files."""
    return (files("heedful.inspection") / "page" / name).read_text(encoding="utf-8")


def attention_page(document: dict[str, Any]) -> str:
    """The page for an attention document."""
    title = f"Attention of {document['model'] or 'a model'}"
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    style = "\n" + "\n".join(page_file(name) for name in (VIEWER_STYLE, "attention_page.css"))
    modules = (page_file(name) for name in (*VIEWER_MODULES, "attention_page.js"))
    program = "\n" + "\n".join(_EXPORT.sub("", _IMPORT.sub("", module)) for module in modules)
    policy = f"default-src 'none'; script-src '{_digest(program)}'; style-src '{_digest(style)}'; img-src data: blob:"
    # Neither the data nor the title can hold a comment, so that no part can be taken for the place of another.
    parts = {
        "title": html.escape(title),
        "policy": f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        "style": f"<style>{style}</style>",
        "data": f'<script type="application/json" id="attention-document">{data}</script>',
        "program": f'<script type="module">{program}</script>',
    }
    return re.sub(r"<!-- (\w+) -->", lambda match: parts[match[1]], page_file("attention_page.html"))


def notebook_frame(page: str) -> str:
    """A page as a cell of a notebook shows it: in a frame that can reach nothing outside of it."""
    return (
        f'<iframe title="Attention" sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
        'style="width:100%;height:760px;border:0"></iframe>'
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
