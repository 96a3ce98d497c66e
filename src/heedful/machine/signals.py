"""The signals that ask a process to end cleanly."""

from __future__ import annotations

import signal


def ending_signals() -> list[signal.Signals]:
    """SIGTERM, and SIGHUP, which a closing terminal sends, unless the process should survive that (nohup)."""
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is None or signal.getsignal(hangup) == signal.SIG_IGN:
        return [signal.SIGTERM]
    return [signal.SIGTERM, hangup]
