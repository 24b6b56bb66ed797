# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Programs the switches of running topologies and keeps the controller's loop beside them, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from fl_net import Network
from fl_signals import defer_signals

INIT_TIMEOUT_S = 60.0
LOOP_READY_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0


def program_switches(network: Network, switches: Sequence[str] = ()) -> None:
    """`fairlane config init` for these switches (none named: all). Raises RuntimeError with the controller's own words."""
    done = subprocess.run(
        [_fairlane(), "config", "init", *_switch_arguments(network, switches)],
        capture_output=True,
        text=True,
        timeout=INIT_TIMEOUT_S,
    )
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"the controller could not program the switches of {network.topology.path}: {words}")


def start_loop(
    networks: Sequence[Network], switches: Sequence[str] = (), *, probes: bool = True
) -> subprocess.Popen[bytes]:
    """One control loop for all these topologies, ready when this returns; it belongs to the first one's run state.

    `switches` names some of a single topology's; without `probes` nothing but the hosts' traffic crosses the links. Raises RuntimeError with the loop's last words when it does not start.
    """
    first = networks[0]
    ready = first.folder / "loop.ready"
    ready.unlink(missing_ok=True)
    chosen = [word for network in networks for word in _switch_arguments(network, switches)]
    log = first.folder / "log" / "controller.log"
    with defer_signals(), log.open("wb") as output:
        loop = subprocess.Popen(
            [_fairlane(), "run", *chosen, "--ready-file", str(ready), *(() if probes else ("--no-probes",))],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        first.adopt(loop.pid, "fairlane run")
    deadline = time.monotonic() + LOOP_READY_TIMEOUT_S
    while not ready.exists():
        if loop.poll() is not None or time.monotonic() > deadline:
            end_loop(loop)
            words = log.read_text(errors="replace").strip()[-500:]
            raise RuntimeError(f"the control loop does not start: {words or 'no output'}")
        time.sleep(0.05)
    return loop


def end_loop(loop: subprocess.Popen[bytes]) -> None:
    """Stop a loop that `start_loop` started; the switches keep what they hold."""
    loop.terminate()
    try:
        loop.wait(timeout=END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        loop.kill()
        loop.wait(timeout=5)


def _fairlane() -> str:
    return str(Path(sys.executable).parent / "fairlane")


def _switch_arguments(network: Network, switches: Sequence[str]) -> list[str]:
    return ["--state", str(network.folder), *(word for name in switches for word in ("--switch", name))]
