# SPDX-License-Identifier: Apache-2.0
"""Where a page or a metrics endpoint may listen: loopback, or anywhere with TLS; and which `Host` it answers to."""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from fairlane_controller.errors import ErrorCode, FairlaneError

_ADDRESS = re.compile(r"^(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]\s]+)):(?P<port>\d{1,5})$")


@dataclass(frozen=True)
class Listen:
    """An address that was checked, and the certificate for it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    names: tuple[str, ...] = ()
    "Host names that clients may call it by; IP addresses and localhost they may always."

    @property
    def scheme(self) -> str:
        """http or https."""
        return "https" if self.tls else "http"

    def url(self, port: int) -> str:
        """The address for people, with the port that was really given."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}/"

    @property
    def readers(self) -> str:
        """Who may read what is served here, in words."""
        if self.tls is not None and self.tls.verify_mode is ssl.CERT_REQUIRED:
            return "whoever has a certificate of the client CA"
        return (
            "every user of this machine" if _is_loopback(self.host) else "everybody who reaches it: no --tls-client-ca"
        )

    def answers_to(self, host_header: str) -> bool:
        """Whether a request with this `Host` is for us: a page elsewhere whose name was pointed here (DNS rebinding) is not."""
        name = host_header.strip().lower()
        name = name[1 : name.index("]")] if name.startswith("[") and "]" in name else name.rsplit(":", 1)[0]
        if name in ("localhost", self.host.lower(), *(n.lower() for n in self.names)):
            return True
        return _is_address(name)


def parse_listen(
    text: str,
    option: str,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    tls_client_ca: Path | None = None,
    names: tuple[str, ...] = (),
) -> Listen:
    """`127.0.0.1:8080`, `[::1]:8080`, `localhost:0`; BAD_INPUT for what is no address, or not loopback and without TLS."""
    found = _ADDRESS.match(text)
    port = int(found["port"]) if found else -1
    if found is None or not 0 <= port < 65_536:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"{option} {text!r}: must be HOST:PORT with a port of 0 to 65535, e.g. 127.0.0.1:8080 or [::1]:8080",
        )
    host = found["six"] or found["host"]
    tls = _context(tls_cert, tls_key, tls_client_ca)
    if tls is None and not _is_loopback(host):
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"{option} {text}: everybody who reaches {host} could read along: give --tls-cert and --tls-key, or listen on 127.0.0.1",
        )
    return Listen(host, port, tls, names)


def _context(cert: Path | None, key: Path | None, client_ca: Path | None) -> ssl.SSLContext | None:
    if cert is None and key is None:
        if client_ca is not None:
            raise FairlaneError(ErrorCode.BAD_INPUT, "--tls-client-ca needs --tls-cert and --tls-key")
        return None
    if cert is None or key is None:
        missing = "--tls-key" if key is None else "--tls-cert"
        raise FairlaneError(ErrorCode.BAD_INPUT, f"--tls-cert and --tls-key go together: {missing} is missing")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"--tls-cert {cert} with --tls-key {key}: {ex}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as ex:
            raise FairlaneError(ErrorCode.BAD_FILE, f"--tls-client-ca {client_ca}: {ex}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
