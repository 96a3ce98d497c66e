"""Training goes on where memory is short."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import resource, sys, torch
from heedful.cli.main import main
import heedful.training.run, heedful.training.display
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = in_use + int(sys.argv.pop(1)) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
main()
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit a process's memory")
def test_a_batch_that_does_not_fit_is_split_and_the_run_goes_on(tmp_path: Path, make_sentences) -> None:
    lines = make_sentences(3000, seed=13, longest=40)
    (tmp_path / "a.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines))
    command = [sys.executable, "-c", PROGRAM, "700", "train", "translation", "--tsv", str(tmp_path / "a.tsv")]
    settings = ["training.batches={tokens_per_step=60000, tokens_per_batch=60000}", "training.machine.workers=1"]
    options = ["--out", str(tmp_path / "out"), "--steps", "2", *(f"--set={each}" for each in settings)]
    result = subprocess.run([*command, *options], capture_output=True, timeout=300)
    text = result.stderr.decode()
    assert result.returncode == 0, text[-2000:]
    assert "a batch did not fit into memory" in text
    assert "done" in text
