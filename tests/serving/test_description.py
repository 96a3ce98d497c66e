"""The server keeps to its description, whatever is sent to it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CONFIG = """
[checks.positive_data_acceptance]
# What fits the description may still not be possible (400: an image that is none, a text without a mask).
expected-statuses = ["2xx", "400", "404"]
"""


@pytest.fixture(scope="module")
def server(start, models) -> Iterator:
    """One that takes little at a time, so that the largest requests are answered soon."""
    limits = ["--max-texts", "3", "--max-characters", "61", "--max-tokens", "5"]
    with start(*models.values(), "--workers", "1", *limits) as running:
        yield running


def test_schemathesis_finds_no_failure(server, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    command = [Path(sys.executable).with_name("schemathesis"), "run", f"{server.url}/openapi.json"]
    command += ["--max-examples", "5", "--seed", "1", "--request-timeout", "60"]
    command += ["--exclude-path", "/api/attention", "--exclude-path", "/api/explain"]
    environment = {**os.environ, "PYTHONWARNINGS": "", "COLUMNS": "150"}
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    assert result.returncode == 0, result.stdout[-6000:]
