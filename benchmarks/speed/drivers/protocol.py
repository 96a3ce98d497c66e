"""How a driver is spoken to: a JSON object a line on standard input, an answer a line on standard output.

`{"do": "load", ...}` calls the driver's function of that name with the other keys as arguments. This file and its
neighbours run in the environments of peers, and import nothing of heedful.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def serve(actions: dict[str, Callable[..., Any]]) -> None:
    """Answer requests until there are no more."""
    # Whatever a library prints must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": actions[request.pop("do")](**request)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def versions(*packages: str) -> dict[str, str]:
    """The versions of some packages, as far as they are there."""
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
