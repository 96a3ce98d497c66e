"""A web page in one file, with its style, its program and its data, which needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

_IMPORT = re.compile(r'^import [^;]*? from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)


def standalone_page(
    title: str, styles: Sequence[str], modules: Sequence[str], document: dict[str, Any], body: str = ""
) -> str:
    """A page made of style sheets and modules, each module after those that it imports.

    The program finds the document as JSON in the element `document`; `body` is HTML that goes before it.
    """
    style = "\n".join(page_file(name) for name in styles)
    # In one script they share their names, and need no imports from each other.
    program = "\n".join(_EXPORT.sub("", _IMPORT.sub("", page_file(name))) for name in modules)
    # Escaped, so that no text in the data can end the element that holds it.
    data = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    sources = f"script-src '{_digest(program)}'; style-src '{_digest(style)}'; img-src data: blob:"
    policy = f"default-src 'none'; {sources}; base-uri 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
{body}<noscript>This page draws itself with JavaScript, which is switched off.</noscript>
<script type="application/json" id="document">{data}</script>
<script type="module">{program}</script>
</body>
</html>
"""


def page_file(name: str) -> str:
    """The text of one of the pages' files."""
    return (files("heedful.inspection") / "page" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
