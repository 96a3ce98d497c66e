"""The attention page: one file with its style, its program and its data, which needs no network."""

from __future__ import annotations

import html
from typing import Any

from heedful.inspection.standalone_page import page_file, standalone_page

# The viewer's modules, each after those that it imports.
VIEWER_MODULES = (
    "attention_elements.js",
    "packing.js",
    "page_changes.js",
    "attention_document.js",
    "attention_selection.js",
    "attention_colours.js",
    "attention_outputs.js",
    "attention_matrix.js",
    "attention_lines.js",
    "attention_readout.js",
    "attention_legend.js",
    "attention_image.js",
    "attention_overview.js",
    "attention_detail.js",
    "attention_view.js",
)
VIEWER_STYLES = ("attention_view.css", "attention_maps.css")


def attention_page(document: dict[str, Any]) -> str:
    """The page for an attention document."""
    title = f"Attention of {document['model'] or 'a model'}"
    styles, modules = (*VIEWER_STYLES, "attention_page.css"), (*VIEWER_MODULES, "page_theme.js", "attention_page.js")
    body = page_file("attention_page.html").replace("<!-- title -->", html.escape(title))
    return standalone_page(title, styles, modules, document, body)


def notebook_frame(page: str) -> str:
    """A page for a notebook cell: in a frame that can reach nothing outside itself."""
    return (
        f'<iframe title="Attention" sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
        'style="width:100%;height:760px;border:0"></iframe>'
    )
