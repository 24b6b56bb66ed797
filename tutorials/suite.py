#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PTF tests of other people's, unchanged, in the network namespace that this is started in: 8 ports from 0, device id 0, port 9559."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ptf_tests"))

from fairlane_switch.switch import PortOptions, SwitchOptions, start_switch
from interfaces import make_interfaces

PORTS = range(8)
MTU = 1500
GRPC = "127.0.0.1:9559"
SUITE_TIMEOUT_S = 300


def main(arguments: list[str]) -> int:
    """The exit code of ptf; it runs in the current folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="one that has ptf and what the tests import")
    parser.add_argument("--p4info", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--test-dir", required=True)
    parser.add_argument("--pypath", default=".")
    chosen = parser.parse_args(arguments)
    switch_ends, ptf_ends = make_interfaces(PORTS, MTU)
    ports = [PortOptions(port=port, interface=name) for port, name in switch_ends.items()]
    parameters = f"grpcaddr='{GRPC}';p4info='{chosen.p4info}';config='{chosen.config}'"
    command = [chosen.python, str(Path(chosen.python).with_name("ptf")), "--test-dir", chosen.test_dir]
    command += ["--pypath", chosen.pypath, "--test-params", parameters]
    for port, name in ptf_ends.items():
        command += ["-i", f"{port}@{name}"]
    with start_switch(SwitchOptions(ports=ports, device_id=0, grpc=GRPC)):
        return subprocess.run(command, timeout=SUITE_TIMEOUT_S).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
