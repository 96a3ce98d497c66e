"""The signals that ask a process to end in good order."""

from __future__ import annotations

import signal


def ending_signals() -> list[signal.Signals]:
    """SIGTERM, and that of a terminal's end, unless the process is to survive it (nohup)."""
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is None or signal.getsignal(hangup) == signal.SIG_IGN:
        return [signal.SIGTERM]
    return [signal.SIGTERM, hangup]
