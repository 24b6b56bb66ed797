# SPDX-License-Identifier: Apache-2.0
"""Where a switch is and how it is reached: address, TLS files, and in one sentence why nobody answers there."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from finsy import GRPCCredentialsTLS

from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file, bad_input
from fairlane_controller.state.run_state import TlsFiles as TlsFiles

OBSERVER_ROLE = "fairlane.observer"
"""P4Runtime `Role.name` of clients that only read: never primary of the controllers, no digests (docs/security.md)."""

TLS_VARIABLES = ("FAIRLANE_TLS_CA", "FAIRLANE_TLS_CERT", "FAIRLANE_TLS_KEY")
"""Environment variables that name the files for every switch, whatever the run state says."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(
    (0, 0, 0, 4, 0, 0, 0, 0, 0)
)  # RFC 9113 §3.4: preface, empty SETTINGS
_TLS_ALERT = b"\x15"
"""The first byte of a TLS server's answer to what is no TLS (RFC 8446 §5.1)."""


def context_of(tls: TlsFiles) -> ssl.SSLContext:
    """TLS as a gRPC client speaks it; BAD_FILE when a file is missing or not what it should be."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.set_alpn_protocols(["h2"])
    what = f"the CA {tls.ca}"
    try:
        context.load_verify_locations(tls.ca)
        if tls.cert or tls.key:
            what = f"the certificate {tls.cert} with the key {tls.key}"
            context.load_cert_chain(tls.cert or "", tls.key, password=lambda: b"")
    except (OSError, ValueError) as ex:  # ssl.SSLError is an OSError
        raise bad_file(f"TLS: {what} cannot be used: {_words(ex)}") from None
    return context


def tls_of_environment() -> TlsFiles | None:
    """The files that `FAIRLANE_TLS_CA|CERT|KEY` name, or None without any."""
    ca, cert, key = (Path(name) if (name := os.environ.get(variable)) else None for variable in TLS_VARIABLES)
    if ca is None:
        if cert or key:
            raise bad_input(
                f"FAIRLANE_TLS_CERT or _KEY without {TLS_VARIABLES[0]}: the CA says which switches to trust"
            )
        return None
    return TlsFiles(ca, cert, key)


@dataclass(frozen=True)
class Endpoint:
    """Where a switch's P4Runtime server is."""

    name: str
    grpc: str
    "HOST:PORT."
    device_id: int = 1
    tls: TlsFiles | None = None
    "None: plain text, which the embedded switch serves on loopback only."

    def __str__(self) -> str:
        return f"switch {self.name} at {self.grpc}"

    @property
    def credentials(self) -> GRPCCredentialsTLS | None:
        """What finsy takes, for P4Runtime and for gNMI."""
        tls = self.tls
        return tls and GRPCCredentialsTLS(cacert=tls.ca, cert=tls.cert, private_key=tls.key)

    async def check(self, connect_timeout_s: float, timeout_s: float) -> None:
        """Connect as gRPC will, and raise what is wrong, which gRPC itself does not report.

        gRPC would also wait ever longer between attempts (one process shares its back-off over all channels), and a switch that
        comes back should be found at once.

        Args:
            connect_timeout_s: until somebody listens.
            timeout_s: until the server has sent its first byte. With TLS 1.3 a refusal comes only after the client's own part.

        Raises:
            FairlaneError: SWITCH_UNREACHABLE, TLS_FAILED, BAD_FILE.
        """
        context = context_of(self.tls) if self.tls else None
        host, _, port = self.grpc.rpartition(":")
        host = host.strip("[]")
        limit_s = connect_timeout_s
        try:
            connecting = asyncio.open_connection(
                host, int(port), ssl=context, server_hostname=host if context else None
            )
            reader, writer = await asyncio.wait_for(connecting, limit_s)
            limit_s = timeout_s
            try:
                writer.write(_PREFACE)
                first = await asyncio.wait_for(reader.read(1), limit_s)
            finally:
                writer.transport.abort()
        except asyncio.TimeoutError:
            raise self.unreachable(f"does not answer within {limit_s:.2g} s") from None
        except ssl.SSLError as ex:
            raise self._tls_failed(_explain(ex, host, self.tls)) from None
        except (OSError, ValueError, OverflowError) as ex:  # the latter two: no address
            if self.tls is None or not isinstance(ex, ConnectionResetError):
                raise self.unreachable(f"does not answer: {_words(ex)}") from None
            first = b""
        if self.tls is None and first == _TLS_ALERT:
            raise self._tls_failed("it speaks TLS only: name the CA that signed it in FAIRLANE_TLS_CA")
        if self.tls is None and not first:
            raise self.unreachable("closed the connection: it is ending, or speaks TLS only (FAIRLANE_TLS_CA)")
        if not first:  # as BMv2 does
            raise self._tls_failed("it closed the connection: it does not take the client's certificate")

    def unreachable(self, text: str) -> FairlaneError:
        """SWITCH_UNREACHABLE: the switch, and what it does instead of an answer."""
        return ErrorCode.SWITCH_UNREACHABLE(f"{self} {text}")

    def _tls_failed(self, text: str) -> FairlaneError:
        return ErrorCode.TLS_FAILED(f"{self}: {text}")


def _explain(error: ssl.SSLError, host: str, tls: TlsFiles | None) -> str:
    """What went wrong in a handshake and what to do, without the subject."""
    assert tls is not None
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        return f"its certificate cannot be trusted with the CA {tls.ca} (FAIRLANE_TLS_CA): {why}; `fairlane setup certs --host {host}` makes new ones"
    words = _words(error)
    if "alert" in words or "handshake failure" in words:
        return f"it refuses this client ({words}), whose certificate is {tls.cert or 'missing'}: name one of its CA in FAIRLANE_TLS_CERT and _KEY"
    return f"it speaks no TLS: unset FAIRLANE_TLS_CA, or start it with --tls-cert and --tls-key ({words})"


def _words(error: Exception) -> str:
    """The reason of OpenSSL or of the operating system."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no PEM of the right kind in it").replace("_", " ").lower()
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number).lower() if number and number > 0 else getattr(error, "strerror", None) or str(error)
