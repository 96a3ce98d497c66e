"""The server that tests and programs start with `tools/server_process.py`."""

import os
from pathlib import Path

import httpx

from server_process import serving

# A log that is larger than what a pipe holds.
TALKATIVE = """
import sys
if "serve" in sys.orig_argv:
    sys.stderr.write("x" * 2**18)
"""


def test_a_long_log_does_not_stop_the_server(models, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(TALKATIVE, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with serving([models["translator"]], {**os.environ, "PYTHONPATH": path}) as address:
        assert httpx.get(f"{address}/healthz").status_code == 200
