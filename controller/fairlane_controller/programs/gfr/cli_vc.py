# SPDX-License-Identifier: Apache-2.0
"""`fairlane gfr vc add|set|delete|list`: customers' aggregates with minimum rates."""

from __future__ import annotations

from fairlane.cli import JsonOption, Objects, StateOption, print_json, print_table
from fairlane.text import format_rate

from .config import VcConfig
from .names import PROGRAM
from .plan import gfr_store


class Vcs(Objects):
    """The VCs of the configuration in force."""

    def list_(self, state: StateOption = None, as_json: JsonOption = False) -> None:
        """List the VCs of the configuration in force; `fairlane gfr show` has what they get.

        Example: `fairlane gfr vc list`
        """
        vcs = gfr_store(self.targets(state).folder).get().config.vcs
        if as_json:
            print_json([vc.model_dump(mode="json") for vc in vcs])
            return
        columns = ("VC", "MCR", "PCR", "MBS (cells)", "MFS (bytes)", "packets", "policed at")
        rows = [
            (
                vc.name,
                format_rate(vc.mcr),
                format_rate(vc.pcr) if vc.pcr else "capacity",
                vc.mbs_cells,
                vc.mfs_bytes,
                "; ".join(map(str, vc.match)),
                ", ".join(f"{edge.switch}:{edge.ingress_port}" for edge in vc.edge) or "nowhere",
            )
            for vc in vcs
        ]
        print_table("VCs", columns, rows, empty="there is none: `fairlane gfr vc add` adds one")


VCS = Vcs(PROGRAM, "vcs", VcConfig, "VC")
vc_app = VCS.app(
    "VCs: add, change, remove, list. A refused change leaves every switch as it was.",
    add="""Add a VC: admitted when the sum of all MCR on its path stays within the capacity. It needs --mcr.

    Example: `fairlane gfr vc add gold --mcr 6Mbit --match s1,ingress_port=3,src=10.0.3.0/24 --edge s1:3`
    """,
    set="""Change a VC; what is not given stays. Its meters and shares change without an instant without them.

    Example: `fairlane gfr vc set gold --mcr 7Mbit --dry-run`
    """,
    delete="""Remove VCs: their frames are of no VC from then on, and the others share their rate.

    Example: `fairlane gfr vc delete gold`
    """,
)
