"""Who is meant by a request, and whose page sent it: browsers must not be talked into using somebody's server."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from heedful.server.front.errors import FORBIDDEN, ApiError

ANY = "*"


class Hosts:
    """The names that clients may use for the server, which listens at `address`; `names` are those of the operator."""

    def __init__(self, address: str, names: tuple[str, ...] = ()) -> None:
        self.named = {_bare(name) for name in names}
        self.local = {"localhost", _bare(address)}
        self.public = not is_loopback(address)
        if self.public:
            own = socket.gethostname().lower()
            self.local |= {own, f"{own.partition('.')[0]}.local"}

    def check(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request for another server (a name that was made to lead here), or of another site's page."""
        host = headers.get(b"host", b"").decode("latin-1")
        if host and not self._is_own(_bare(host)):
            raise ApiError(
                FORBIDDEN,
                f"this server is not known as {host!r}: use its address, or start it with `--allow-host {_bare(host)}`",
            )
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", b"").decode("latin-1")
        if origin is None:
            foreign = site == "cross-site" and method not in ("GET", "HEAD")
        elif origin == b"null":  # a page of this server may be told to hide where it comes from
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

    def _is_same(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
            port = parts.port
        except ValueError:
            return False
        if (parts.hostname or "") in self.named:
            return True
        usual = {"http": 80, "https": 443}.get(parts.scheme)
        return _bare(parts.netloc) == _bare(host) and (port or usual) == (_port(host) or usual)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address == "localhost"


def _bare(host: str) -> str:
    """A host without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, colon, port = host.rpartition(":")
    return (name if colon and ":" not in name and port.isdigit() else host).rstrip(".")


def _port(host: str) -> int | None:
    port = host.rpartition(":")[2]
    return int(port) if ":" in host and port.isdigit() and not host.endswith("]") else None
