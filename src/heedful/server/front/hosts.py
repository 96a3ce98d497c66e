"""Which host a request is for, and whose page sent it: browsers must not be tricked into using somebody's server."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from typing import NamedTuple

from heedful.config import shown
from heedful.server.front.errors import BAD_REQUEST, FORBIDDEN, ApiError

ANY = "*"
# A name or an address, with brackets for IPv6, and an optional port (RFC 9110, section 7.2).
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._~-]+))(?::([0-9]{0,5}))?", re.ASCII | re.IGNORECASE)
USUAL_PORTS = {"http": 80, "https": 443}


class HostAndPort(NamedTuple):
    """Where a request goes, or a page comes from."""

    name: str
    port: int | None


def host_and_port(text: str) -> HostAndPort | None:
    """The parts of a host as headers have it; None if it is not one."""
    found = HOST.fullmatch(text)
    if not found:
        return None
    return HostAndPort((found[1] or found[2]).lower().rstrip("."), int(found[3]) if found[3] else None)


class Hosts:
    """The names that clients may use for the server, which listens at `address`; the operator adds `names`."""

    def __init__(self, address: str, names: tuple[str, ...] = ()) -> None:
        self.named = {_bare(name) for name in names}
        self.local = {"localhost", _bare(address)}
        self.public = not is_loopback(address)
        if self.public:
            own = socket.gethostname().lower()
            self.local |= {own, f"{own.partition('.')[0]}.local"}

    def check(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request for another server (a name that was made to lead here), or from another site's page."""
        given = headers.get(b"host", b"").decode("latin-1")
        host = host_and_port(given)
        if given and host is None:
            raise ApiError(BAD_REQUEST, f"the header Host is {shown(given)}: a name or an address was expected")
        if host and not self._is_own(host.name):
            raise ApiError(
                FORBIDDEN,
                f"this server is not known as {given!r}: use its address, or start it with `--allow-host {host.name}`",
            )
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", b"").decode("latin-1")
        if origin is None:
            foreign = site == "cross-site" and method not in ("GET", "HEAD")
        elif origin == b"null":  # a page of this server may be told to hide its origin
            foreign = site not in ("same-origin", "none")
        else:
            foreign = not self._is_same(origin.decode("latin-1"), host)
        if foreign:
            raise ApiError(
                FORBIDDEN,
                "the request was sent by a page of another site, which this server does not answer: if that page is to "
                "use it, start it with `--allow-host` and the name of the page's host",
            )

    def _is_own(self, name: str) -> bool:
        if ANY in self.named or name in self.named or name in self.local:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # An address is not a name that others could point here.
        return self.public or address.is_loopback

    def _is_same(self, origin: str, host: HostAndPort | None) -> bool:
        scheme, _, rest = origin.partition("://")
        page, usual = host_and_port(rest), USUAL_PORTS.get(scheme)
        if page is None:
            return False
        if page.name in self.named:
            return True
        return host is not None and page.name == host.name and (page.port or usual) == (host.port or usual)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address == "localhost"


def _bare(host: str) -> str:
    """A host as the operator gives it, without its port."""
    found = host_and_port(host.strip())
    return found.name if found else host.strip().lower().strip("[]")
