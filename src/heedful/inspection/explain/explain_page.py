"""The page that explains a computation: one file with its style, its program and its data."""

from __future__ import annotations

import html
from typing import Any

from heedful.inspection.standalone_page import page_file, standalone_page

# The viewer's modules, each after those that it imports.
VIEWER_MODULES = (
    "attention_elements.js",
    "attention_colours.js",
    "packing.js",
    "page_changes.js",
    "explain_document.js",
    "explain_colours.js",
    "explain_state.js",
    "explain_matrix.js",
    "explain_numbers.js",
    "explain_step.js",
    "explain_drawing.js",
    "explain_player.js",
    "explain_answers.js",
    "explain_switches.js",
    "explain_view.js",
)
VIEWER_STYLES = ("explain_view.css", "explain_steps.css")


def explain_page(document: dict[str, Any]) -> str:
    """The page for a document."""
    title = f"How {document['model'] or 'a model'} computes"
    styles, modules = (*VIEWER_STYLES, "attention_page.css"), (*VIEWER_MODULES, "page_theme.js", "explain_page.js")
    body = page_file("explain_page.html").replace("<!-- title -->", html.escape(title))
    return standalone_page(title, styles, modules, document, body)
