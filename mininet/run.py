#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""`make run`: start a topology, program its switches, keep the controller's loop beside it, and open Mininet's CLI."""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import fl_runtime
import fl_topology
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.security import TlsFiles
from fairlane_controller.units import counted
from fairlane_hosts.errors import HostsError
from fairlane_hosts.loader import Lease
from fl_changes import Player
from fl_control import WITHOUT_LOOP, program_switches, start_loop
from fl_net import Network, NetworkOptions
from fl_variants import apply_variants
from mininet.cli import CLI

HERE = Path(__file__).parent
TRY = {
    "qthresh": "fairlane status · fairlane threshold show · fairlane flows · fairlane link list",
    "gfr": "fairlane status · fairlane gfr apply FILE · fairlane vc list · fairlane link list",
    "ena": "fairlane status · fairlane ena show",
}
FULL_FRAME_BYTES = 1514
"""Length of the frames for which BMv2's queues get their rate: a sender's default, without the check sequence."""


def programs() -> list[str]:
    """The P4 programs that are compiled."""
    return sorted(path.stem for path in (HERE.parent / "p4src" / "compiled").glob("*.json") if path.stem != "manifest")


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--topology",
        type=Path,
        default=HERE / "topologies" / "dumbbell.json",
        help="topology file (a superset of p4lang/tutorials' topology.json)",
    )
    parser.add_argument(
        "--target", choices=["embedded", "bmv2"], default="embedded", help="which switch runs the program"
    )
    parser.add_argument(
        "--program", choices=programs(), default="qthresh", help="the P4 program of the switches (p4src/compiled)"
    )
    parser.add_argument(
        "--instance", type=int, default=0, help="number of this topology; another one may run beside it"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the emulated links")
    parser.add_argument(
        "--no-controller", action="store_true", help="leave the switches without entries and without a control loop"
    )
    parser.add_argument(
        "--tls", action="store_true", help="mutual TLS between controller and switches, with certificates of this run"
    )
    parser.add_argument("--script", type=Path, help="read Mininet CLI commands from a file instead of the terminal")
    return parser.parse_args()


def endpoint(network: Network, name: str) -> Endpoint:
    """Where the P4Runtime server of a switch is."""
    options = network.switches[name].options
    folder = options.tls
    tls = folder and TlsFiles(folder / "ca.pem", folder / "controller.pem", folder / "controller.key")
    return Endpoint(name, options.grpc, options.device_id, tls)


def _close(lease: Lease | None) -> None:
    if lease is not None:
        lease.close()


def main() -> int:
    """Run until the CLI is left."""
    chosen = options()
    try:
        topology = fl_topology.load(chosen.topology)
        runtimes = fl_runtime.load_all(topology)
        wanted = NetworkOptions(chosen.instance, chosen.target, chosen.program, chosen.seed, chosen.tls)
        pipelines = {name: runtime.pipeline for name, runtime in runtimes.items()}
        with ExitStack() as stack, Network(topology, wanted, pipelines) as network:
            stack.callback(_close, apply_variants(network))
            for name, runtime in runtimes.items():
                written = fl_runtime.program_switch(runtime, endpoint(network, name))
                print(f"{name}: {counted(written, 'entry')} of {runtime.path}")
            ours = [name for name in network.switches if name not in runtimes]
            if ours and not chosen.no_controller:
                some = ours if runtimes else []  # none named: all, which GFR's loop asks for
                program_switches(network, some)
                if chosen.program not in WITHOUT_LOOP:
                    start_loop([network], some)
            for name in [*runtimes, *([] if chosen.no_controller else ours)]:
                network.switches[name].shape(FULL_FRAME_BYTES)
            print(
                f"topology {chosen.topology.name}: {counted(len(network.hosts), 'host')}, {counted(len(network.switches), 'switch')} ({chosen.target}); state in {network.folder}"
            )
            print(f"try in another terminal: {TRY[chosen.program]}")
            if topology.changes:
                stack.enter_context(Player(network, topology.changes, FULL_FRAME_BYTES))
                print(
                    f"played from now on: {counted(len(topology.changes), 'change')} of links; see fairlane link list"
                )
            CLI(network.mininet, script=str(chosen.script) if chosen.script else None)
    except (fl_topology.TopologyError, RuntimeError, HostsError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
