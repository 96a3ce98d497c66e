"""The network interface through which the processes of a run talk to each other."""

from __future__ import annotations

import os
import socket
import struct
import sys
from ipaddress import ip_address

SIOCGIFADDR = 0x8915
# An address that no machine has (RFC 5737), reached through the default route; nothing is sent.
ELSEWHERE = "192.0.2.1"


def choose_interface() -> None:
    """Tell gloo its interface, unless the user has: by default it takes the address that the machine's name stands for.

    On many machines that is a loopback address, through which no other machine can be reached.
    """
    if sys.platform != "linux" or "GLOO_SOCKET_IFNAME" in os.environ:
        return
    everywhere, here = os.environ.get("WORLD_SIZE"), os.environ.get("LOCAL_WORLD_SIZE")
    name = "lo" if everywhere == here else interface_towards(os.environ["MASTER_ADDR"])
    if name:
        os.environ["GLOO_SOCKET_IFNAME"] = name


def interface_towards(host: str) -> str | None:
    """The interface by which other machines reach this one, given the name of one of those, or of this one."""
    for target in (host, ELSEWHERE):
        own = _own_address(target)
        if own and not ip_address(own).is_loopback:
            return _interface_of(own)
    return None


def _own_address(host: str) -> str | None:
    """The address of this machine on the way to another."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _interface_of(address: str) -> str | None:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(any_socket, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # it has no address
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None
