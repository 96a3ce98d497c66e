"""Two hosts on one machine: network namespaces with names and addresses of their own, on a switch.

Needs Linux, root, and the programs `ip` (iproute2) and `unshare` (util-linux).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

NETWORK = "10.213.7"
# As a Debian machine has it, the own name of a host stands for a loopback address.
OWN_NAME = "127.0.1.1"
# How often a host sends again before it gives a connection up: for some 10 s here, for 15 minutes by default.
TCP_RETRIES = 5
ENTER = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'


def why_not() -> str | None:
    """Why there can be no such hosts here, if so."""
    if sys.platform != "linux":
        return "network namespaces are of Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "unshare", "mount", "hostname"):
        if shutil.which(program) is None:
            return f"there is no program {program}"
    try:
        with Hosts(["probe"]):
            return None
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made: {error.stderr.strip()}"


class Hosts:
    """Hosts that know each other by name, as long as the block lasts; all that runs on them ends with it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.switch = self._namespace("switch")
        self.files = tempfile.TemporaryDirectory(prefix="heedful-hosts-")

    def _namespace(self, name: str) -> str:
        return f"heedful-{os.getpid()}-{name}"

    def address(self, name: str) -> str:
        """The address of a host."""
        return f"{NETWORK}.{self.names.index(name) + 1}"

    def __enter__(self) -> Hosts:
        try:
            _ip("netns", "add", self.switch)
            _ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self.switch, "link", "set", "bridge", "up")
            for name in self.names:
                self._add(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _add(self, name: str) -> None:
        host = self._namespace(name)
        _ip("netns", "add", host)
        _ip("link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", name, "netns", self.switch)
        _ip("-n", self.switch, "link", "set", name, "master", "bridge")
        self.plug_in(name)
        _ip("-n", host, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            _ip("-n", host, "link", "set", interface, "up")
        _ip("-n", host, "route", "add", "default", "via", f"{NETWORK}.254")
        _ip("netns", "exec", host, "sh", "-c", f"echo {TCP_RETRIES} > /proc/sys/net/ipv4/tcp_retries2")
        known = {each: OWN_NAME if each == name else self.address(each) for each in self.names}
        lines = ["127.0.0.1 localhost", *(f"{address} {each}" for each, address in known.items())]
        Path(self.files.name, name).write_text("\n".join(lines) + "\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self.names:
            for process in self.processes(name):
                _kill(process)
        for namespace in (*map(self._namespace, self.names), self.switch):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)
        self.files.cleanup()

    def start(self, name: str, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Run a command on a host; what it says goes into a file."""
        entering = ["ip", "netns", "exec", self._namespace(name), "unshare", "--mount", "--uts"]
        inside = ["sh", "-c", ENTER, name, str(Path(self.files.name, name)), *command]
        with log.open("ab") as file:
            return subprocess.Popen([*entering, *inside], stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def unplug(self, name: str) -> None:
        """Cut a host off: it keeps its address, and hears nothing."""
        _ip("-n", self.switch, "link", "set", name, "down")

    def plug_in(self, name: str) -> None:
        """Connect a host to the others."""
        _ip("-n", self.switch, "link", "set", name, "up")

    def processes(self, name: str) -> list[int]:
        """All that runs on a host."""
        found = subprocess.run(["ip", "netns", "pids", self._namespace(name)], capture_output=True, text=True)
        return [int(each) for each in found.stdout.split()]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
