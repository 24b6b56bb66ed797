# SPDX-License-Identifier: Apache-2.0
"""`p4src/codel.p4` (docs/schemes.md): CoDel's settings, entries and columns."""

from __future__ import annotations

from fairlane import CodelProgram, CodelSettings


class Codel(CodelProgram):
    """CoDel (RFC 8289): drops or marks what has waited longer than a target for an interval."""

    name = "codel"
    tables = ("codel_port",)

    class Settings(CodelSettings):
        """One port."""
