# SPDX-License-Identifier: Apache-2.0
"""Linux interfaces: quiet, and without offloads, so that checksums on the wire are real and no frame is larger than the MTU.

A command runs in this network namespace, or in the one that its `prefix` enters (`mnexec -a PID`, `ip netns exec NAME`).
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro", "lro", "rxvlan", "txvlan")
CHECKED = ("tx-checksumming", "tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
"""What must be off, by the names that ethtool shows."""


def run(*command: object, timeout_s: float = 60) -> str:
    """What a command prints that must succeed. Raises RuntimeError with the command and its own words."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def quiet(interface: str) -> None:
    """Keep the kernel from sending anything of its own (IPv6 discovery) on an interface of this namespace."""
    setting = Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
    if setting.exists():
        setting.write_text("1\n")


def disable_offloads(interface: str, prefix: Sequence[str] = ()) -> None:
    """Switch every offload of an interface off. Raises RuntimeError when one stays on."""
    features = [word for feature in OFFLOADS for word in (feature, "off")]
    subprocess.run([*prefix, "ethtool", "-K", interface, *features], capture_output=True, timeout=20)
    state = run(*prefix, "ethtool", "-k", interface)
    if on := [name for name in CHECKED if f"{name}: on" in state]:
        raise RuntimeError(f"{interface}: these offloads stay on: {', '.join(on)}")


def receive_on(cpus: Collection[int], interface: str) -> list[str]:
    """The command that lets these processors do the receiving at an interface, to be run in its namespace (Receive Packet Steering, Linux's networking/scaling.rst).

    Without it the one that sends into the veth pair does it, which is the packet thread's. A kernel without steering stays as it is.
    """
    mask = sum(1 << cpu for cpu in cpus)
    words = [f"{mask >> 32 * i & 0xFFFFFFFF:08x}" for i in reversed(range(max(cpus) // 32 + 1))]
    files = f"/sys/class/net/{interface}/queues/rx-*/rps_cpus"
    return ["sh", "-c", f'for file in {files}; do [ ! -w "$file" ] || echo {",".join(words)} > "$file" || exit; done']
