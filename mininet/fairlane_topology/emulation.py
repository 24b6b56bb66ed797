# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Mininet's network with the test that its command line has: `iperf` works with today's iperf 2 and always ends."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from fairlane_switch.process import wait_until
from mininet.log import error, output
from mininet.net import Mininet

from fairlane_topology import ports
from fairlane_topology.interfaces import in_namespace
from fairlane_topology.state import OwnedProcess, stop_processes

LISTEN_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 10.0
SHELL_TIMEOUT_S = 10.0
REPORT_TIMEOUT_S = 10.0
"""How long the server may take to report after its client has ended: what waits in queues arrives first."""
_RATE = re.compile(r"([\d.]+ \w+/sec)")


class FairlaneMininet(Mininet):
    """Mininet whose `iperf` asks the kernel whether the server listens.

    Mininet's own connects to it with telnet, waits for ever where that is not answered, and takes the probe's report for the test's.
    """

    def __init__(self) -> None:
        Mininet.inited = True  # Mininet's init() would change system-wide limits, and nothing would put them back
        super().__init__(topo=None, controller=None, build=False)

    def iperf(
        self,
        hosts: Sequence[Any] | None = None,
        l4Type: Literal["TCP", "UDP"] = "TCP",
        udpBw: str = "10M",
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Rates that server and client report (UDP: behind the rate that was asked for), as Mininet gives them; empty where there is none.

        `hosts` are (client, server); left out: the first and the last. Ends `CONNECT_TIMEOUT_S` after `seconds` also when nothing arrives.
        """
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        output("*** Iperf: testing", l4Type, "bandwidth between", client, "and", server, "\n")

        def listens() -> bool:
            return ports.listens(port, Path(f"/proc/{server.pid}/net"), l4Type.lower())

        while listens():
            port += 1  # somebody's own server
        udp, rate = (["-u"], ["-b", udpBw]) if l4Type == "UDP" else ([], [])

        def start(node: Any, limit_s: float, *words: str) -> subprocess.Popen[str]:
            limit = ["timeout", "--foreground", "-s", "INT", "-k", "2", f"{limit_s:g}"]
            command = [*in_namespace(node), *limit, "iperf", "-p", str(port), *udp, *words]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        # One connection, then it ends; and it ends in any case.
        listener = start(server, seconds + LISTEN_TIMEOUT_S + CONNECT_TIMEOUT_S + REPORT_TIMEOUT_S, "-s", "-P", "1")
        report = ""
        try:
            if wait_until(listens, LISTEN_TIMEOUT_S):
                sender = start(client, seconds + CONNECT_TIMEOUT_S, "-t", str(seconds), "-c", server.IP(), *rate)
                report = sender.communicate()[0]
            if _RATE.search(report):
                wait_until(lambda: listener.poll() is not None, REPORT_TIMEOUT_S)
        finally:
            listener.terminate()
        rates = [(_RATE.findall(text) or [""])[-1] for text in (listener.communicate()[0], report)]
        if not any(rates):
            error(f"*** no data from {client} reached {server} ({server.IP()}) on {l4Type} port {port}\n")
        result = [udpBw, *rates] if l4Type == "UDP" else rates
        output(f"*** Results: {result}\n")
        return result

    def stop(self) -> None:
        """End terminals and the nodes' shells; `Network.stop` has ended all that runs in them. No shell is asked: it may be busy, or gone."""
        stop_processes([OwnedProcess.identify_child(term.pid, "terminal") for term in self.terms if term])
        for node in (*self.switches, *self.hosts):
            if node.shell is not None:
                node.shell.kill()
                node.shell.wait(timeout=SHELL_TIMEOUT_S)
                node.cleanup()
