# SPDX-License-Identifier: Apache-2.0
"""Test certificates: a CA, and what it signs for switches, controllers and observers (ECDSA P-256, RFC 5280)."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlane_controller.errors import bad_file, bad_input

OBSERVER_UNIT = "observer"
"""Organizational unit (OU) that makes a client's certificate one for reading only."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.?")


_Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def make_certificates(
    folder: Path, *, days: float = 365, hosts: Sequence[str] = (), now: datetime | None = None
) -> list[dict[str, str]]:
    """Write `ca`, `server`, `controller` and `observer` (`.pem` and `.key`, keys with mode 0600) into `folder`.

    The server's is for localhost, 127.0.0.1, ::1 and `hosts`. Raises BAD_INPUT for a host that is none,
    and for a file that is there already or cannot be written; then nothing is written.

    Returns:
        For each certificate the keys `for`, `certificate`, `key` and `valid_until` (ISO 8601, UTC).
    """
    names = x509.SubjectAlternativeName([_general_name(host) for host in dict.fromkeys((*LOOPBACK, *hosts))])
    start = now or datetime.now(timezone.utc)
    # Clocks may differ a little.
    since, until = start - timedelta(minutes=5), start + timedelta(days=days)
    ca = _make("fairlane test CA", "", since, until, None)
    pairs = {
        "ca": ca,
        "server": _make("fairlane switch", "", since, until, ca, names),
        "controller": _make("fairlane controller", "", since, until, ca),
        "observer": _make("fairlane observer", OBSERVER_UNIT, since, until, ca),
    }
    pem, new = serialization.Encoding.PEM, list[Path]()
    rows: list[dict[str, str]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for role, (certificate, key) in pairs.items():
            plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            paths = folder / f"{role}.pem", folder / f"{role}.key"
            _write(paths[0], certificate.public_bytes(pem), 0o644, new)
            _write(paths[1], plain, 0o600, new)
            valid = until.isoformat(timespec="seconds")
            rows.append({"for": role, "certificate": str(paths[0]), "key": str(paths[1]), "valid_until": valid})
    except OSError as ex:
        for path in new:
            path.unlink()
        raise bad_file(f"cannot write into {folder}: {ex.strerror} ({ex.filename}): name another folder") from None
    return rows


def _write(path: Path, content: bytes, mode: int, new: list[Path]) -> None:
    """Write a file that is not there, and add it to `new`."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    new.append(path)
    with os.fdopen(number, "wb") as file:
        file.write(content)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not _NAME.fullmatch(host):
        raise bad_input(f"--host {host!r}: must be a name or an address, e.g. s1.lab.example or 192.0.2.7")
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
