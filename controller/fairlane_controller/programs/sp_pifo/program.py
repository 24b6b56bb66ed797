# SPDX-License-Identifier: Apache-2.0
"""`p4src/sp_pifo.p4` (docs/schemes.md): a port's strict-priority queues, and where ranks come from."""

from __future__ import annotations

from fairlane import StrictProgram


class SpPifo(StrictProgram):
    """SP-PIFO (NSDI 2020): packets leave nearly by rank, from a few strict-priority queues."""

    name = "sp_pifo"
    tables = ("sp_pifo_port", "rank_draw")
