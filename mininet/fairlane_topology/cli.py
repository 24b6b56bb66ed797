# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Mininet's command line for our topologies: an error in a command does not end the session; only leaving it ends the topology."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet.cli import CLI
from mininet.log import error, output

from fairlane_topology.network import Network


class FairlaneCLI(CLI):
    """Mininet's CLI on a running topology; making one runs it until it is left."""

    def __init__(self, network: Network, program: Callable[[str], None], script: str | None = None) -> None:
        """`program` gives a switch that was started again what it had."""
        self._network = network
        self._program = program
        super().__init__(network.mininet, script=script)

    def onecmd(self, line: str) -> bool:
        """Run one command; an error in it is reported and ends nothing."""
        try:
            return bool(super().onecmd(line))
        except Exception as problem:
            error(f"*** {line.strip()}: {type(problem).__name__}: {problem}\n")
            return False

    def default(self, line: str) -> None:
        """A command for a node."""
        node = line.split()[0] if line.split() else ""
        if node in self.mn and not _is_there(self.mn[node]):
            error(f"*** {node} is gone, because its shell has ended: leave the CLI and start again\n")
            return
        super().default(line)

    def waitForNode(self, node: Any) -> None:
        """Print what a node's command prints, and give it what is typed, until it ends. Ctrl-C is the command's."""
        poller = select.poll()
        poller.register(node.stdout, select.POLLIN)
        poller.register(self.stdin, select.POLLIN)
        if self.isatty():
            subprocess.run(["stty", "-icanon", "min", "1"], stdin=self.stdin, timeout=5)
        while node.waiting:
            try:
                for descriptor, _ in poller.poll(1000):
                    if descriptor == node.stdout.fileno():
                        output(node.monitor())
                    elif key := os.read(descriptor, 1):  # and no more: the rest may be for the next command
                        os.write(node.stdin.fileno(), key)
                    else:  # the end of our input
                        poller.unregister(self.stdin)
                if not _is_there(node):
                    error(f"*** {node}: its shell has ended, and the node with it\n")
                    node.waiting = False
            except KeyboardInterrupt:
                node.sendInt()

    def do_source(self, line: str) -> bool:
        """Read commands from an input file.
        Usage: source <file>"""
        lines = Path(line.strip()).read_text(encoding="utf-8").splitlines()
        return any(self.onecmd(self.precmd(one)) for one in lines)  # up to one that leaves

    def do_switch(self, line: str) -> None:
        """Stop a switch's process, or start it again with its program.
        Usage: switch <switch> {start, stop}"""
        names, words = self._network.switches, line.split()
        if len(words) != 2 or words[0] not in names or words[1] not in ("start", "stop"):
            error(f"usage: switch <switch> start|stop; there are {', '.join(names)}\n")
            return
        self._network.set_switch(*words)
        if words[1] == "start":
            self._program(words[0])


def _is_there(node: Any) -> bool:
    return node.shell is not None and node.shell.poll() is None
