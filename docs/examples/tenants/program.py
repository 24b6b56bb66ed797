# SPDX-License-Identifier: Apache-2.0
"""A program with objects: tenants, each with a port of its own and a limit of packets there (docs/programs.md)."""

from collections.abc import Iterator
from typing import Annotated, Any

from fairlane import Config, Flag, P4TableAction, P4TableEntry, P4TableMatch, Packets, Program, RunState, Section


class Tenant(Section):
    """Who sends by a port."""

    name: str
    port: Annotated[str, Flag("--port", "SWITCH:PORT")]
    "The port, e.g. s1:3."
    limit: Annotated[Packets, Flag("--limit", "PACKETS")] = 10
    "Packets that may wait there."


class Tenants(Program):
    """Each tenant has a port."""

    name = "tenants"
    title = "Drop-tail with a limit for each tenant."
    p4 = "../droptail/droptail"
    tables = ("droptail_limit",)
    document = "tenants"

    class Sections(Section):
        tenants: tuple[Tenant, ...] = ()

    def check(self, config: Config, run: RunState | None) -> Iterator[str]:
        ports = [one.port for one in config.sections.tenants] if config.sections else []
        yield from (f"tenants[{at}].port: {one} is another's" for at, one in enumerate(ports) if one in ports[:at])

    def object_entries(self, sections: Any, switch: str) -> Iterator[P4TableEntry]:
        for one in (tenant for tenant in sections.tenants if tenant.port.startswith(f"{switch}:")):
            match = P4TableMatch(egress_port=int(one.port.partition(":")[2]))
            yield P4TableEntry("droptail_limit", match=match, action=P4TableAction("set_limit", packets=one.limit))
