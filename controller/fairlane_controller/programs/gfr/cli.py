# SPDX-License-Identifier: Apache-2.0
"""`fairlane gfr vc`: VCs are added, changed, removed, listed. Ports: `fairlane config apply` and `config set`."""

from __future__ import annotations

from fairlane.cli import App, Objects

from .config import VcConfig
from .names import PROGRAM

VCS = Objects(PROGRAM, "vcs", VcConfig, "VC")
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
app = App(help="GFR: minimum rates by VC on managed egress ports.")
app.add_typer(vc_app, name="vc")
