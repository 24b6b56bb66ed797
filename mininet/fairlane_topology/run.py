#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make run`: start a topology, program its switches, run the controller's loop beside it, and open Mininet's CLI."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.names import program_names
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import DEFAULT_PROGRAM
from fairlane_controller.units import counted
from fairlane_hosts.apply import require
from fairlane_hosts.errors import HostsError
from fairlane_hosts.host import use_on_hosts
from fairlane_hosts.loader import Lease
from fairlane_hosts.variants import Variant, find_variant
from fairlane_switch.process import Service

from fairlane_topology import runtime_json
from fairlane_topology.changes import playing
from fairlane_topology.cli import FairlaneCLI
from fairlane_topology.control import program_switches, start_loop, wait_for_loop
from fairlane_topology.links import TOPOLOGIES
from fairlane_topology.network import Network, NetworkOptions
from fairlane_topology.signals import Ended, defer_signals, ended_by_signals
from fairlane_topology.topology import Topology, TopologyError, check_settings, load, with_scheduler


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--topology", type=Path, default=TOPOLOGIES / "dumbbell.json", help="topology file (docs/howto.md)")
    add("--target", choices=["embedded", "bmv2"], default="embedded", help="which switch runs the program")
    add(
        "--processes",
        choices=["one", "separate"],
        default="one",
        help="one for embedded switches and links together, or separate ones (BMv2 always)",
    )
    names = ", ".join(program_names())
    add("--program", default=DEFAULT_PROGRAM, help=f"of the switches: {names}, or a folder (docs/programs.md)")
    add("--instance", type=int, default=0, help="number of this topology; another one may run beside it")
    add("--seed", type=int, default=1, help="seed of the emulated links and of the programs' random()")
    add(
        "--no-controller",
        action="store_true",
        help="leave the switches without program and entries to a controller of yours, and hosts of one subnet to ARP",
    )
    add(
        "--plain",
        action="store_true",
        help="P4Runtime on loopback without TLS, where every user of this machine may become the primary controller; "
        "left out: mutual TLS, but with --no-controller or a runtime_json plain, as others' controllers expect it",
    )
    add("--folder", type=Path, help="where commands of hosts and of the CLI run (default: the current folder)")
    add("--script", type=Path, help="read Mininet CLI commands from a file instead of the terminal")
    chosen = parser.parse_args()
    if chosen.folder is not None and not chosen.folder.is_dir():
        parser.error(f"--folder {chosen.folder}: there is no such folder")
    if chosen.script is not None and not chosen.script.is_file():
        parser.error(f"--script {chosen.script}: there is no such file")
    return chosen


def _close(lease: Lease | None) -> None:
    if lease is not None:
        with defer_signals():
            lease.close()


def _variants(topology: Topology) -> dict[str, Variant]:
    """The hosts' variants, by host. Raises TopologyError for one that is not there, or that this kernel cannot run."""
    found = dict[str, Variant]()
    for name, host in topology.hosts.items():
        if host.variant:
            try:
                found[name] = find_variant(host.variant)
                require(found[name])
            except HostsError as error:
                raise TopologyError(f"{topology.path}: /hosts/{name}/variant: {error}") from None
    return found


def run(chosen: argparse.Namespace) -> None:
    """Start everything and stay in the CLI; raises what starting raises."""
    topology = load(chosen.topology)
    runtimes = runtime_json.load_all(topology)
    loaded = load_program(chosen.program)
    loaded.pipeline().check()
    loaded.pipeline().warn_if_outdated()
    check_settings(topology, loaded.Settings)
    if chosen.target == "embedded":
        topology = with_scheduler(topology, loaded)
    variants = _variants(topology)
    others = bool(runtimes) or chosen.no_controller  # people's own programs and clients rule, as with p4lang/tutorials
    wanted = NetworkOptions(
        chosen.instance,
        chosen.target,
        chosen.program,
        chosen.seed,
        tls=not (chosen.plain or others),
        first_device_id=0 if others else 1,
        routed=not chosen.no_controller,
        processes=chosen.processes,
    )
    network = Network(topology, wanted, {name: runtime.pipeline for name, runtime in runtimes.items()})
    with ExitStack() as after, ExitStack() as stack:
        stack.callback(network.stop)
        network.start()
        with defer_signals():
            pids = {name: host.pid for name, host in network.hosts.items()}
            after.callback(_close, use_on_hosts(variants, pids, network.options.name)[1])
        ours = [name for name in network.switches if name not in runtimes and not chosen.no_controller]

        loop: Service | None = None

        def program(names: Sequence[str]) -> None:
            """Give switches their program and entries; those of a loop get them from that one."""
            for name in names:
                if name in runtimes:
                    written = runtime_json.program_switch(runtimes[name], network.switches[name].endpoint)
                    print(f"{name}: {counted(written, 'entry')} of {runtimes[name].path}")
            some = [name for name in names if name in ours]
            if some and not (loop is not None and wait_for_loop(network, loop, some)):
                everything = len(some) == len(network.switches)  # a configuration may not be for one of several
                program_switches(network, [] if everything else some)
            for name in names:
                if name in runtimes or name in ours:
                    network.switches[name].shape()

        program(list(network.switches))
        if ours and loaded.control:
            loop = start_loop(network, ours if runtimes else [])
            loop.wait_ready()
        # A loop that runs restores its switches by itself.
        network.supervise(lambda names: program([n for n in names if n not in ours or loop is None or loop.is_over]))
        hosts, switches = counted(len(network.hosts), "host"), counted(len(network.switches), "switch")
        print(f"topology {chosen.topology.name}: {hosts}, {switches} ({chosen.target}); state in {network.folder}")
        for switch in () if ours else network.switches.values():
            at = switch.endpoint
            print(f"{at.name}: P4Runtime on {at.grpc}, device id {at.device_id}")
        if ours:
            commands = ("status", *loaded.first_commands, "link list")
            print(f"try in another terminal: {' · '.join(f'fairlane {command}' for command in commands)}")
        if topology.changes:
            stack.enter_context(playing(network, topology.changes))
            print(f"played from now on: {counted(len(topology.changes), 'change')} of links; see fairlane link list")
        FairlaneCLI(network, lambda name: program([name]), script=str(chosen.script) if chosen.script else None)


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
    except (TopologyError, FairlaneError, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except Ended as ended:
        return ended.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
