import signal
import subprocess
import sys

import pytest

from heedful.training.parallel import launcher


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_process_that_was_killed_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(launcher, "GRACE_SECONDS", 0.1)
    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    processes = [subprocess.Popen(waits) for _ in range(3)]
    processes[1].kill()
    assert launcher._wait(processes) == 128 + signal.SIGKILL
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("heedful: process 1 was ended by SIGKILL")


def test_the_exit_code_is_that_of_a_process_that_ended_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "GRACE_SECONDS", 0.1)
    programs = ["import time; time.sleep(60)", "import sys; sys.exit(2)"]
    processes = [subprocess.Popen([sys.executable, "-c", program]) for program in programs]
    assert launcher._wait(processes) == 2
