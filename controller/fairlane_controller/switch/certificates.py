# SPDX-License-Identifier: Apache-2.0
"""Test certificates: a CA, and what it signs for switches, controllers and observers (ECDSA P-256, RFC 5280)."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range

OBSERVER_UNIT = "observer"
"""Organizational unit (OU) that makes a client's certificate one for reading only."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
DAYS_MAX = 3650
_NAME = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.?")


@dataclass(frozen=True)
class CertificateFiles:
    """One certificate with its key."""

    role: str
    "ca, server, controller or observer."
    certificate: Path
    key: Path
    valid_until: datetime

    def to_json(self) -> dict[str, str]:
        """Texts; the time in ISO 8601, UTC."""
        return {
            "for": self.role,
            "certificate": str(self.certificate),
            "key": str(self.key),
            "valid_until": self.valid_until.isoformat(timespec="seconds"),
        }


_Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def make_certificates(
    folder: Path,
    *,
    days: float = 365,
    hosts: Sequence[str] = (),
    force: bool = False,
    now: datetime | None = None,
) -> list[CertificateFiles]:
    """Write `ca`, `server`, `controller` and `observer` (`.pem` and `.key`, keys with mode 0600) into `folder`.

    The server's is for localhost, 127.0.0.1, ::1 and `hosts`. Raises OUT_OF_RANGE, BAD_INPUT for a host that is none,
    and for files that are there already without `force`; then nothing is written.
    """
    if not 0 < days <= DAYS_MAX:
        raise out_of_range("--days", f"{days:g}", 1, DAYS_MAX)
    names = x509.SubjectAlternativeName([_general_name(host) for host in dict.fromkeys((*LOOPBACK, *hosts))])
    start = now or datetime.now(timezone.utc)
    # Clocks may differ a little.
    since, until = start - timedelta(minutes=5), start + timedelta(days=days)
    roles = ("ca", "server", "controller", "observer")
    made = [CertificateFiles(role, folder / f"{role}.pem", folder / f"{role}.key", until) for role in roles]
    there = [str(path) for one in made for path in (one.certificate, one.key) if path.exists()]
    if there and not force:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"{', '.join(there)} exist already: name another folder, or replace them with --overwrite",
        )
    ca = _make("fairlane test CA", "", since, until, None)
    pairs = {
        "ca": ca,
        "server": _make("fairlane switch", "", since, until, ca, names),
        "controller": _make("fairlane controller", "", since, until, ca),
        "observer": _make("fairlane observer", OBSERVER_UNIT, since, until, ca),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in made:
            _write(one, pairs[one.role])
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"cannot write into {folder}: {ex.strerror}") from None
    return made


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not _NAME.fullmatch(host):
        raise FairlaneError(
            ErrorCode.BAD_INPUT, f"--host {host!r}: must be a name or an address, e.g. s1.lab.example or 192.0.2.7"
        )
    return x509.DNSName(host)


def _make(
    name: str,
    unit: str,
    since: datetime,
    until: datetime,
    ca: _Pair | None,
    names: x509.SubjectAlternativeName | None = None,
) -> _Pair:
    """A certificate signed by `ca`, or a CA's own; with `names` a server's, else a client's."""
    key, is_ca = ec.generate_private_key(ec.SECP256R1()), ca is None
    units = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "fairlane")
    subject = x509.Name([organization, *units, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signing_key = (ca[0].subject, ca[1]) if ca else (subject, key)
    # Signatures of what is sent; of certificates and of revocations.
    usage = x509.KeyUsage(not is_ca, False, False, False, False, is_ca, is_ca, False, False)
    builder = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), since, until)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
    )
    if not is_ca:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signing_key, hashes.SHA256()), key


def _write(made: CertificateFiles, pair: _Pair) -> None:
    pem = serialization.Encoding.PEM
    key = pair[1].private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for path, content, mode in ((made.key, key, 0o600), (made.certificate, pair[0].public_bytes(pem), 0o644)):
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
