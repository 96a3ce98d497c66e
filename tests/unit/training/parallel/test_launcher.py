import errno
import signal
import subprocess
import sys

import pytest

from heedful.errors import UserError
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


def test_processes_end_if_a_later_one_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def limited(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        if len(started) == 2:
            raise BlockingIOError(errno.EAGAIN, "too many processes")
        started.append(start([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", limited)
    try:
        with pytest.raises(UserError, match=r"process 2 could not be started \(too many processes\)"):
            launcher.run_processes(3, ["train"])
        assert [process.wait(10) != 0 for process in started] == [True, True]
    finally:
        for process in started:
            process.kill()
