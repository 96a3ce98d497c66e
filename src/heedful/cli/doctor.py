"""`heedful doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write what was found as JSON.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check that heedful can work on this machine.

    Shows the versions of what is installed, the device, cores, memory and disk. If PyTorch is there, it then trains a
    tiny model in a temporary folder within seconds, saves and loads it, and translates with it in batches of two sizes,
    which must give the same bits. Each line says ok or not ok, and what to do; the exit code is 1 if something is not
    ok.

    \b
    heedful doctor
    heedful doctor --json > report.json
    """
    from heedful.doctor.checks import check_machine

    checks = []
    for check in check_machine():
        checks.append(check)
        if not as_json:
            advice = "" if check.ok or not check.advice else f": {check.advice}"
            click.echo(f"{'ok' if check.ok else 'not ok':<6}  {check.name:<15}  {check.found}{advice}")
    ok = all(check.ok for check in checks)
    if as_json:
        rows = [{**asdict(each), "advice": None if each.ok else each.advice} for each in checks]
        click.echo(json.dumps({"ok": ok, "checks": rows}, indent=1, ensure_ascii=False))
    context.exit(0 if ok else 1)
