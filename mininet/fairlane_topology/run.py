#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""`make run`: start a topology, program its switches, keep the controller's loop beside it, and open Mininet's CLI."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.names import program_names
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import DEFAULT_PROGRAM
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.security import TlsFiles
from fairlane_controller.units import counted
from fairlane_hosts.errors import HostsError
from fairlane_hosts.loader import Lease

from fairlane_topology import runtime_json as fl_runtime
from fairlane_topology import topology as fl_topology
from fairlane_topology.changes import Player
from fairlane_topology.cli import FairlaneCLI
from fairlane_topology.control import program_switches, start_loop, wait_for_loop
from fairlane_topology.links import TOPOLOGIES
from fairlane_topology.network import Network, NetworkOptions
from fairlane_topology.processes import Service
from fairlane_topology.signals import Ended, defer_signals, ended_by_signals
from fairlane_topology.variants import apply_variants

FULL_FRAME_BYTES = 1514
"""Length of the frames for which BMv2's queues get their rate: a sender's default, without the check sequence."""


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--topology",
        type=Path,
        default=TOPOLOGIES / "dumbbell.json",
        help="topology file (a superset of p4lang/tutorials' topology.json)",
    )
    parser.add_argument(
        "--target", choices=["embedded", "bmv2"], default="embedded", help="which switch runs the program"
    )
    parser.add_argument(
        "--program",
        default=DEFAULT_PROGRAM,
        help=f"the program of the switches: {', '.join(program_names())}, or the path of a folder (docs/programs.md)",
    )
    parser.add_argument(
        "--instance", type=int, default=0, help="number of this topology; another one may run beside it"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the emulated links and of the programs' random()")
    parser.add_argument(
        "--no-controller",
        action="store_true",
        help="leave the switches without program and entries to a controller of yours, and hosts of one subnet to ARP",
    )
    access = parser.add_mutually_exclusive_group()
    access.add_argument(
        "--plain",
        action="store_true",
        help="P4Runtime on loopback without TLS, where every user of this machine may become the primary controller; "
        "left out: mutual TLS with certificates of this run, but with --no-controller or a runtime_json plain, as others' controllers expect it",
    )
    access.add_argument("--tls", action="store_true", help="mutual TLS with --no-controller or a runtime_json, too")
    parser.add_argument(
        "--first-device-id",
        type=int,
        metavar="N",
        help="P4Runtime device id of s1, s2 has the next one; left out: 1, and 0 with --no-controller or a runtime_json, as p4lang/tutorials number theirs",
    )
    parser.add_argument(
        "--folder", type=Path, help="where commands of hosts and of the CLI run (default: the current folder)"
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
        with defer_signals():
            lease.close()


def wants_tls(chosen: argparse.Namespace, runtimes: Mapping[str, object]) -> bool:
    """Whether only controllers with a certificate of this run are let in."""
    return chosen.tls or not (chosen.plain or runtimes or chosen.no_controller)


def first_device_id(chosen: argparse.Namespace, runtimes: Mapping[str, object]) -> int:
    """Device id of s1: 0 where other people's programs and clients rule, as in p4lang/tutorials and with BMv2; else 1."""
    if chosen.first_device_id is not None:
        return chosen.first_device_id
    return 0 if runtimes or chosen.no_controller else 1


def run(chosen: argparse.Namespace) -> None:
    """Start everything and stay in the CLI; raises what starting raises."""
    topology = fl_topology.load(chosen.topology)
    runtimes = fl_runtime.load_all(topology)
    loaded = load_program(chosen.program)
    loaded.pipeline().check()
    fl_topology.check_settings(topology, loaded.Settings)
    wanted = NetworkOptions(
        chosen.instance,
        chosen.target,
        chosen.program,
        chosen.seed,
        wants_tls(chosen, runtimes),
        first_device_id(chosen, runtimes),
        routed=not chosen.no_controller,
    )
    network = Network(topology, wanted, {name: runtime.pipeline for name, runtime in runtimes.items()})
    with ExitStack() as after, ExitStack() as stack:
        stack.callback(network.stop)
        network.start()
        with defer_signals():
            after.callback(_close, apply_variants(network))
        ours = [name for name in network.switches if name not in runtimes and not chosen.no_controller]

        def program(names: Sequence[str], loop: Service | None = None) -> None:
            """Give switches what they are to hold; those of a loop get it from that one."""
            for name in names:
                if name in runtimes:
                    written = fl_runtime.program_switch(runtimes[name], endpoint(network, name))
                    print(f"{name}: {counted(written, 'entry')} of {runtimes[name].path}")
            some = [name for name in names if name in ours]
            if some and not (loop is not None and wait_for_loop(network, loop, some)):
                everything = len(some) == len(network.switches)  # a configuration may not be for one of several
                program_switches(network, [] if everything else some)
            for name in names:
                if name in runtimes or name in ours:
                    network.switches[name].shape(FULL_FRAME_BYTES)

        program(list(network.switches))
        loop = start_loop([network], ours if runtimes else []) if ours and loaded.control else None
        network.supervise()
        print(
            f"topology {chosen.topology.name}: {counted(len(network.hosts), 'host')}, {counted(len(network.switches), 'switch')} ({chosen.target}); state in {network.folder}"
        )
        if not ours:
            for name, switch in network.switches.items():
                print(f"{name}: P4Runtime on {switch.options.grpc}, device id {switch.options.device_id}")
        else:
            tries = ("status", *loaded.first_commands, "link list")
            print(f"try in another terminal: {' · '.join(f'fairlane {one}' for one in tries)}")
        if topology.changes:
            stack.enter_context(Player(network, topology.changes, FULL_FRAME_BYTES))
            print(f"played from now on: {counted(len(topology.changes), 'change')} of links; see fairlane link list")
        FairlaneCLI(network, lambda name: program([name], loop), script=str(chosen.script) if chosen.script else None)


def main() -> int:
    """Run until the CLI is left, or a signal ends it."""
    chosen = options()
    # What hosts and `sh` run finds our Python (with scapy) and our commands first.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    try:
        with ended_by_signals():
            if "/" in chosen.program:
                chosen.program = str(Path(chosen.program).resolve())
            if chosen.folder is not None:
                chosen.topology = chosen.topology.resolve()
                chosen.script = chosen.script and chosen.script.resolve()
                os.chdir(chosen.folder)
            run(chosen)
    except (
        fl_topology.TopologyError,
        FairlaneError,
        RuntimeError,
        HostsError,
        OSError,
        subprocess.TimeoutExpired,
    ) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except Ended as ended:
        return ended.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
