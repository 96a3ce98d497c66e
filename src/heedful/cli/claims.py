"""`heedful claims`."""

from __future__ import annotations

import click

from heedful.claims.table import CLAIMS
from heedful.machine.torch_needed import needs_torch

HELP = f"""Measure what the papers say about Transformers, on this machine.

Each claim has its statement and source, what was run, plots, numbers with their spread over seeds, and a verdict: it
holds, holds in part, does not hold at this size, or the run was too short to tell. All of them go onto one page that
needs no network, and into a JSON file beside it. Without NAME, all claims are measured. With --quick, those that take
long show the result of the full run that comes with heedful's source code, labelled as such.

What has been measured is kept in a folder beside the page (claims.work for claims.html). If it was stopped or killed,
the same command continues, and measures again only what has changed.

\b
{chr(10).join(f"{claim.name:18} {claim.title}" for claim in CLAIMS.values())}

\b
heedful claims --quick
heedful claims variance masking
heedful claims --out docs/claims/claims.html
"""


@click.command(help=HELP)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Ten minutes on two cores, instead of two and a half hours.")
@click.option(
    "--out", default="claims.html", show_default=True, metavar="FILE", help="The page; its JSON goes beside it."
)
@needs_torch("measuring claims")
def claims(names: tuple[str, ...], quick: bool, out: str) -> None:
    """Measure claims, and write the page and its JSON."""
    import json

    from rich.console import Console

    from heedful.claims.display import ClaimDisplay
    from heedful.claims.page import claims_page
    from heedful.claims.results import run_document
    from heedful.claims.runner import chosen_claims, run_claims
    from heedful.cli.output_file import output_path
    from heedful.errors import UserError
    from heedful.files import write_file
    from heedful.machine.torch_needed import has_torch, torch_missing
    from heedful.storage import writing

    path = output_path(out, "--out", "claims.html")
    if path.suffix != ".html":
        raise UserError(f"--out is {out!r}: a page is a file that ends in .html")
    if not path.parent.is_dir():
        raise UserError(f"--out is {out!r}, but there is no folder {path.parent}: make it, or choose another place")
    chosen = chosen_claims(names)
    if not has_torch():
        raise torch_missing("measuring claims")
    command = " ".join(["heedful claims", *names, *(["--quick"] if quick else [])])
    console = Console(stderr=True)
    with writing(path), ClaimDisplay(console) as display:
        rows = run_claims(chosen, quick, path.with_suffix(".work"), display)
    write_file(path, claims_page(rows, quick, command))
    write_file(path.with_suffix(".json"), json.dumps(run_document(rows, quick, command), indent=1) + "\n")
    console.print(f"written to {path} and {path.with_suffix('.json')}", highlight=False, soft_wrap=True)
