# SPDX-License-Identifier: Apache-2.0
# pyright: basic
"""Programs the switches of running topologies and starts the controller's loop beside them, as a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.ask import ask
from fairlane_switch.process import Service

from fairlane_topology.network import Network

INIT_TIMEOUT_S = 60.0
LOOP_READY_TIMEOUT_S = 60.0
RESTORE_TIMEOUT_S = 30.0
LOOP_ENDS_WITH = (0, ErrorCode.LOOP_RUNNING.exit_code)
"""Somebody has ended it (SIGTERM), or another one has taken its place: it is not started again."""


def program_switches(network: Network, switches: Sequence[str] = ()) -> None:
    """`fairlane config init` for these switches (none named: all). Raises RuntimeError with the controller's own words."""
    command = _command("config", "init", network=network, switches=switches)
    done = subprocess.run(command, capture_output=True, text=True, timeout=INIT_TIMEOUT_S)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"the controller could not program the switches of {network.topology.path}: {words}")


def start_loop(network: Network, switches: Sequence[str] = (), *, probes: bool = True) -> Service:
    """Start the control loop of a topology, whose `wait_ready` waits until it serves; it ends with the topology.

    Args:
        network: the topology that it serves.
        switches: only these.
        probes: False: nothing but the hosts' traffic crosses the links.

    Raises:
        RuntimeError: when it runs; `wait_ready`, with the end of its log, when it does not start.
    """
    ready = network.folder / "loop.ready"
    words = [*_command("run", network=network, switches=switches), "--ready-file", str(ready)]

    def command() -> list[str]:
        ready.unlink(missing_ok=True)
        return words if probes else [*words, "--no-probes"]

    log = network.folder / "log" / "controller.log"
    loop = Service("fairlane run", command, log, ready.exists, LOOP_READY_TIMEOUT_S, ends_with=LOOP_ENDS_WITH)
    network.run(loop)
    return loop


def wait_for_loop(network: Network, loop: Service, switches: Sequence[str]) -> bool:
    """Wait until the loop, or the one that has taken its place, serves these switches of a topology: they have then what they need.

    Returns:
        False where there is no loop.

    Raises:
        RuntimeError: when it does not within RESTORE_TIMEOUT_S, with what it reports of them.
    """
    deadline = time.monotonic() + RESTORE_TIMEOUT_S
    problem = "it does not answer"
    while time.monotonic() < deadline:
        try:
            rows = {row["switch"]: row for row in asyncio.run(ask(network.folder, {"op": "status"}, 2.0))}
            away = [rows[name] for name in switches if name in rows and not rows[name]["connected"]]
            if not away:
                return True
            problem = (away[0]["error"] or {}).get("message", "it does not reach the switch")
        except FairlaneError as error:
            if error.code is ErrorCode.NO_LOOP and loop.is_over:
                return False
            problem = error.message
        time.sleep(0.05)
    raise RuntimeError(
        f"the control loop does not restore {', '.join(switches)} within {RESTORE_TIMEOUT_S:g} s: {problem}"
    )


def _command(*words: str, network: Network, switches: Sequence[str]) -> list[str]:
    chosen = [word for name in switches for word in ("--switch", name)]
    return [str(Path(sys.executable).parent / "fairlane"), *words, "--state", str(network.folder), *chosen]
