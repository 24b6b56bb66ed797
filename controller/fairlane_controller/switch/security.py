# SPDX-License-Identifier: Apache-2.0
"""TLS towards a switch: which files, whether they can be used, and in one sentence why a handshake failed; the read-only role."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from finsy import GRPCCredentialsTLS

from fairlane_controller.errors import ErrorCode, FairlaneError

OBSERVER_ROLE = "fairlane.observer"
"""P4Runtime `Role.name` of clients that only read: never primary of the controllers, no digests (docs/security.md)."""

TLS_VARIABLES = {"ca": "FAIRLANE_TLS_CA", "cert": "FAIRLANE_TLS_CERT", "key": "FAIRLANE_TLS_KEY"}
"""Environment variables that name the files for every switch, whatever the run state says."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(
    (0, 0, 0, 4, 0, 0, 0, 0, 0)
)  # RFC 9113 §3.4: preface, empty SETTINGS

# OpenSSL's X509_V_ERR_*.
_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_NAME = (62, 64)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files of one side: whom it trusts, and who it is."""

    ca: Path
    "The CA that signed the switch's certificate."
    cert: Path | None = None
    "This client's certificate; None where the switch asks for none."
    key: Path | None = None
    "The certificate's private key; None as above."

    def context(self) -> ssl.SSLContext:
        """TLS as a gRPC client speaks it; BAD_FILE when a file is missing or not what it should be."""
        if (self.cert is None) != (self.key is None):
            raise FairlaneError(
                ErrorCode.BAD_INPUT, "TLS: certificate and key belong together: give both of them, or none"
            )
        for what, path in (("CA", self.ca), ("certificate", self.cert), ("key", self.key)):
            if path is not None and not path.is_file():
                raise FairlaneError(ErrorCode.BAD_FILE, f"TLS: the {what} {path} does not exist or is no file")
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
        context.set_alpn_protocols(["h2"])
        try:
            context.load_verify_locations(self.ca)
        except OSError as ex:  # ssl.SSLError is one
            raise FairlaneError(ErrorCode.BAD_FILE, f"TLS: the CA {self.ca} cannot be used: {_reason(ex)}") from None
        if self.cert is not None and self.key is not None:
            try:
                context.load_cert_chain(self.cert, self.key, password=lambda: b"")
            except (OSError, ValueError) as ex:
                raise FairlaneError(
                    ErrorCode.BAD_FILE,
                    f"TLS: the certificate {self.cert} with the key {self.key} cannot be used: {_reason(ex)}",
                ) from None
        return context

    def credentials(self) -> GRPCCredentialsTLS:
        """What finsy takes, for P4Runtime and for gNMI."""
        return GRPCCredentialsTLS(cacert=self.ca, cert=self.cert, private_key=self.key)


def tls_of_environment() -> TlsFiles | None:
    """The files that `FAIRLANE_TLS_CA|CERT|KEY` name (the options `--tls-ca|cert|key` set them); None without any."""
    found = {name: os.environ.get(variable) for name, variable in TLS_VARIABLES.items()}
    ca = found["ca"]
    if not ca:
        given = [TLS_VARIABLES[name] for name, value in found.items() if value]
        if given:
            raise FairlaneError(
                ErrorCode.BAD_INPUT,
                f"{' and '.join(given)} without {TLS_VARIABLES['ca']}: the CA says which switches to trust (--tls-ca)",
            )
        return None
    cert, key = found["cert"], found["key"]
    return TlsFiles(Path(ca), Path(cert) if cert else None, Path(key) if key else None)


async def check_handshake(where: str, host: str, port: int, tls: TlsFiles, timeout_s: float) -> None:
    """Shake hands as gRPC will, and raise TLS_FAILED with the reason, which gRPC itself does not tell.

    `where` is the switch, for the error text. Raises SWITCH_UNREACHABLE without an answer within `timeout_s`.
    """
    context = tls.context()
    try:
        await asyncio.wait_for(_shake(host, port, context), timeout_s)
    except (TimeoutError, asyncio.TimeoutError):
        raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{where} does not answer within {timeout_s:.2g} s") from None
    except ssl.SSLError as ex:
        raise FairlaneError(ErrorCode.TLS_FAILED, f"{where}: {_explain(ex, host, tls)}") from None
    except ConnectionResetError:
        shown = tls.cert or "none was given"
        raise FairlaneError(
            ErrorCode.TLS_FAILED,
            f"{where}: it closed the connection in the TLS handshake, as BMv2 does when it does not take the client's "
            f"certificate ({shown})",
        ) from None
    except OSError as ex:
        reason = os.strerror(ex.errno) if ex.errno and ex.errno > 0 else str(ex)
        raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{where} does not answer: {reason.lower()}") from None


class _ClosedError(ConnectionResetError):
    """The server was done with its half of the handshake, and hung up."""


async def speaks_tls(host: str, port: int, timeout_s: float) -> bool:
    """Whether the server answers TLS at all, with any certificate; for a client that has no certificates configured."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        await asyncio.wait_for(_shake(host, port, context), timeout_s)
    except ssl.SSLError as ex:
        return "ALERT" in (ex.reason or "")  # it speaks, and refuses us
    except _ClosedError:
        return True  # after its half of the handshake
    except (OSError, TimeoutError, asyncio.TimeoutError):
        return False
    return True


async def _shake(host: str, port: int, context: ssl.SSLContext) -> None:
    """A handshake, and the server's first byte: with TLS 1.3 a refusal comes only after the client's own part is done."""
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    try:
        writer.write(_PREFACE)
        if not await reader.read(1):
            raise _ClosedError
    finally:
        writer.transport.abort()


def _explain(error: ssl.SSLError, host: str, tls: TlsFiles) -> str:
    """What went wrong and what to do, without the subject."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return "its certificate has expired: make new ones with `fairlane setup certs`"
        if error.verify_code == _NOT_YET_VALID:
            return "its certificate is not valid yet: the clocks differ, or it was made for later"
        if error.verify_code in _OTHER_NAME:
            return f"its certificate is not for {host}: use a name that it has, or make one with `fairlane setup certs --host {host}`"
        return f"its certificate was not signed by the CA {tls.ca}: name the CA that did with --tls-ca"
    reason = error.reason or str(error)
    if "CERTIFICATE_REQUIRED" in reason or ("HANDSHAKE_FAILURE" in reason and tls.cert is None):
        return "it takes only clients with a certificate: give one with --tls-cert and --tls-key"
    if "CERTIFICATE_EXPIRED" in reason:
        return (
            f"it refuses this client: the certificate {tls.cert} has expired; make new ones with `fairlane setup certs`"
        )
    if "UNKNOWN_CA" in reason or "DECRYPT_ERROR" in reason:  # the latter: a CA of the same name
        return f"it refuses this client: the certificate {tls.cert} was not signed by the CA that it trusts"
    if "ALERT" in reason:
        return f"it refuses this client (certificate {tls.cert or 'none'}): {_words(reason)}"
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"):
        return "it speaks no TLS: leave --tls-ca away, or start it with --tls-cert and --tls-key"
    return f"the TLS handshake failed: {_words(reason)}"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "the key is another certificate's"
        return _words(error.reason or "no PEM of the right kind in it")
    return str(error)


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()
