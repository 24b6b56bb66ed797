# SPDX-License-Identifier: Apache-2.0
"""`fairlane setup doctor|install|certs`: what a machine needs before it runs switches."""

from __future__ import annotations

from fairlane_controller.cli.lazy import LazyCommand, lazy_app

_HERE = "fairlane_controller.cli"
COMMANDS = [
    LazyCommand("doctor", f"{_HERE}.doctor:doctor_command", "What this machine lacks, and how to mend it.", "Commands"),
    LazyCommand("install", f"{_HERE}.doctor:install_command", "Install what Mininet needs (Debian, Ubuntu).", "Commands"),
    LazyCommand("certs", f"{_HERE}.certs:certs_command", "Make test certificates for TLS: CA, switch, controller, observer.", "Commands"),
]  # fmt: skip

setup_app = lazy_app(COMMANDS, help="What this machine lacks: say it, install it; test certificates.")
